"""How fast one core simulates: schedules of three brokers, ten seconds, about two hundred operations and two faults.

    python -m benchmarks.schedules [--schedules 50] [--of-sweeps 5] [--codecs] [--record]

Processor time of this process, not wall time, so that a busy machine disturbs less; beside it, the sweeps of the night,
one with groups and one without, in turn, and what one schedule of the scenario `smoke` takes of time and memory, which
is a real run's load. Anchors of others: a Python simulator for Raft does 59 schedules/s on a core and 2,000 times real
time; FoundationDB 10 times, TigerBeetle 1,000.
"""

import argparse
import time
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from harness.scenario.file import load_scenario, read_scenario
from harness.scenario.model import Scenario
from harness.simulation.schedule import SimulatedHistory, simulate
from harness.store.history import OpType
from tools.results.rows import record

SCENARIO = """
name: benchmark
description: The benchmark's schedule.
cluster:
  properties: {offsets.topic.num.partitions: 1}
topics:
  - name: orders
    partitions: 1
    config: {min.insync.replicas: 2}
workloads:
  - kind: produce-consume
    parameters: {producers: 1, consumers: 1, rate_per_s: 16, final_read_timeout_s: 10}
faults:
  - {kind: kill, at_s: 1, jitter_s: 1, duration_s: 4, target: "leader(orders,0)"}
  - {kind: expire-session, at_s: 5.5, jitter_s: 1, target: controller}
duration_s: 8
"""
WARM_UP = 3
SWEEPS = ("mix-light", "groups-light")
LIGHT = Path(__file__).parents[1] / "tools"


def operations(history: SimulatedHistory) -> int:
    """Return how many operations the clients tried."""
    return sum(each.type is OpType.INVOKE for recorded in history.operations.values() for each in recorded)


def lines(history: SimulatedHistory) -> int:
    """Return how many lines of evidence a schedule leaves."""
    state_changes = sum(len(log.events) for log in history.logs.values())
    operations = sum(len(of_client) for of_client in history.operations.values())
    return state_changes + operations + len(history.znodes) + len(history.journal)


def smoke() -> Table:
    """Return what one schedule of the scenario `smoke` takes; memory is measured in a second run, which that slows."""
    scenario = load_scenario("smoke")
    began_s = time.process_time()
    history = simulate(scenario, 0, through_codecs=False)
    took_s = time.process_time() - began_s
    tracemalloc.start()
    simulate(scenario, 0, through_codecs=False)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    table = Table(title="one schedule of smoke")
    for name in ("processor s", "simulated s / real s", "events", "lines of evidence", "peak memory MB"):
        table.add_column(name, justify="right")
    table.add_row(
        f"{took_s:.2f}",
        f"{history.virtual_s / took_s:,.0f}",
        f"{history.events:,.0f}",
        f"{lines(history):,.0f}",
        f"{peak_bytes / 1e6:.0f}",
    )
    return table


@dataclass(slots=True)
class Sum:
    """What schedules of one scenario were, together."""

    took_s: float = 0.0
    schedules: int = 0
    virtual_s: float = 0.0
    events: int = 0
    attempts: int = 0

    def add(self, scenario: Scenario, seed: int, *, codecs: bool) -> None:
        """Simulate one more."""
        began_s = time.process_time()
        history = simulate(scenario, seed, through_codecs=codecs)
        self.took_s += time.process_time() - began_s
        self.schedules += 1
        self.virtual_s += history.virtual_s
        self.events += history.events
        self.attempts += operations(history)

    def row(self) -> tuple[str, ...]:
        """Return the cells of a table."""
        return (
            f"{self.schedules / self.took_s:.1f}",
            f"{self.virtual_s / self.took_s:,.0f}",
            f"{self.events / self.took_s:,.0f}",
            f"{self.events / self.schedules:,.0f}",
            f"{self.attempts / self.schedules:,.0f}",
        )


def simulated(scenarios: Mapping[str, Scenario], schedules: int, *, codecs: bool) -> dict[str, Sum]:
    """Return what schedules of each scenario take; they take turns, so that other work slows all of them equally."""
    sums = {name: Sum() for name in scenarios}
    for seed in range(schedules):
        for name, scenario in scenarios.items():
            sums[name].add(scenario, seed, codecs=codecs)
    return sums


def table_of(sums: Mapping[str, Sum], schedules: int) -> Table:
    """Return a table with a row for each scenario."""
    table = Table(title=f"{schedules} schedules on one core")
    table.add_column("scenario", no_wrap=True)
    for name in ("schedules/s", "simulated s / real s", "events/s", "events a schedule", "operations a schedule"):
        table.add_column(name, justify="right")
    for name, total in sums.items():
        table.add_row(name, *total.row())
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schedules", description=__doc__)
    parser.add_argument("--schedules", type=int, default=50)
    parser.add_argument("--of-sweeps", type=int, default=5)
    parser.add_argument("--codecs", action="store_true", help="every message through the real codecs")
    parser.add_argument("--record", action="store_true", help="append the figures to results/measurements.json")
    options = parser.parse_args()
    scenario = read_scenario(SCENARIO, "benchmark")
    for seed in range(WARM_UP):
        simulate(scenario, seed, through_codecs=options.codecs)
    sweeps = {name: load_scenario(str(LIGHT / f"{name}.yaml")) for name in SWEEPS}
    console = Console()
    own = simulated({"its own": scenario}, options.schedules, codecs=options.codecs)
    console.print(table_of(own, options.schedules))
    of_sweeps = simulated(sweeps, options.of_sweeps, codecs=options.codecs)
    console.print(table_of(of_sweeps, options.of_sweeps))
    if options.record and not options.codecs:
        (total,), mix = own.values(), of_sweeps[SWEEPS[0]]
        figures = {"simulation.schedules_s": total.schedules / total.took_s}
        record("python -m benchmarks.schedules", figures | {"simulation.events_s": mix.events / mix.took_s})
    console.print(smoke())


if __name__ == "__main__":
    main()

"""How fast one core simulates: schedules of three brokers, ten seconds, about two hundred operations and two faults.

    python -m benchmarks.schedules [--schedules 50] [--codecs]

Processor time of this process, not wall time, so that a busy machine disturbs less; beside it, what one schedule of the
scenario `smoke` takes of time and memory, which is a real run's load. Anchors of others: a Python
simulator for Raft does 59 schedules/s on a core and 2,000 times real time; FoundationDB 10 times, TigerBeetle 1,000.
"""

import argparse
import time
import tracemalloc

from rich.console import Console
from rich.table import Table

from harness.scenario.file import load_scenario, read_scenario
from harness.simulation.schedule import SimulatedHistory, simulate
from harness.store.history import OpType

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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schedules", description=__doc__)
    parser.add_argument("--schedules", type=int, default=50)
    parser.add_argument("--codecs", action="store_true", help="every message through the real codecs")
    options = parser.parse_args()
    scenario = read_scenario(SCENARIO, "benchmark")
    for seed in range(WARM_UP):
        simulate(scenario, seed, through_codecs=options.codecs)
    virtual_s = events = attempts = 0.0
    began_s = time.process_time()
    for seed in range(options.schedules):
        history = simulate(scenario, seed, through_codecs=options.codecs)
        virtual_s += history.virtual_s
        events += history.events
        attempts += operations(history)
    took_s = time.process_time() - began_s
    table = Table(title=f"{options.schedules} schedules on one core")
    for name in ("schedules/s", "simulated s / real s", "events/s", "events a schedule", "operations a schedule"):
        table.add_column(name, justify="right")
    count = options.schedules
    table.add_row(
        f"{count / took_s:.1f}",
        f"{virtual_s / took_s:,.0f}",
        f"{events / took_s:,.0f}",
        f"{events / count:,.0f}",
        f"{attempts / count:,.0f}",
    )
    console = Console()
    console.print(table)
    console.print(smoke())


if __name__ == "__main__":
    main()

"""How many mixes of many faults come to a conclusion? In virtual time, and without judging anything but the faults.

    python -m tools.mixes [SCENARIO ...] [--schedules 30] [--duration 600] [--every 15] [--at-most MINUTES]

A mix is conclusive when as many faults as its scenario states were confirmed, spares among them, and none did something
else than was asked for. Each other one is said with the seed that makes it again. With `--at-most`, no further schedule
is begun after so many minutes of processor time.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from harness.run.journal import fault_results
from harness.scenario.file import load_scenario
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan, make_plan
from harness.scenario.source import set_option
from harness.simulation.schedule import simulate_plan
from harness.store.history import InjectionStep, JournalEntry
from harness.store.result import FaultResult
from harness.sweep.sweep import schedule_seed
from harness.verdict import FaultVerdict

WIDTH = 120
SCENARIOS = ("mix-light", "administration-light", "storm-light")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """What became of the faults of one schedule."""

    seed: int
    results: Sequence[FaultResult]
    journal: Sequence[JournalEntry]

    @property
    def doubts(self) -> list[FaultResult]:
        """The faults that keep it from being conclusive."""
        return [each for each in self.results if each.verdict is not FaultVerdict.CONFIRMED and not each.compensated]

    def counts(self) -> Mapping[str, int]:
        """Return how many of its faults each thing happened to."""
        steps: dict[InjectionStep, set[int]] = {}
        for entry in self.journal:
            steps.setdefault(entry.step, set()).add(entry.injection)
        begun = steps.get(InjectionStep.INTENDED, set())
        confirmed = sum(each.verdict is FaultVerdict.CONFIRMED for each in self.results)
        return {
            "confirmed": confirmed,
            "postponed": len(steps.get(InjectionStep.POSTPONED, ())),
            "refused": len(steps.get(InjectionStep.INCONCLUSIVE, set()) - begun),
            "not seen": len(steps.get(InjectionStep.INCONCLUSIVE, set()) & begun),
            "failed": len(steps.get(InjectionStep.FAILED, ())),
            "replaced": sum(each.compensated for each in self.results),
        }


@dataclass(slots=True)
class Sum:
    """What the mixes of one scenario were, together."""

    mixes: int = 0
    conclusive: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, mix: Mix) -> None:
        """Count one more."""
        self.mixes += 1
        self.conclusive += not mix.doubts
        self.counts.update(mix.counts())


def longer(path: str, duration_s: float, every_s: float) -> Scenario:
    """Return a scenario with a mix, of this duration and with as many faults as fit."""
    values = (f"duration_s={duration_s}", f"mix.count={max(1, int(duration_s / every_s))}")
    return load_scenario(path, [set_option(value) for value in values])


def mixes_of(scenario: Scenario, schedules: int, seed: int, until_s: float) -> Iterator[Mix]:
    """Yield what became of each schedule; none is begun when the process has had `until_s` of processor time."""
    for number in range(schedules):
        if time.process_time() > until_s:
            return
        plan = make_plan(scenario, schedule_seed(seed, number))
        yield mix_of(plan, simulate_plan(scenario, plan).journal)


def mix_of(plan: Plan, journal: Sequence[JournalEntry]) -> Mix:
    """Return what became of a plan's faults, by the journal."""
    return Mix(seed=plan.seed, results=fault_results(plan, journal), journal=journal)


def table_of(sums: Mapping[str, Sum]) -> Table:
    """Return a row for each scenario."""
    table = Table(title="mixes")
    names = ("confirmed", "postponed", "refused", "not seen", "failed", "replaced")
    table.add_column("scenario", no_wrap=True)
    for name in ("mixes", "conclusive", *names):
        table.add_column(name, justify="right")
    for scenario, each in sums.items():
        table.add_row(scenario, str(each.mixes), str(each.conclusive), *(f"{each.counts[name]:,}" for name in names))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mixes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    files = [str(Path(__file__).with_name(f"{name}.yaml")) for name in SCENARIOS]
    parser.add_argument("scenarios", nargs="*", default=files, metavar="SCENARIO", help="built in, or a YAML file")
    parser.add_argument("--schedules", type=int, default=30)
    parser.add_argument("--duration", type=float, default=600.0, help="seconds of load")
    parser.add_argument("--every", type=float, default=15.0, help="seconds for each fault")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-most", type=float, default=float("inf"), metavar="MINUTES")
    options = parser.parse_args()
    console = Console(width=WIDTH)
    sums: dict[str, Sum] = {}
    for number, path in enumerate(options.scenarios, start=1):
        scenario = longer(path, options.duration, options.every)
        total = sums[scenario.name] = Sum()
        until_s = options.at_most * 60 * number / len(options.scenarios)
        for mix in mixes_of(scenario, options.schedules, options.seed, until_s):
            total.add(mix)
            for each in mix.doubts:
                name = f"{scenario.name}, seed {mix.seed}: injection {each.injection}, {each.fault}"
                console.print(f"{name}: {each.verdict.name}, {each.detail}", markup=False)
    console.print(table_of(sums))
    console.print(f"{time.process_time():.0f} s of processor time")


if __name__ == "__main__":
    main()

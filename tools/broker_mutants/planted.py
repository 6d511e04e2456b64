"""Which planted bugs does the standing battery find, and in how many of its schedules?

    python -m tools.broker_mutants.planted [BUG…] [--schedules 20] [--processes 2]

Each bug is planted in the broker, which is put to the schedules of the battery in turn, until a check says FAIL. The
answer goes into the bug's row of results/bugs.json, if it has one, and into the track record with `make pages`.
"""

import argparse
import gc
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from harness.broker.rules import PLANTED_BUGS
from harness.simulation.own_process import ProcessDied, in_own_processes
from harness.simulation.schedule import simulate_plan
from harness.sweep.executor import schedule_of
from harness.sweep.sweep import Candidate
from harness.system.scratch import scratch_folder
from harness.verdict import ExitCode
from tools.broker_mutants.battery import battery, import_all
from tools.broker_mutants.judging import Judge, Judging, leave
from tools.results.rows import BUGS, Row, load, save

ROUNDS = (4, 10)
"""A bug that is found in the first so many schedules is not put to more; the last round has all others."""
BATCH = 12
"""Bugs whose histories are judged together."""
Simulating = Callable[[str, Candidate, int, Path], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the battery makes of one planted bug."""

    bug: str
    schedules: int
    """As many as it was put to, the one that finds it included."""
    found_by: tuple[str, ...] = ()
    """The checks that say FAIL of that one; none where the battery does not find it."""

    def row(self) -> Row:
        """Return it as a part of a row of results/bugs.json."""
        return {"schedules": self.schedules, "found_by": list(self.found_by)}


def standings(
    bugs: Sequence[str],
    candidates: Sequence[Candidate],
    judge: Judging,
    scratch: Path,
    simulate: Callable[[Sequence[Callable[[], None]]], None],
) -> Iterator[Standing]:
    """Yield what the battery makes of each bug, as soon as it is known.

    Args:
        bugs: Names of planted bugs.
        candidates: The schedules of the battery, without a planted bug.
        judge: Judges the histories of `BATCH` bugs at a time.
        scratch: A folder for histories.
        simulate: Carries out works that each leave a history in a folder.
    """
    whole = len(candidates)
    ends = [0, *(each for each in ROUNDS if each < whole), whole]
    for first in range(0, len(bugs), BATCH):
        batch = list(bugs[first : first + BATCH])
        open_bugs = dict(enumerate(batch))
        for begin, end in pairwise(ends):
            folder = scratch / f"{first:04}-{begin:03}"
            folder.mkdir()
            numbers = [(slot, place) for slot in open_bugs for place in range(begin, end)]
            simulate(
                [
                    partial(leave_history, batch[slot], candidates[place], slot * whole + place, folder)
                    for slot, place in numbers
                ]
            )
            judge.ask(folder, [*candidates] * len(batch))
            answers = judge.answers()
            shutil.rmtree(folder)
            for slot, place in numbers:
                code, findings = answers.get(slot * whole + place, (ExitCode.INCONCLUSIVE, {}))
                if slot in open_bugs and code is ExitCode.VIOLATED:
                    checks = tuple(name for name in findings if " " not in name)
                    yield Standing(bug=open_bugs.pop(slot), schedules=place + 1, found_by=checks)
        for bug in open_bugs.values():
            yield Standing(bug=bug, schedules=whole)


def leave_history(bug: str, candidate: Candidate, number: int, folder: Path) -> None:
    """Simulate a schedule with a bug planted, and leave its history in a folder; a schedule may leave none."""
    scenario, plan = candidate.scenario.model_copy(update={"planted_bugs": [bug]}), candidate.plan
    history = simulate_plan(scenario, plan)
    left = schedule_of(history, number, f"{scenario.name}-{number:06}-{plan.seed:016x}", scenario, plan)
    leave(left, folder)


def record(standing: Standing) -> None:
    """Write what the battery makes of a bug into its row, if it has one."""
    rows = load(BUGS)
    for row in rows:
        if row["kind"] == "planted" and row["id"] == standing.bug:
            row["battery"] = standing.row()
    save(BUGS, rows)


def main() -> None:
    """Run the command line."""
    known = [bug.name for bug in PLANTED_BUGS]
    parser = argparse.ArgumentParser(prog="python -m tools.broker_mutants.planted", description=__doc__)
    parser.add_argument("bugs", nargs="*", default=known, metavar="BUG")
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--battery-seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if unknown := sorted({*options.bugs} - {*known}):
        raise SystemExit(f"unknown planted bugs {', '.join(unknown)}; known: {', '.join(known)}")
    import_all()
    candidates = battery(options.schedules, options.battery_seed)
    gc.freeze()  # a fork that collects would copy what it looks at

    def simulate(works: Sequence[Callable[[], None]]) -> None:
        for number, made in in_own_processes(works, at_once=options.processes):
            if isinstance(made, ProcessDied):
                print(f"schedule {number} has no history: {made}")

    with Judge() as judge, scratch_folder(small=True) as scratch:
        for standing in standings(options.bugs, candidates, judge, scratch, simulate):
            record(standing)
            print(f"{standing.bug}: {standing.schedules} schedules, found by {list(standing.found_by)}", flush=True)


if __name__ == "__main__":
    main()

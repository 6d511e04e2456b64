"""Does a guided search find bugs in fewer schedules than a blind one?

    python -m tools.broker_mutants.guided SCENARIO BUG… [--seeds 10] [--most 192] [--round 8] [--blind]
    python -m tools.broker_mutants.guided SCENARIO MISTAKE… --mistakes tools/broker_mutants/mistakes.jsonl

A bug is one that is planted in the broker, or with `--mistakes` one that the file has by this name. The scenario is
searched under so many seeds, blind and guided, until a check says FAIL or there were `--most` schedules. Blind search
is the guided one that learns nothing. All searches of a bug go on together, round by round; each schedule is simulated
in a process of its own, in which a mistake is in force. The counts go into results/guided.json, and into the page of
mutants with `make pages`; with `--blind`, which tries blind search alone, they are printed.
"""

import argparse
import gc
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import quantiles

from harness.broker.rules import PLANTED_BUGS
from harness.cli.options import simulated
from harness.scenario.file import scenario_yaml
from harness.simulation.own_process import ProcessDied, in_own_processes
from harness.sweep import jobs
from harness.sweep.executor import simulate_candidates
from harness.sweep.guided import Guide
from harness.sweep.rounds import ROUND
from harness.sweep.sweep import Candidate
from harness.system.scratch import scratch_folder
from harness.verdict import ExitCode
from tools.broker_mutants.battery import import_all
from tools.broker_mutants.in_force import Changed, changed_functions, live_functions, put_in_force
from tools.broker_mutants.judging import Judge, Judging, leave
from tools.broker_mutants.mutants import Mutant, mistakes_of
from tools.results.rows import Row, append, circumstances

RESULTS = "guided"
BLIND, GUIDED = "blind", "guided"


class Blind(Guide):
    """Draws each schedule from the scenario alone, as a guided search does with a quarter of its schedules."""

    def learn(self, candidates: Sequence[Candidate], features: Sequence[Mapping[str, float]]) -> int:
        """Learn nothing."""
        return 0


@dataclass(slots=True, kw_only=True)
class OpenSearch:
    """One search that goes on until something is found."""

    search: Guide
    made: int = 0
    found_at: int | None = None
    """How many schedules it took, the one that fails included."""
    candidates: list[Candidate] = field(default_factory=list)
    """Those of the round that goes on."""


Simulating = Callable[[Sequence[Candidate], Path], tuple[list[dict[str, float]], list[bool]]]
"""Simulates and judges schedules in a folder: what each reached, and whether a check says FAIL of it."""


def until_found(
    searches: Sequence[OpenSearch], most: int, size: int, simulate: Simulating, folders: Iterator[Path]
) -> None:
    """Carry all searches on, round by round, until each has found something or had `most` schedules."""
    while going := [each for each in searches if each.found_at is None and each.made < most]:
        for each in going:
            each.candidates = each.search.next_round(min(size, most - each.made))
        features, failed = simulate([candidate for each in going for candidate in each.candidates], next(folders))
        first = 0
        for each in going:
            end = first + len(each.candidates)
            each.search.learn(each.candidates, features[first:end])
            if True in failed[first:end]:
                each.found_at = each.made + failed[first:end].index(True) + 1
            each.made += len(each.candidates)
            first = end


def row_of(scenario: str, bug: str, most: int, size: int, found: Mapping[str, Sequence[int | None]]) -> Row:
    """Return the row of results/guided.json: schedules until the first finding by seed, null for none in `most`."""
    return {**circumstances(), "scenario": scenario, "bug": bug, "most": most, "round": size, **found}


def middle(found: Sequence[int | None], most: int) -> tuple[float, float, float]:
    """Return median and quartiles; what was not found counts as one schedule more than were tried."""
    counts = sorted(most + 1 if each is None else each for each in found)
    lower, median, upper = quantiles(counts, n=4, method="inclusive") if len(counts) > 1 else counts * 3
    return median, lower, upper


def simulating(changed: Changed, judge: Judging, at_once: int) -> Simulating:
    """Return what simulates schedules with some functions of the broker changed, and has them judged."""

    def simulate(candidates: Sequence[Candidate], folder: Path) -> tuple[list[dict[str, float]], list[bool]]:
        folder.mkdir(parents=True)
        texts = {n: (scenario_yaml(each.scenario), each.plan.to_json()) for n, each in enumerate(candidates)}
        works = [partial(leave_history, changed, texts, number, folder) for number in texts]
        for number, made in in_own_processes(works, at_once=at_once):
            if isinstance(made, ProcessDied) or made:
                print(f"seed {candidates[number].plan.seed} has no history: {made}", flush=True)
        judge.ask(folder, candidates)
        answers = judge.answers()
        features = jobs.features_in(folder, texts)
        shutil.rmtree(folder)
        codes = [answers.get(number, (ExitCode.INCONCLUSIVE, {}))[0] for number in range(len(candidates))]
        return features, [code is ExitCode.VIOLATED for code in codes]

    return simulate


def leave_history(changed: Changed, candidates: Mapping[int, tuple[str, str]], number: int, folder: Path) -> str:
    """Leave the history of one of the candidates in a folder; return why it has none, in a sentence, or nothing.

    It changes the code of this process, which has to be one that is made for it.
    """
    put_in_force(changed)
    (schedule,) = simulate_candidates(candidates, [number])
    leave(schedule, folder)
    return schedule.error


def main() -> None:
    """Run the command line."""
    options = _options()
    import_all()
    functions = live_functions()
    known: dict[str, Mutant | None] = {bug.name: None for bug in PLANTED_BUGS}
    if options.mistakes:
        known = {each.key: each for each in mistakes_of(options.mistakes)}
    if unknown := sorted({*options.bugs} - {*known}):
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    kinds: dict[str, type[Guide]] = {BLIND: Blind} if options.blind else {BLIND: Blind, GUIDED: Guide}
    gc.freeze()  # a fork that collects would copy what it looks at
    with Judge() as judge, scratch_folder(small=True) as scratch:
        for bug in options.bugs:
            mistake = known[bug]
            changed = [] if mistake is None else changed_functions(mistake, functions)
            scenario = simulated(options.scenario, [bug] if mistake is None else [], None)
            searches = {
                kind: [OpenSearch(search=made(scenario=scenario, seed=seed)) for seed in range(1, options.seeds + 1)]
                for kind, made in kinds.items()
            }
            folders = (scratch / bug / f"{number:04}" for number in range(options.most))
            going = [each for of_kind in searches.values() for each in of_kind]
            until_found(going, options.most, options.round, simulating(changed, judge, options.processes), folders)
            found = {kind: [each.found_at for each in of_kind] for kind, of_kind in searches.items()}
            for kind, counts in found.items():
                median, lower, upper = middle(counts, options.most)
                print(f"{bug}, {kind}: median {median:g} ({lower:g} to {upper:g}) schedules: {counts}", flush=True)
            if GUIDED in found:
                append(RESULTS, row_of(options.scenario, bug, options.most, options.round, found))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.broker_mutants.guided",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenario")
    parser.add_argument("bugs", nargs="+", metavar="BUG")
    parser.add_argument("--mistakes", type=Path, metavar="FILE", help="bugs are mistakes of this file, by their names")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--most", type=int, default=192)
    parser.add_argument("--round", type=int, default=ROUND)
    parser.add_argument("--blind", action="store_true", help="blind searches alone, to see which bugs take them long")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="simulating at once")
    return parser.parse_args()


if __name__ == "__main__":
    main()

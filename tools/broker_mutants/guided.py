"""Does a guided search find planted bugs in fewer schedules than blind ones?

    python -m tools.broker_mutants.guided SCENARIO BUG… [--seeds 10] [--most 192] [--round 24] [--blind]

Each bug is planted in the broker, and the scenario is searched under so many seeds, blind and guided, until a check
says FAIL or there were `--most` schedules. All searches of a bug go on together, round by round, as Spark jobs. The
counts go into results/guided.json, and into the page of mutants with `make pages`.
"""

import argparse
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Protocol

from pyspark.sql import SparkSession

from harness.broker.rules import PLANTED_BUGS
from harness.scenario.file import load_scenario
from harness.scenario.model import Scenario
from harness.scenario.plan import make_plan
from harness.sweep import jobs
from harness.sweep.guided import Guide
from harness.sweep.sweep import Candidate, schedule_seed
from harness.system.scratch import scratch_folder
from harness.verdict import ExitCode
from tools.results.rows import Row, append, circumstances

RESULTS = "guided"
BLIND, GUIDED = "blind", "guided"


class Search(Protocol):
    """Makes schedules in rounds."""

    def next_round(self, size: int) -> list[Candidate]:
        """Return so many schedules to try."""
        ...

    def learn(self, candidates: Sequence[Candidate], features: Sequence[Mapping[str, float]]) -> int:
        """Take in what a round reached, each feature with its instant; return how many features are new."""
        ...


@dataclass(slots=True, kw_only=True)
class Blind:
    """Draws each schedule from the scenario alone, as a sweep does."""

    scenario: Scenario
    seed: int
    _made: int = 0

    def next_round(self, size: int) -> list[Candidate]:
        """Implements `Search.next_round`."""
        first, self._made = self._made, self._made + size
        seeds = [schedule_seed(self.seed, number) for number in range(first, self._made)]
        return [Candidate(scenario=self.scenario, plan=make_plan(self.scenario, seed)) for seed in seeds]

    def learn(self, candidates: Sequence[Candidate], features: Sequence[Mapping[str, float]]) -> int:
        """Implements `Search.learn`: there is nothing to learn."""
        return 0


@dataclass(slots=True, kw_only=True)
class Open:
    """One search that goes on until something is found."""

    search: Search
    made: int = 0
    found_at: int | None = None
    """How many schedules it took, the one that fails included."""
    candidates: list[Candidate] = field(default_factory=list)
    """Those of the round that goes on."""


Simulating = Callable[[Sequence[Candidate], Path], tuple[list[dict[str, float]], list[bool]]]
"""Simulates and judges schedules in a folder: what each reached, and whether a check says FAIL of it."""


def until_found(searches: Sequence[Open], most: int, size: int, simulate: Simulating, folders: Iterator[Path]) -> None:
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


def _on(spark: SparkSession) -> Simulating:
    def simulate(candidates: Sequence[Candidate], folder: Path) -> tuple[list[dict[str, float]], list[bool]]:
        histories = folder / "schedules.parquet"
        jobs.simulate_candidates(spark, candidates, histories, jobs.Unseen())
        features = jobs.features_in(histories, len(candidates))
        verdicts = jobs.judge_histories(spark, histories, candidates, folder)
        shutil.rmtree(folder)
        return features, [verdict.exit_code is ExitCode.VIOLATED for verdict in verdicts]

    return simulate


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.broker_mutants.guided", description=__doc__)
    parser.add_argument("scenario")
    parser.add_argument("bugs", nargs="+", metavar="BUG", choices=[bug.name for bug in PLANTED_BUGS])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--most", type=int, default=192)
    parser.add_argument("--round", type=int, default=24)
    parser.add_argument("--blind", action="store_true", help="blind searches alone, to see which bugs take them long")
    options = parser.parse_args()
    from harness.analysis.engine.session import spark_session

    kinds: dict[str, Callable[..., Search]] = {BLIND: Blind} if options.blind else {BLIND: Blind, GUIDED: Guide}
    with spark_session(jobs.patient(None)) as spark, scratch_folder() as scratch:
        for bug in options.bugs:
            scenario = load_scenario(options.scenario).model_copy(update={"planted_bugs": [bug]})
            searches = {
                kind: [Open(search=made(scenario=scenario, seed=seed)) for seed in range(1, options.seeds + 1)]
                for kind, made in kinds.items()
            }
            folders = (scratch / bug / f"{number:04}" for number in range(options.most))
            going = [each for of_kind in searches.values() for each in of_kind]
            until_found(going, options.most, options.round, _on(spark), folders)
            found = {kind: [each.found_at for each in of_kind] for kind, of_kind in searches.items()}
            for kind, counts in found.items():
                median, lower, upper = middle(counts, options.most)
                print(f"{bug}, {kind}: median {median:g} ({lower:g} to {upper:g}) schedules: {counts}", flush=True)
            if GUIDED in found:
                append(RESULTS, row_of(options.scenario, bug, options.most, options.round, found))


if __name__ == "__main__":
    main()

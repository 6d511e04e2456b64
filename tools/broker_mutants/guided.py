"""Does a guided search find planted bugs in fewer schedules than blind ones?

    python -m tools.broker_mutants.guided SCENARIO BUG… [--seeds 10] [--most 192] [--round 48] [--blind]

Each bug is planted in the broker, and the scenario is searched under so many seeds, blind and guided, until a check
says FAIL or there were `--most` schedules. Blind search is the guided one that learns nothing. All searches of a bug go
on together, round by round, as Spark jobs. The counts go into results/guided.json, and into the page of mutants with
`make pages`; with `--blind`, which tries blind search alone, they are printed.
"""

import argparse
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

from pyspark.sql import SparkSession

from harness.broker.rules import PLANTED_BUGS
from harness.cli.options import simulated
from harness.sweep import jobs
from harness.sweep.guided import Guide
from harness.sweep.rounds import ROUND
from harness.sweep.sweep import Candidate
from harness.system.scratch import scratch_folder
from harness.verdict import ExitCode
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


def _on(spark: SparkSession) -> Simulating:
    def simulate(candidates: Sequence[Candidate], folder: Path) -> tuple[list[dict[str, float]], list[bool]]:
        histories = folder / "schedules.parquet"
        jobs.simulate_candidates(spark, candidates, histories, jobs.Unseen())
        features = jobs.features_in(histories, len(candidates))
        verdicts = jobs.judge_histories(spark, histories, candidates, folder)
        shutil.rmtree(folder)
        for verdict in verdicts:
            if verdict.error:
                print(f"no verdict on seed {verdict.seed}: {verdict.error}", flush=True)
        return features, [verdict.exit_code is ExitCode.VIOLATED for verdict in verdicts]

    return simulate


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.broker_mutants.guided", description=__doc__)
    parser.add_argument("scenario")
    parser.add_argument("bugs", nargs="+", metavar="BUG", choices=[bug.name for bug in PLANTED_BUGS])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--most", type=int, default=192)
    parser.add_argument("--round", type=int, default=ROUND)
    parser.add_argument("--blind", action="store_true", help="blind searches alone, to see which bugs take them long")
    options = parser.parse_args()
    from harness.analysis.engine.session import spark_session

    kinds: dict[str, type[Guide]] = {BLIND: Blind} if options.blind else {BLIND: Blind, GUIDED: Guide}
    with spark_session(jobs.patient(None)) as spark, scratch_folder() as scratch:
        for bug in options.bugs:
            scenario = simulated(options.scenario, [bug], None)
            searches = {
                kind: [OpenSearch(search=made(scenario=scenario, seed=seed)) for seed in range(1, options.seeds + 1)]
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

"""Histories that are right by construction are never accused, and one thing wrong is found by the checks that must."""

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from harness.analysis.judge import Judgement, Question, judge_sources
from harness.analysis.sources.lines import SCHEMAS
from harness.analysis.sources.reading import LINES, from_table
from harness.contracts import registry
from harness.contracts.checks import Settings
from harness.store.folder import RunFolder
from harness.values import ACKS_ALL
from harness.verdict import SystemVerdict
from tests.analysis.corruptions import CORRUPTIONS, MODEL
from tests.analysis.model_cluster import INHERITED_BY_TOPICS
from tests.analysis.model_evidence import Evidence
from tests.analysis.model_run import STEPS, history
from tests.sampling import sampled
from tests.verdicts import FAIL, UNKNOWN

pytestmark = [pytest.mark.spark, pytest.mark.whole]

SEEDS = range(int(os.environ.get("CHAOS_HISTORIES", "60")))
TODAY = sampled(list(CORRUPTIONS), 24)
PLANTED_IN = 1
"""Histories that each corruption is planted in, if so many have what it takes."""
SETTINGS = Settings(
    quorum_resigns_ms=5_000,
    acks=frozenset({ACKS_ALL, 0, 1}),
    min_insync_replicas=2,
    unclean_leader_election=False,
    idempotence=True,
    inherited_by_topics=INHERITED_BY_TOPICS,
    producers_expire=False,
)
RUNS = T.StructType([T.StructField("run_id", T.StringType()), *(T.StructField(kind, LINES) for kind in SCHEMAS)])


@dataclass(frozen=True)
class Judged:
    intact: dict[int, Judgement]
    planted: dict[str, dict[int, Judgement]]
    """By corruption and seed."""


def judged_at_once(spark: SparkSession, runs: dict[str, Evidence], root: Path) -> dict[str, Judgement]:
    table = pa.Table.from_pylist([run.row(run_id) for run_id, run in runs.items()], schema=to_arrow_schema(RUNS))
    parquet.write_table(table, root / "runs.parquet")
    sources = from_table(spark.read.schema(RUNS).parquet(str(root / "runs.parquet")), table.nbytes, root / "rows")
    question = Question(settings=dict.fromkeys(runs, SETTINGS))
    judgements = judge_sources(spark, sources, [question], into=RunFolder(root / "judged"), keep=False)
    return {judgement.run_id: judgement for judgement in judgements}


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    runs = {seed: history(seed) for seed in SEEDS}
    intact = {f"intact {seed}": run for seed, run in runs.items()}
    planted = {f"{name} {seed}": run for name in TODAY for seed, run in corrupted(name, runs).items()}
    answers = judged_at_once(spark, intact | planted, tmp_path_factory.mktemp("generated"))
    return Judged(
        intact={seed: answers[f"intact {seed}"] for seed in SEEDS},
        planted={
            name: {seed: answers[f"{name} {seed}"] for seed in SEEDS if f"{name} {seed}" in answers} for name in TODAY
        },
    )


def corrupted(name: str, runs: dict[int, Evidence]) -> dict[int, Evidence]:
    """Return a few histories that a corruption can be planted in, with it; each corruption begins at another seed."""
    planted: dict[int, Evidence] = {}
    first = list(CORRUPTIONS).index(name)
    for seed in (*SEEDS[first:], *SEEDS[:first]):
        copy = runs[seed].copy()
        if len(planted) < PLANTED_IN and CORRUPTIONS[name].plant(copy):
            planted[seed] = copy
    return planted


def accused(judgement: Judgement, verdict: SystemVerdict = FAIL) -> dict[str, str]:
    return {result.check: result.reason for result in judgement.checks if result.verdict == verdict}


def shortest(spark: SparkSession, seed: int, root: Path) -> int:
    """Return the fewest steps after which the history of a seed is accused; all its beginnings are judged at once."""
    beginnings = {f"{steps}": history(seed, steps) for steps in range(STEPS + 1)}
    answers = judged_at_once(spark, beginnings, root)
    return min(int(steps) for steps, judgement in answers.items() if accused(judgement))


def test_a_history_in_which_nothing_is_wrong_is_never_accused(
    judged: Judged, spark: SparkSession, tmp_path: Path
) -> None:
    wrong = {seed: accused(judgement) for seed, judgement in judged.intact.items() if accused(judgement)}
    if wrong:
        seed = next(iter(wrong))
        steps = shortest(spark, seed, tmp_path)
        pytest.fail(f"{len(wrong)} of {len(SEEDS)}; history({seed}, {steps}) is accused: {wrong[seed]}")


def test_whoever_cannot_tell_says_that_there_was_nothing(judged: Judged) -> None:
    doubts = [reason for judgement in judged.intact.values() for reason in accused(judgement, UNKNOWN).values()]
    assert all(reason.startswith("nothing to judge: no rows in") for reason in doubts)
    assert len(doubts) < len(SEEDS)


@pytest.mark.parametrize("name", TODAY)
def test_one_thing_wrong_is_found_by_its_checks_and_by_no_other(name: str, judged: Judged) -> None:
    corruption, answers = CORRUPTIONS[name], judged.planted[name]
    assert answers, "no history has what it takes"
    for seed, judgement in answers.items():
        checks = accused(judgement)
        assert corruption.finders <= set(checks) <= corruption.finders | corruption.also | {MODEL}, (
            f"seed {seed}: {checks}"
        )
        unknown = set(accused(judgement, UNKNOWN)) - set(accused(judged.intact[seed], UNKNOWN))
        assert unknown == corruption.unknown, f"seed {seed}"


def test_every_check_finds_something() -> None:
    checks = {check for corruption in CORRUPTIONS.values() for check in corruption.finders}
    assert checks == {registry.check(name).name for name in registry.names(registry.Kind.CHECK)}

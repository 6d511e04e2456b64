"""A large history is judged in other ways than a small one, and gets the same answers."""

from collections import Counter
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from harness.analysis.engine.session import configured
from harness.analysis.facts.availability import availability
from harness.analysis.facts.build import Facts, fact_path, read_facts, through_files, written_counts
from harness.analysis.facts.clients import completed, sends
from harness.analysis.facts.steps import (
    poll_steps,
    poll_steps_of_many,
    send_reversals,
    send_reversals_of_many,
)
from harness.analysis.judge import Question, judge_sources
from harness.analysis.prefilter import prefiltered
from harness.analysis.sources.reading import read
from harness.analysis.sources.state_changes import StateChanges
from harness.contracts import registry
from harness.contracts.checks import Settings
from harness.store.folder import RunFolder
from tests.analysis.prefilter_histories import tables
from tests.analysis.run_folders import write_intact_run
from tests.checks.answers import OF_A_LARGE_HISTORY
from tests.verdicts import FAIL, PASS
from tools.typed_history import RUN_ID, make

pytestmark = [pytest.mark.spark, pytest.mark.whole]

SEEDS = range(800)
SHIFT = 58
"""Of offsets: some answers are to batches that begin in one block of 64 offsets and end in another."""
SETTINGS = Settings(acks=frozenset({-1}), min_insync_replicas=2, unclean_leader_election=False, idempotence=False)
SLICED_CHECKS = [c for c in map(registry.check, registry.names(registry.Kind.CHECK)) if c.prefiltered]
PLACE_IN_A_POLL = ("run_id", "process", "mode", "topic", "partition", "index", "position")
PLACE_OF_A_SEND = ("run_id", "process", "topic", "partition", "index")


@pytest.fixture(scope="module")
def facts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Facts:
    folder: Path = tmp_path_factory.mktemp("facts")
    for name, table in tables(SEEDS).items():
        fact_path(folder, name).mkdir()
        pq.write_table(table, fact_path(folder, name) / "part-0.parquet")
    return read_facts(spark, folder)


def in_order(rows: DataFrame, *place: str) -> DataFrame:
    """Return the rows of the runs in which no two have the same place: in what order they come is chance."""
    twice = rows.groupBy(*place).count().where("count > 1").select("run_id").distinct()
    return rows.join(twice, on="run_id", how="left_anti")


def texts(rows: DataFrame) -> Counter[str]:
    return Counter(row.text for row in rows.select(F.to_json(F.struct(*rows.columns)).alias("text")).collect())


def test_any_condition_can_be_put_to_what_went_through_files(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1, [2, 3]), (2, [])], "number int, parts array<int>")
    read = through_files({"some": rows, "none": rows.where("number > 2")}, tmp_path)
    looking_into = F.exists("parts", lambda part: part > 2)
    assert {name: [row.number for row in frame.where(looking_into).collect()] for name, frame in read.items()} == {
        "some": [1],
        "none": [],
    }


def test_what_has_no_rows_takes_the_place_of_what_had(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1,), (2,)], "number int")
    through_files({"some": rows}, tmp_path)
    read = through_files({"some": rows.where("number > 2")}, tmp_path)
    assert read["some"].collect() == []
    assert pads.dataset(fact_path(tmp_path, "some"), format="parquet").schema.names == ["number"]


def test_operations_of_many_lines(spark: SparkSession, tmp_path: Path) -> None:
    lines = read(spark, [write_intact_run(tmp_path / "run")], tmp_path / "rows", make_tables=False).lines["operations"]
    expected = texts(completed(lines))
    assert expected.total() > 40
    with configured(spark, OF_A_LARGE_HISTORY):
        assert texts(completed(lines)) == expected


@pytest.mark.parametrize("few", [100_000, 0], ids=["of which few are odd", "of which many are odd"])
def test_steps_of_many_polls(few: int, facts: Facts, spark: SparkSession) -> None:
    polls = in_order(facts["polls"], *PLACE_IN_A_POLL)
    expected = texts(poll_steps(polls))
    assert expected.total() > 100
    with configured(spark, OF_A_LARGE_HISTORY):
        assert texts(poll_steps_of_many(polls, few)) == expected


@pytest.mark.parametrize("few", [100_000, 0], ids=["of which few are odd", "of which many are odd"])
def test_reversals_of_many_sends(few: int, facts: Facts) -> None:
    rows = in_order(facts["sends"], *PLACE_OF_A_SEND)
    expected = texts(send_reversals(rows))
    assert expected.total() > 50
    assert texts(send_reversals_of_many(rows, few)) == expected


@pytest.mark.parametrize("few", [1_000_000, 0], ids=["with few pauses", "with many pauses"])
def test_when_many_sends_were_not_answered(few: int, facts: Facts) -> None:
    expected = texts(availability(facts["sends"]))
    assert expected.total() > 100
    assert texts(availability(facts["sends"], many=True, few=few)) == expected


@pytest.mark.parametrize("few", [100_000, 0], ids=["by few answers", "by many answers"])
def test_in_which_epoch_many_sends_were_acknowledged(few: int, spark: SparkSession, facts: Facts) -> None:
    operations = facts["sends"].selectExpr("*", "'send' as kind", f"offset + {SHIFT} as ok_offset")
    random = Random(7)
    answers = [_answer(random, seed) for seed in SEEDS for _ in range(random.choice((1, 2, 12)))]
    lines = StateChanges({"produce_resp": spark.createDataFrame(pa.Table.from_pylist(answers))})
    expected = texts(sends(operations, lines, facts["polls"]))
    epochs = Counter(
        row.leader_epoch for row in sends(operations, lines, facts["polls"]).select("leader_epoch").collect()
    )
    assert len(epochs) > 3
    assert texts(sends(operations, lines, facts["polls"], many=True, few=few)) == expected


def _answer(random: Random, seed: int) -> dict[str, object]:
    """Return an answer to a batch of up to four records; some offsets are answered more than once."""
    base = random.randint(0, 40)
    return {
        "run_id": str(seed),
        "ev": "produce_resp",
        "topic": "t",
        "partition": random.choice((0, 0, 1)),
        "base_offset": SHIFT + base,
        "last_offset": SHIFT + base + random.choice((-1, 0, 1, 2, 3, 150)),
        "error": random.choice(("0", "0", "0", "6")),
        "time_ns": base * 100_000_000 + random.choice((10_000_000, 40_000_000, 600_000_000)),
        "leader_epoch": random.randint(0, 4),
    }


@pytest.mark.parametrize(
    ("damage", "finders"),
    [
        pytest.param("true", set(), id="in which nothing is wrong"),
        pytest.param('"partition" <> 1 OR "offset" <> 2500', {"lost-write"}, id="with a record that was not read"),
    ],
)
def test_a_long_history_is_judged_by_slices(
    damage: str, finders: set[str], spark: SparkSession, tmp_path: Path
) -> None:
    history = make(tmp_path, 30_000)
    polls = history.paths["polls"]
    duckdb.sql(f"COPY (SELECT * FROM '{polls}' WHERE {damage}) TO '{tmp_path}/damaged.parquet'")
    (tmp_path / "damaged.parquet").replace(polls)
    question = Question(settings={RUN_ID: SETTINGS})
    into = RunFolder(tmp_path / RUN_ID)
    (judgement,) = judge_sources(spark, history.sources(spark), [question], into=into)
    assert {check.check for check in judgement.checks if check.verdict == FAIL} == finders
    judged = {check.name for check in SLICED_CHECKS}
    assert {check.check for check in judgement.checks if check.verdict == PASS} >= judged - finders
    facts = read_facts(spark, into.facts)
    with prefiltered(facts, {RUN_ID: written_counts(into.facts)}, tmp_path) as slices:
        assert 0 < slices["polls"].count() < facts["polls"].count() / 10
    assert not list(into.facts.glob(".*")), "slices are gone when they were judged"

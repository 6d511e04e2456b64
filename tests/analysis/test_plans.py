"""How Spark carries out facts and checks, by its physical plans alone: what would end a run of millions is absent."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.facts.build import fact_path, facts_from_facts, facts_from_tables, read_facts, tables_of
from harness.analysis.prefilter import SLICED, dirty_blocks
from harness.analysis.sources.lines import SCHEMAS
from harness.analysis.sources.reading import LINES, Sources, from_table
from harness.analysis.sources.typed import FACTS
from harness.analysis.tables.schemas import TABLES
from harness.contracts import registry
from harness.contracts.checks import Settings
from harness.values import ACKS_ALL
from tests.analysis.fact_rows import sent, table_of

pytestmark = [pytest.mark.spark, pytest.mark.jvm]

SETTINGS = Settings(
    acks=frozenset({ACKS_ALL}), min_insync_replicas=2, unclean_leader_election=False, idempotence=True, power_loss=False
)
FORBIDDEN = {
    r"CartesianProduct|BroadcastNestedLoopJoin": "joins all rows with all rows",
    r"Exchange SinglePartition": "brings all rows to one task, as a window without a key does",
    r"Python|InPandas|InArrow": "starts Python workers",
}
AS_ON_A_CLUSTER = {
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.maxMetadataStringLength": "2000",
}
"""With one task nothing is ever brought together, and what is small need not be joined by a key; paths are whole."""
LARGE = ("sends", "polls", "replica_records", "high_watermarks")
"""Facts that grow with the number of records."""
MADE_OTHERWISE = ("sends", "availability", "poll_steps", "send_reversals")
"""Facts that are made in another way where a history is large."""
SCANS = 2
"""How often a check may read a large fact."""
MORE_SCANS = {
    ("unseen", "polls"): 5,
    ("unseen", "sends"): 3,
    ("duplicate", "polls"): 3,
    ("lost-write", "polls"): 5,
    ("I20", "sends"): 4,
    ("lost-committed-write", "polls"): 5,
    ("torn-transaction", "polls"): 5,
    ("torn-transaction", "sends"): 3,
    ("transaction-cycles", "sends"): 5,
    ("transaction-cycles", "polls"): 7,
    ("transactional-offsets", "replica_records"): 3,
    ("exactly-once", "sends"): 6,
}
"""How often each reads what is large: to narrow what moves, to see what was not read, or how long clients lived."""


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def complaints(plan: str) -> list[str]:
    return [why for pattern, why in FORBIDDEN.items() if re.search(pattern, plan)]


@pytest.fixture(scope="module")
def on_a_cluster(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name) for name in AS_ON_A_CLUSTER}
    for name, value in AS_ON_A_CLUSTER.items():
        spark.conf.set(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.analysis.frames.is_local", lambda _: False)  # what is stored would hide its plan
        yield spark
    for name, earlier in before.items():
        assert earlier is not None
        spark.conf.set(name, earlier)


@pytest.fixture(scope="module")
def facts(on_a_cluster: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    """All facts as files, so that a plan says which it reads."""
    folder: Path = tmp_path_factory.mktemp("facts")
    for name in TABLES:
        fact_path(folder, name).mkdir()
    return read_facts(on_a_cluster, folder)


@pytest.fixture(scope="module")
def of_checks(facts: dict[str, DataFrame]) -> dict[str, str]:
    """The plan of each check: what it finds, and the runs that it cannot judge."""
    plans = {}
    for name in registry.names(registry.Kind.CHECK):
        check = registry.check(name)
        doubts = [each.broken(*(facts[fact] for fact in each.facts)) for each in check.assumes]
        plans[name] = "\n".join(map(plan_of, [check.findings(facts, SETTINGS), *doubts]))
    return plans


@pytest.fixture(scope="module")
def of_facts(
    on_a_cluster: SparkSession, facts: dict[str, DataFrame], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The plan of each fact, from the lines of many runs, and of those of large histories."""
    one_line = [F.create_map(F.lit("file"), F.array(F.lit("{}"))).cast(LINES).alias(kind) for kind in SCHEMAS]
    run = on_a_cluster.range(1).select(F.lit("run").alias("run_id"), *one_line)
    sources: Sources = from_table(run, 1_000_000_000, tmp_path_factory.mktemp("rows"))
    tables = tables_of(sources)
    makers = facts_from_tables(tables) | facts_from_facts(facts, sources, tables)
    large = facts_from_tables(tables, many=True) | facts_from_facts(facts, replace(sources, together=False), tables)
    makers |= {f"{name} of many": large[name] for name in MADE_OTHERWISE}
    made = {name: tables[name] for name in FACTS} | {name: make() for name, make in makers.items()}
    return {name: plan_of(frame) for name, frame in made.items()}


@pytest.mark.parametrize("name", registry.names(registry.Kind.CHECK))
def test_the_plan_of_a_check(name: str, of_checks: dict[str, str]) -> None:
    assert complaints(of_checks[name]) == []


@pytest.mark.parametrize("name", registry.names(registry.Kind.CHECK))
def test_how_often_a_check_reads_what_is_large(name: str, of_checks: dict[str, str]) -> None:
    read = {fact: len(re.findall(rf"/{fact}\.parquet", of_checks[name])) for fact in LARGE}
    assert {fact: number for fact, number in read.items() if number > MORE_SCANS.get((name, fact), SCANS)} == {}


@pytest.mark.parametrize("name", [*TABLES, *(f"{name} of many" for name in MADE_OTHERWISE)])
def test_the_plan_of_a_fact(name: str, of_facts: dict[str, str]) -> None:
    assert complaints(of_facts[name]) == []


def test_the_plan_by_which_blocks_are_compared(facts: dict[str, DataFrame]) -> None:
    plan = plan_of(dirty_blocks(facts))
    assert complaints(plan) == []
    assert [len(re.findall(rf"/{fact}\.parquet", plan)) for fact in SLICED] == [1, 1, 1]


def _every_row_with_every_row(rows: DataFrame) -> DataFrame:
    return rows.join(rows.withColumnRenamed("offset", "other"), on=F.col("offset") < F.col("other"), how="inner")


def _no_key(rows: DataFrame) -> DataFrame:
    return rows.repartition(4).withColumn("before", F.lag("offset").over(Window.orderBy("offset")))


def _python(rows: DataFrame) -> DataFrame:
    return rows.withColumn("twice", F.udf(lambda offset: offset * 2, "bigint")("offset"))


@pytest.mark.parametrize("bad", [_every_row_with_every_row, _no_key, _python])
def test_what_must_not_be_there_is_noticed(bad: Callable[[DataFrame], DataFrame], on_a_cluster: SparkSession) -> None:
    rows = table_of(on_a_cluster, "sends", [sent("a", 1)[1]]).select("run_id", "offset")
    assert len(complaints(plan_of(bad(rows)))) == 1
    assert complaints(plan_of(rows)) == []

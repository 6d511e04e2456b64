"""How long do Spark and DuckDB take for the heavy queries of judging, on the same Parquet facts?

    python -m benchmarks.duckdb_peer RUN [--rounds 3]
    python -m benchmarks.duckdb_peer --operations 10000000 [--intact]

RUN is the folder of a run that was judged, for example one that `python -m benchmarks.judging --keep FOLDER` left. For
a number of operations the facts of a `typed_history` are made on the spot. They are damaged in the same way for both
as they are read, but for `--intact`: some polls are dropped and some values changed, so that every query has rows. Both
must count the same, or no figures are shown. Both have two threads and 2 GB. Of what is intact Spark makes slices
first, as the judge does, and what that takes is counted.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import duckdb
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.typed_history import make_facts
from harness.analysis.engine.session import LARGE_BYTES, spark_session, tuned
from harness.analysis.facts.build import Facts, fact_path, read_facts, written_counts
from harness.analysis.facts.steps import poll_steps_of_many, send_reversals_of_many
from harness.analysis.gate import SLICED, sliced
from harness.analysis.sources.reading import as_lines
from harness.analysis.tables.clients import POLL_STEPS, SEND_REVERSALS
from harness.contracts import registry
from harness.contracts.checks import Settings
from harness.experiment.judge import settings_of
from harness.scenario.file import load_scenario, scenario_of
from harness.scenario.plan import load_plan, make_plan
from harness.store.folder import RunFolder

THREADS, MEMORY = 2, "2GB"
POLLS = """SELECT * REPLACE (CASE WHEN "offset" % 991 = 0 THEN concat(value, '?') ELSE value END AS value)
FROM {polls} WHERE "offset" % 997 <> 0"""
"""The damage in DuckDB's SQL."""
ACKNOWLEDGED = """SELECT * FROM sends WHERE outcome = 'ok' AND "offset" IS NOT NULL"""
GATE = "slices"
QUERIES: Mapping[str, str] = {
    "lost-write": f"""
        SELECT count(*) FROM ({ACKNOWLEDGED}) a
        ANTI JOIN polls USING (run_id, topic, "partition", value)
        JOIN (SELECT run_id, topic, "partition", max("offset") AS last FROM polls GROUP BY ALL)
        USING (run_id, topic, "partition") WHERE a."offset" < last""",
    "phantom": """
        SELECT count(*) FROM (
            SELECT DISTINCT run_id, topic, "partition", "offset", value FROM polls
            ANTI JOIN sends USING (run_id, topic, value) SEMI JOIN sends USING (run_id, topic))""",
    "inconsistent-offsets": f"""
        SELECT count(*) FROM (
            SELECT run_id, topic, "partition", "offset" FROM (
                SELECT run_id, topic, "partition", "offset", value FROM polls
                UNION ALL SELECT run_id, topic, "partition", "offset", value FROM ({ACKNOWLEDGED}) WHERE acks = -1)
            GROUP BY ALL HAVING min(value) <> max(value))""",
    POLL_STEPS.name: """
        SELECT count(*) FROM (
            SELECT "offset", lag("offset") OVER (
                PARTITION BY run_id, process, mode, topic, "partition" ORDER BY index, position) AS before FROM polls)
        WHERE "offset" <> before + 1""",
    SEND_REVERSALS.name: f"""
        SELECT count(*) FROM (
            SELECT "offset", max("offset") OVER (
                PARTITION BY run_id, process, topic, "partition" ORDER BY index
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS furthest FROM ({ACKNOWLEDGED}))
        WHERE "offset" < furthest""",
}
"""In DuckDB's SQL; each counts the findings of the check, or the rows of the fact, that Spark computes."""
MADE: Mapping[str, Callable[[Facts], DataFrame]] = {
    POLL_STEPS.name: lambda facts: poll_steps_of_many(facts["polls"]),
    SEND_REVERSALS.name: lambda facts: send_reversals_of_many(facts["sends"]),
}
"""Facts among the queries: how Spark makes them of a large history."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("run", type=Path, nargs="?")
    source.add_argument("--operations", type=int)
    parser.add_argument("--intact", action="store_true", help="nothing is damaged")
    parser.add_argument("--rounds", type=int, default=3, help="the fastest of so many counts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as temporary:
        if options.run is None:
            scenario = load_scenario("smoke")
            settings, facts = settings_of(scenario, make_plan(scenario, 1)), Path(temporary)
            options.operations = make_facts(facts, options.operations)
        else:
            folder = RunFolder(options.run)
            settings, facts = settings_of(scenario_of(folder), load_plan(folder.plan)), folder.facts
        compare(facts, settings, options)


def compare(facts: Path, settings: Settings, options: argparse.Namespace) -> None:
    """Run the queries in both, and print how long each took."""
    rounds, operations, intact = options.rounds, options.operations, options.intact
    files = [path for path in facts.rglob("*.parquet") if path.is_file()]
    size_bytes = sum(path.stat().st_size for path in files)
    with spark_session(lasting=True) as spark, tuned(spark, LARGE_BYTES, read_bytes=as_lines(files)):
        by_spark = counts_by_spark(spark, facts, settings, rounds, intact=intact)
    by_duckdb = counts_by_duckdb(facts, rounds, intact=intact)
    different = {name for name in QUERIES if by_spark[name][0] != by_duckdb[name][0]}
    if different:
        raise SystemExit(
            f"Spark and DuckDB differ: { {name: (by_spark[name], by_duckdb[name]) for name in different} }"
        )
    table = Table("query", "rows", "Spark, s", "DuckDB, s", "Spark / DuckDB", title=f"{size_bytes / 1e6:,.0f} MB")
    if intact:
        table.add_row(GATE, f"{by_spark[GATE][0]:,}", f"{by_spark[GATE][1]:.2f}", "", "")
    for name in QUERIES:
        (count, spark_s), (_, duckdb_s) = by_spark[name], by_duckdb[name]
        table.add_row(name, f"{count:,}", f"{spark_s:.2f}", f"{duckdb_s:.2f}", f"{spark_s / duckdb_s:.1f}")
    all_s = [sum(seconds for _, seconds in answers.values()) for answers in (by_spark, by_duckdb)]
    table.add_row("all", "", f"{all_s[0]:.2f}", f"{all_s[1]:.2f}", f"{all_s[0] / all_s[1]:.1f}")
    if operations is not None:
        table.add_row("operations/s", "", *(f"{operations / seconds:,.0f}" for seconds in all_s), "")
    Console().print(table)


def counts_by_spark(
    spark: SparkSession, folder: Path, settings: Settings, rounds: int, *, intact: bool
) -> dict[str, tuple[int, float]]:
    """Return how many rows each query has and the seconds that counting took; of slices, which are made once."""
    facts = read_facts(spark, folder)
    if not intact:
        facts["polls"] = damaged(facts["polls"])
        return {name: fastest(partial(count_of, name, facts, settings), rounds) for name in QUERIES}
    began = time.perf_counter()
    with sliced(facts, {"": written_counts(folder)}, folder) as slices:
        took = time.perf_counter() - began
        handed = {name: facts if name in MADE else slices for name in QUERIES}
        counts = {name: fastest(partial(count_of, name, handed[name], settings), rounds) for name in QUERIES}
        return {GATE: (sum(slices[name].count() for name in SLICED), took)} | counts


def damaged(polls: DataFrame) -> DataFrame:
    """Return the polls with the damage of `POLLS`."""
    value = "CASE WHEN offset % 991 = 0 THEN concat(value, '?') ELSE value END AS value"
    columns = (value if name == "value" else name for name in polls.columns)
    return polls.where("offset % 997 <> 0").selectExpr(*columns)


def count_of(name: str, facts: Facts, settings: Settings) -> int:
    """Return how much a check finds, or how many rows a fact has that is made anew."""
    rows = MADE[name](facts) if name in MADE else registry.check(name).findings(facts, settings)
    return rows.count()


def counts_by_duckdb(folder: Path, rounds: int, *, intact: bool) -> dict[str, tuple[int, float]]:
    """Return how many rows each query has and the seconds that counting took."""
    with duckdb.connect(config={"threads": THREADS, "memory_limit": MEMORY}) as database:
        sends, polls = (f"read_parquet('{fact_path(folder, name)}/*.parquet')" for name in ("sends", "polls"))
        database.execute(f"CREATE VIEW sends AS SELECT * FROM {sends}")
        database.execute(f"CREATE VIEW polls AS {f'SELECT * FROM {polls}' if intact else POLLS.format(polls=polls)}")

        def count(query: str) -> int:
            row = database.execute(query).fetchone()
            assert row is not None, "a count has a row"
            return int(row[0])

        return {name: fastest(partial(count, query), rounds) for name, query in QUERIES.items()}


def fastest(count: Callable[[], int], rounds: int) -> tuple[int, float]:
    """Return the count and the seconds of the fastest round."""
    rows, seconds = 0, float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        rows = count()
        seconds = min(seconds, time.perf_counter() - began)
    return rows, seconds


if __name__ == "__main__":
    main()

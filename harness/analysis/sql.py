"""Which tables of judged runs can a person ask questions of?"""

import logging
import re
from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from harness.analysis.engine.bisection import SPARK_ERRORS
from harness.analysis.engine.compat import to_read
from harness.analysis.engine.jvm import raise_if_engine_lost
from harness.analysis.engine.storage import reason
from harness.analysis.facts.build import fact_path, written_counts
from harness.analysis.sources.reading import no_rows
from harness.analysis.tables.schemas import TABLES
from harness.analysis.tables.table import Column
from harness.contracts.checks import FINDING_COLUMNS
from harness.errors import ScenarioError
from harness.store.folder import RunFolder

FINDINGS = "findings"
OVERVIEW, MEANINGS = "tables", "columns"
_READS = re.compile(r"\s*(select|with)\b(?!.*\bidentifier\s*\()", re.IGNORECASE | re.DOTALL)
_FINDINGS = [Column(*column, about="") for column in FINDING_COLUMNS]


def make_views(spark: SparkSession, folders: Sequence[RunFolder], query: str) -> None:
    """Make a view of each fact and of the findings, and two that say what they are and what their columns hold.

    Of facts and findings those that the query names, if it reads rows: all of them take seconds.

    Raises:
        ScenarioError: a fact is damaged.
    """
    _make(_overview(spark, folders), OVERVIEW, query)
    _make(_meanings(spark), MEANINGS, query)
    for name in _named(query, TABLES):
        paths = [fact_path(folder.facts, name) for folder in folders]
        rows = _read(spark, [to_read(spark, path) for path in paths if path.is_dir()], TABLES[name].columns)
        _make(rows, name, query)
    for name in _named(query, [FINDINGS]):
        findings = [to_read(spark, folder.findings) for folder in folders if any(folder.findings.rglob("*.parquet"))]
        _make(_read(spark, findings, _FINDINGS), name, query)


def _make(rows: DataFrame, name: str, query: str) -> None:
    """Make a view under its name and as the query spells it: names of views differ by case in Sail 0.7.2."""
    for spelling in {name, *(word for word in re.findall(r"\w+", query) if word.lower() == name)}:
        rows.createOrReplaceTempView(spelling)


def _named(query: str, names: Iterable[str]) -> list[str]:
    """Return those of these tables that a query may read; all of them, if it asks for anything but rows."""
    words = {word.lower() for word in re.findall(r"\w+", query)}
    return [name for name in names if name in words or not _READS.match(query)]


def _read(spark: SparkSession, paths: Sequence[str], columns: Iterable[Column]) -> DataFrame:
    schema = [(column.name, column.type) for column in columns]
    ddl = ", ".join(f"`{name}` {type_}" for name, type_ in schema)
    rows = spark.read.schema(ddl).parquet(*paths) if paths else no_rows(spark, schema)
    return rows.select(*(name for name, _ in schema))


def _meanings(spark: SparkSession) -> DataFrame:
    """Return one row a column of any table: table, name, type, and its meaning where it has a description."""
    tables = {name: table.columns for name, table in TABLES.items()} | {FINDINGS: _FINDINGS}
    rows = [
        {"table": name, "name": column.name, "type": column.type, "about": column.about}
        for name, columns in tables.items()
        for column in columns
    ]
    return spark.createDataFrame(pa.Table.from_pylist(rows))


def _overview(spark: SparkSession, folders: Sequence[RunFolder]) -> DataFrame:
    try:
        counts = [written_counts(folder.facts) for folder in folders]
    except pa.ArrowInvalid as error:
        raise ScenarioError(f"a fact cannot be read; chaos rejudge writes it again: {error}") from error
    return spark.createDataFrame(
        pa.table(
            {
                "table": list(TABLES),
                "a_row_is": [table.row for table in TABLES.values()],
                "rows": [sum(of_run[name] for of_run in counts) for name in TABLES],
            }
        )
    )


def answer(spark: SparkSession, query: str, at_most: int) -> tuple[list[str], list[Row]]:
    """Return the columns and the first rows of what a query asks for, one more than so many if there are more.

    Raises:
        ScenarioError: it cannot be carried out.
    """
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # it shows the JVM's stack
    try:
        frame = spark.sql(query)
        return frame.columns, frame.limit(at_most + 1).collect()
    except SPARK_ERRORS as error:
        raise_if_engine_lost(error)
        raise ScenarioError(reason(error)) from error

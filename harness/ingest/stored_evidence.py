"""Facts and findings behind a URI for the report: Spark aggregates them, so that little data is transferred."""

from collections.abc import Collection
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.engine.hadoop import HadoopPath
from harness.analysis.engine.storage import literal_glob
from harness.analysis.facts.build import fact_path
from harness.analysis.tables.schemas import TABLES
from harness.contracts.checks import FINDING_COLUMNS
from harness.report.evidence import Evidence, Second
from harness.report.findings import SEVERITIES, SHOWN_FINDINGS, FindingGroup, Row, Span, gathered
from harness.store.folder import ResultFolder

SHOWN_ROWS = 10_000
"""Limit of rows of small facts, and of partitions with findings."""
_GROUP = ("severity", "check")
_QUANTILES = [0.5, 0.99]


class StoredEvidence(Evidence):
    """Facts and findings in a folder of any file system that Hadoop knows."""

    def __init__(self, folder: ResultFolder[HadoopPath]) -> None:
        self._folder = folder
        super().__init__()

    def rows(self, name: str, order: str, *, descending: bool = False) -> list[Row]:
        """Return the first rows of a fact as dictionaries."""
        by = F.desc_nulls_last(order) if descending else F.asc_nulls_last(order)
        return _brought(self._fact(name).orderBy(by).limit(SHOWN_ROWS))

    def groups(self) -> list[FindingGroup]:
        """Return the findings by severity and check: how many, by which excuses, where, and the first."""
        if not self._folder.findings.glob("check=*"):
            return []
        schema = ", ".join(f"`{name}` {type_}" for name, type_ in FINDING_COLUMNS)
        findings = self._read(schema, self._folder.findings)
        place = [F.asc_nulls_first(name) for name in ("topic", "partition", "offset")]
        number = F.row_number().over(Window.partitionBy(*_GROUP).orderBy(*place))
        shown = findings.withColumn("number", number).where(F.col("number") <= SHOWN_FINDINGS)
        known = findings.dropna(subset=["topic", "partition", "offset"]).where(F.col("topic") != "")
        spans = (
            known.groupBy(*_GROUP, "topic", "partition")
            .agg(F.count("*").alias("count"), F.min("offset").alias("first"), F.max("offset").alias("last"))
            .orderBy(*_GROUP, "topic", "partition")
            .limit(SHOWN_ROWS)
        )
        places: dict[tuple[str, str], list[Span]] = {}
        for row in _brought(spans):
            span = Span(
                partition=f"{row['topic']}-{row['partition']}",
                count=row["count"],
                first=row["first"],
                last=row["last"],
            )
            places.setdefault((row["severity"], row["check"]), []).append(span)
        counts: dict[tuple[str, str], dict[str, int]] = {}
        for row in _brought(findings.groupBy(*_GROUP, "excuse").count()):
            counts.setdefault((row["severity"], row["check"]), {})[row["excuse"] or ""] = row["count"]
        first: dict[tuple[str, str], list[Row]] = {}
        for row in _brought(shown.orderBy(*_GROUP, "number").drop("number")):
            first.setdefault((row["severity"], row["check"]), []).append(row)
        return [
            gathered(first[group], counts[group], places.get(group, []))
            for group in sorted(first, key=lambda group: (SEVERITIES.index(group[0]), group[1]))
        ]

    def per_second(self) -> list[Second]:
        """Return the counts of each second, latency by Spark's approximate percentiles."""
        sends = self._fact("sends").where(F.col("complete_ns").isNotNull())
        answered = (F.col("outcome") == "ok") & (F.col("acks") != 0)
        took_ms = F.when(answered, (F.col("complete_ns") - F.col("invoke_ns")) / 1e6)
        sent = sends.groupBy(self._second("complete_ns")).agg(
            *(F.count_if(F.col("outcome") == outcome).alias(outcome) for outcome in ("ok", "fail", "info")),
            F.percentile_approx(took_ms, _QUANTILES).alias("took_ms"),
        )
        polled = self._fact("polls").groupBy(self._second("time_ns")).agg(F.count("*").alias("consumed"))
        done: dict[int, dict[str, Any]] = {row["second"]: row for row in _brought(sent)}
        consumed: dict[int, int] = {row["second"]: row["consumed"] for row in _brought(polled)}
        seconds = []
        for second in range(max([*done, *consumed], default=-1) + 1):
            row = done.get(second, {})
            p50_ms, p99_ms = row.get("took_ms") or (None, None)
            seconds.append(
                Second(
                    second=second,
                    acknowledged=row.get("ok", 0),
                    failed=row.get("fail", 0),
                    unknown=row.get("info", 0),
                    consumed=consumed.get(second, 0),
                    p50_ms=p50_ms,
                    p99_ms=p99_ms,
                )
            )
        return seconds

    def _ended(self) -> int:
        return self._asking_sends().count()

    def _sends(self, every_ns: int) -> list[Row]:
        sends = self._asking_sends()
        if not every_ns:
            return _brought(sends)
        took, row = F.expr("complete_ns - invoke_ns"), F.struct(*sends.columns)
        span = F.expr(f"(complete_ns - {self.zero_ns}) div {every_ns}")
        ends = sends.groupBy("outcome", span).agg(F.min_by(row, took).alias("first"), F.max_by(row, took).alias("last"))
        return _brought(ends.select(F.explode(F.array("first", "last")).alias("row")).select("row.*").distinct())

    def _asking_sends(self) -> DataFrame:
        return self._fact("sends").where(F.col("complete_ns").isNotNull() & (F.col("acks") != 0))

    def _sends_at(self, offsets: Collection[int]) -> list[Row]:
        ended = self._fact("sends").where(F.col("complete_ns").isNotNull())
        named = ended.where(F.col("offset").isin(list(offsets)))
        return _brought(named.select("topic", "partition", "offset", "complete_ns"))

    def _span(self, name: str, first: str, last: str) -> tuple[int | None, int | None]:
        ((earliest, latest),) = self._fact(name).agg(F.min(first), F.max(last)).collect()
        return earliest, latest

    def _second(self, instant: str) -> Column:
        return F.expr(f"({instant} - {self.zero_ns}) div 1000000000").alias("second")

    def _fact(self, name: str) -> DataFrame:
        return self._read(TABLES[name].ddl, fact_path(self._folder.facts, name))

    def _read(self, schema: str, path: HadoopPath) -> DataFrame:
        return path.spark.read.schema(schema).parquet(literal_glob(str(path)))


def _brought(frame: DataFrame) -> list[Row]:
    rows: list[Row] = frame.toArrow().to_pylist()
    return rows

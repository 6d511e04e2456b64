"""Turns findings and remarks on the evidence into answers, one for each check and run."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from harness.analysis.engine.compat import to_read
from harness.analysis.engine.hadoop import Folder
from harness.analysis.frames import in_turn
from harness.analysis.sources.lineage import PLACES, kinds_of
from harness.analysis.tables.schemas import OF_ONE_LINE, TORN
from harness.contracts.checks import FINDING_COLUMNS, Check, Severity
from harness.store.phase_log import Phase
from harness.store.result import CheckResult, Remark
from harness.verdict import SystemVerdict


@dataclass(frozen=True, slots=True)
class Count:
    """How often a check found something of one severity in one run, and the first of it."""

    number: int = 0
    first: str = ""


def read_findings(spark: SparkSession, folder: Folder) -> dict[tuple[str, str, str], Count]:
    """Return how often each check found what in each run, by run id, check and severity."""
    if not any(folder.glob("check=*")):
        return {}  # nothing was found
    schema = ", ".join(f"`{name}` {type_}" for name, type_ in FINDING_COLUMNS)
    place = in_turn("topic", "partition", "offset", "leader_epoch", "message")
    rows = (
        spark.read.schema(schema)
        .parquet(to_read(spark, folder))
        .groupBy("run_id", "check", "severity")
        .agg(F.count("*").alias("number"), F.min_by("message", place).alias("first"))
    )
    return {(row.run_id, row.check, row.severity): Count(row.number, row.first) for row in rows.collect()}


def result_of(
    check: Check, unknown: str, numbers: Mapping[Severity, Count], holes: Mapping[str, Remark], unseen: str = ""
) -> CheckResult:
    """Return one check's answer on one run: what was found stands, but no promise is kept in evidence with holes.

    Args:
        check: The check.
        unknown: Why it cannot judge the run, if so.
        numbers: How much it found.
        holes: A remark on every kind of evidence that has some.
        unseen: What the evidence does not show of what the check is about.
    """
    violations = numbers[Severity.VIOLATION]
    damaged = [] if violations.number else [holes[kind] for kind in kinds_of(check.needs) if kind in holes]
    if unknown or damaged or (unseen and not violations.number):
        found_nothing = f"nothing was found, in evidence that is damaged: {damaged[0]}" if damaged else unseen
        reason = unknown or found_nothing
        return CheckResult(check=check.name, promise=check.promise, verdict=SystemVerdict.UNKNOWN, reason=reason)
    verdict = SystemVerdict.FAIL if violations.number else SystemVerdict.PASS
    return CheckResult(
        check=check.name,
        promise=check.promise,
        verdict=verdict,
        violations=violations.number,
        expected=numbers[Severity.EXPECTED].number,
        notes=numbers[Severity.NOTE].number,
        reason=violations.first,
    )


def remarks_of(evidence: DataFrame, limit: int) -> tuple[dict[str, list[Remark]], dict[str, dict[str, Remark]]]:
    """Return the remarks on the evidence of each run, so many of all runs; and of the runs with holes, one a kind."""
    place = F.coalesce(*(F.when(F.col("subject").startswith(place), kind) for kind, place in PLACES.items()))
    first = (
        evidence.where(F.col("problem") != TORN)
        .groupBy("run_id", F.coalesce(place, F.lit("")).alias("kind"))
        .agg(F.min_by(F.struct("subject", "problem", "count"), F.struct("subject", "problem")).alias("hole"))
    )
    holes: dict[str, dict[str, Remark]] = {}
    for row in first.collect():
        holes.setdefault(row.run_id, {})[row.kind] = _remark(row.hole)
    remarks: dict[str, list[Remark]] = {}
    for row in evidence.orderBy("run_id", "subject", "problem").limit(limit).collect():
        remarks.setdefault(row.run_id, []).append(_remark(row))
    for run_id, of_run in holes.items():  # the limit may have left out what forbids a PASS
        shown = remarks.setdefault(run_id, [])
        shown += [remark for remark in of_run.values() if remark not in shown]
    return remarks, holes


def _remark(row: Row) -> Remark:
    count, forbids_pass = row["count"], row.problem != TORN
    text = f"{count:,} {OF_ONE_LINE.get(row.problem, row.problem) if count == 1 else row.problem}"
    return Remark(text=text, phase=Phase.JUDGE, subject=row.subject, forbids_pass=forbids_pass)

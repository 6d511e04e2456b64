"""What checks are made of: severities by what excuses them, rows in the shape of findings."""

from collections.abc import Sequence
from functools import reduce
from operator import and_
from string import Formatter

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY
from harness.contracts.checks import FINDING_COLUMNS, Allowance, Settings, Severity

EVIDENCE_LIMIT = 12
_EXCUSED = "excused: "
"""In place of a severity, before the reason of an allowance; `finding` parts them."""


def severity(
    excused_by: Sequence[Allowance], settings: Settings, *, unclean: Column, acks: Column | None = None
) -> Column:
    """Return expected, and by which allowance, where one covers the row, else violation.

    Args:
        excused_by: The allowances of the check; the first that holds is the one that is named.
        settings: What the run was allowed to do.
        unclean: Whether an allowed unclean election followed; see `with_unclean_election`.
        acks: The acks level of the row's record, where one is at stake.
    """
    level = F.lit(None) if acks is None else acks
    verdict: Column = F.lit(Severity.VIOLATION.value)
    for allowance in reversed(excused_by):
        conditions = []
        if allowance.power_loss:
            conditions.append(F.lit(settings.power_loss))
        if allowance.without_idempotence:
            conditions.append(F.lit(not settings.idempotence))
        if allowance.acks is not None:
            conditions.append(level.isin(sorted(allowance.acks)))
        if allowance.unclean_election:
            conditions.append(unclean)
        verdict = F.when(reduce(and_, conditions), f"{_EXCUSED}{allowance.reason}").otherwise(verdict)
    return verdict


def with_unclean_election(
    rows: DataFrame,
    leader_epochs: DataFrame,
    settings: Settings,
    *,
    since: str = "leader_epoch",
    until: str | None = None,
) -> DataFrame:
    """Add `unclean`: whether the row's partition saw an allowed unclean election in a later epoch than that in `since`.

    Where the partition saw none at all, that is null. A row without an epoch counts as older than every election.
    `until` names a column with the last epoch that counts.
    """
    allowed = F.coalesce("unclean_allowed", F.lit(settings.unclean_leader_election))
    elections = (
        leader_epochs.where(F.col("unclean") & allowed)
        .groupBy(*PARTITION_KEY)
        .agg(F.collect_set("leader_epoch").alias("unclean_epochs"))
    )

    def counts(epoch: Column) -> Column:
        later = F.coalesce(epoch > F.col(since), F.lit(True))
        return later if until is None else later & (epoch <= F.col(until))

    return (
        rows.join(elections, on=list(PARTITION_KEY), how="left")
        .withColumn("unclean", F.exists("unclean_epochs", counts))
        .drop("unclean_epochs")
    )


def finding(
    rows: DataFrame,
    check: str,
    *,
    message: Column | str,
    evidence: Column,
    severity: Column | None = None,
    at: str | None = None,
) -> DataFrame:
    """Return the rows as findings; topic, partition, offset and leader epoch are taken from the rows that have them.

    Args:
        rows: One row a finding.
        check: Name of the check.
        message: One sentence: the promise, and how it was broken; a text is a `phrase`.
        evidence: The events that show it, an array of JSON texts.
        severity: A `Severity` as text, with an excuse if `severity` gave it; a violation if there is none.
        at: Column with the instant at which what was lost had been asked for, where there is one.
    """
    severity = F.lit(Severity.VIOLATION.value) if severity is None else severity
    excused = severity.startswith(_EXCUSED)
    values = {
        "check": F.lit(check),
        "severity": F.when(excused, Severity.EXPECTED.value).otherwise(severity),
        "excuse": F.when(excused, F.substr(severity, F.lit(len(_EXCUSED) + 1))),
        "at_ns": F.lit(None) if at is None else F.col(at),
        "message": phrase(message) if isinstance(message, str) else message,
        "evidence": F.slice(F.filter(evidence, lambda event: event.isNotNull()), 1, EVIDENCE_LIMIT),
    }
    columns = []
    for name, type_ in FINDING_COLUMNS:
        column = values.get(name, F.col(name) if name in rows.columns else F.lit(None))
        columns.append(column.cast(type_).alias(name))
    return rows.select(*columns)


def phrase(template: str, **columns: Column) -> Column:
    """Return the text with the row's value in the place of each `{column}`.

    What a keyword names is that column; `{name:.0f}` has a format of Spark's `format_string`.
    """
    text, values = "", []
    for literal, name, form, _ in Formatter().parse(template):
        text += literal.replace("%", "%%")
        if name is not None:
            text += f"%{form or 's'}"
            values.append(columns[name] if name in columns else F.col(name))
    return F.format_string(text, *values)


def event(fact: str, *columns: Column | str) -> Column:
    """Return one row of a fact as compact JSON, its kind first."""
    return F.to_json(F.struct(F.lit(fact).alias("fact"), *columns))


def ids(column: Column | str) -> Column:
    """Return broker ids as text; a question mark where they are not known."""
    brokers = F.col(column) if isinstance(column, str) else column
    return F.coalesce(F.concat(F.lit("["), F.array_join(brokers.cast("array<string>"), ", "), F.lit("]")), F.lit("?"))


def last_isr(partition_states: DataFrame) -> DataFrame:
    """One row a partition and member of the ISR that its state znode held last."""
    return (
        partition_states.groupBy(*PARTITION_KEY)
        .agg(F.max_by("isr", "zxid").alias("isr"))
        .select(*PARTITION_KEY, F.explode("isr").alias("broker"))
    )

"""Findings: rows with the columns of findings, and the severity that an allowance gives them."""

from collections.abc import Sequence
from functools import reduce
from operator import and_
from string import Formatter
from typing import TypedDict, Unpack, cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY, made_once
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
            conditions.append(~F.lit(settings.idempotence))
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
    `until` names a column with the last epoch that counts; `since` may be "null".
    """
    elections = unclean_elections(leader_epochs, settings)
    later = f"coalesce(epoch > {since}, true)" + (f" and epoch <= {until}" if until else "")
    return rows.join(elections.hint("shuffle_hash"), on=list(PARTITION_KEY), how="left").withColumn(
        "unclean", F.expr(f"exists(unclean_epochs, epoch -> {later})")
    )


def oldest_epoch() -> Column:
    """Return the aggregate that `with_unclean_election` may begin at: the least epoch, null if one is unknown."""
    return F.when(F.count("leader_epoch") == F.count("*"), F.min("leader_epoch"))


@made_once
def unclean_elections(leader_epochs: DataFrame, settings: Settings) -> DataFrame:
    """One row a partition that saw unclean elections that were allowed: their epochs."""
    allowed = F.coalesce("unclean_allowed", F.lit(settings.unclean_leader_election))
    return (
        leader_epochs.where(F.col("unclean") & allowed)
        .groupBy(*PARTITION_KEY)
        .agg(F.collect_set("leader_epoch").alias("unclean_epochs"))
    )


class ColumnsOfFindings(TypedDict, total=False):
    """Columns of findings that rows may have under another name, with that name."""

    offset: str
    leader_epoch: str
    at_ns: str


def finding(
    rows: DataFrame,
    check: str,
    *,
    message: Column | str,
    evidence: Column,
    severity: Column | None = None,
    **columns: Unpack[ColumnsOfFindings],
) -> DataFrame:
    """Return the rows as findings; topic, partition, offset and leader epoch are taken from the rows that have them.

    Args:
        rows: One row a finding.
        check: Name of the check.
        message: One sentence: the promise, and how it was broken; a text is a `phrase`.
        evidence: The events that show it, an array of JSON texts.
        severity: A `Severity` as text, with an excuse if `severity` gave it; a violation if there is none.
        columns: What a column of findings is called in the rows, where that is another name; `at_ns` is the instant at
            which what was lost had been asked for.
    """
    computed = {
        "message": phrase(message) if isinstance(message, str) else message,
        "evidence": F.slice(F.array_compact(evidence), 1, EVIDENCE_LIMIT).cast("array<string>"),
    }
    if severity is not None:
        excused = severity.startswith(_EXCUSED)
        computed["severity"] = F.when(excused, Severity.EXPECTED.value).otherwise(severity)
        computed["excuse"] = F.when(excused, F.substr(severity, F.lit(len(_EXCUSED) + 1)))
    texts = {name: name for name in rows.columns}
    texts |= {"check": f"'{check}'", "severity": f"'{Severity.VIOLATION}'", "excuse": "null", "at_ns": "null"}
    texts |= cast("dict[str, str]", columns)
    return rows.select(
        *(
            computed[name].alias(name)
            if name in computed
            else F.expr(f"cast({texts.get(name, 'null')} as {type_}) as {name}")
            for name, type_ in FINDING_COLUMNS
        )
    )


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


def event(fact: str, *columns: str) -> Column:
    """Return one row of a fact as compact JSON, its kind first; a column may have another name: `member as broker`."""
    return F.expr(f"to_json(struct('{fact}' as fact, {', '.join(columns)}))")


def ids(column: Column | str) -> Column:
    """Return broker ids as text; a question mark where they are not known."""
    brokers = F.col(column) if isinstance(column, str) else column
    return F.coalesce(F.concat(F.lit("["), F.array_join(brokers.cast("array<string>"), ", "), F.lit("]")), F.lit("?"))


@made_once
def last_isr(partition_states: DataFrame, topics: DataFrame) -> DataFrame:
    """One row a partition and member of the ISR that its state znode held last.

    Topics that are deleted or being deleted have none: a replica of theirs may be there again, empty.
    """
    going = topics.where(~F.col("present") | F.col("deletion_pending"))
    return (
        partition_states.join(going, on=["run_id", "topic"], how="left_anti")
        .groupBy(*PARTITION_KEY)
        .agg(F.max_by("isr", "zxid").alias("isr"))
        .select(*PARTITION_KEY, F.explode("isr").alias("broker"))
    )

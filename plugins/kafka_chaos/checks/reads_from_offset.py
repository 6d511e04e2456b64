"""reads-from-offset: a read from a known offset on gives the records from there on, as other readers got them.

A consumer that seeks reads so, from the leader or, with KIP-392, from a follower. The answer may end anywhere, and says
nothing about what follows.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, COMPACTIONS_TOLD, UNIQUE_VALUES
from harness.analysis.check_helpers.compaction import SUPERSEDED, with_superseded
from harness.analysis.check_helpers.findings import (
    event,
    finding,
    oldest_epoch,
    phrase,
    severity,
    with_unclean_election,
)
from harness.analysis.frames import PARTITION_KEY, in_order
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject

LONGEST = 10_000
"""Offsets that one answer may span; of a longer one only the order of its records is judged."""
_READ = ("run_id", "process", "index", "mode", "topic", "partition", "begins_at", "invoke_ns")
_PLACE = [*PARTITION_KEY, "offset"]


class ReadsFromOffset(Check):
    """Every read from an offset on, beside what other readers got at the same offsets."""

    name: ClassVar[str] = "reads-from-offset"
    title: ClassVar[str] = "reads-from-offset"
    promise: ClassVar[str] = (
        "A read from an offset on gives the records from there on, in order, and the same ones as other readers get."
    )
    needs: ClassVar[tuple[str, ...]] = ("polls",)
    about: ClassVar[Subject] = rows_of("offset_reads", "records of reads from an offset on")
    reads: ClassVar[tuple[str, ...]] = ("offset_reads", "leader_epochs", SUPERSEDED)
    judges_without: ClassVar[tuple[str, ...]] = ("zookeeper",)
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE, COMPACTIONS_TOLD, UNIQUE_VALUES)
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a record that is out of order, missing or another one."""
        answers = facts["offset_reads"].where(F.col("offset").isNotNull())
        rows = _not_in_order(answers).unionByName(_not_as_others_read(answers, facts["polls"], facts[SUPERSEDED]))
        rows = with_unclean_election(rows, facts["leader_epochs"], settings, since="since")
        return finding(
            rows,
            self.name,
            at_ns="at_ns",
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            message=phrase(
                "A read from an offset on gives the records from there on: {process} read {topic}-{partition} from "
                "offset {begins_at} on (mode {mode}), and {what}.",
                what=F.col("what"),
            ),
            evidence=F.array(
                event("offset_reads", "process", "index", "mode", "begins_at", "offset", "given", "invoke_ns"),
                F.col("other"),
            ),
        )


def _not_in_order(answers: DataFrame) -> DataFrame:
    """Return records at or before the one that was given before them, or before the offset that was asked for."""
    before = F.lag("offset").over(in_order("run_id", "process", "index", by=("position",)))
    least = F.coalesce(before + 1, F.col("begins_at"))
    what = phrase("got offset {offset}, not {least} or a later one")
    rows = answers.withColumn("least", least).where("offset < least")
    return _finding(rows.withColumns({"what": what, "at_ns": F.col("invoke_ns")}), since=F.lit(-1), other=F.lit(None))


def _not_as_others_read(answers: DataFrame, polls: DataFrame, superseded: DataFrame) -> DataFrame:
    """Return records that are missing between those of an answer, or that are others than readers got there."""
    spans = answers.groupBy(*_READ).agg(F.max("offset").alias("last"))
    spans = spans.where((F.col("last") - F.col("begins_at")).between(0, LONGEST))
    expected = spans.select(*_READ, F.explode(F.sequence("begins_at", "last")).alias("offset"))
    given = answers.select("run_id", "process", "index", "offset", "given")
    asked = expected.join(given, on=["run_id", "process", "index", "offset"], how="left")
    digest = F.xxhash64("value")
    read = (
        polls.join(F.broadcast(expected.select(*_PLACE).distinct()), on=_PLACE, how="left_semi")
        .groupBy(*_PLACE)
        .agg(
            F.min("value").alias("told"),
            F.max("process").alias("reader"),
            F.min("time_ns").alias("told_ns"),
            oldest_epoch().alias("since"),
            (F.min(digest) == F.max(digest)).alias("same"),
        )
        .where("same")
    )
    differs = F.coalesce(F.col("given") != F.col("told"), F.lit(True))
    rows = with_superseded(asked.join(read, on=_PLACE, how="inner").where(differs), superseded)
    rows = rows.where(F.col("given").isNotNull() | ~F.col(SUPERSEDED))
    skipped = phrase("the answer leaves out {told} at offset {offset}, which {reader} read")
    another = phrase("got {given} at offset {offset}, where {reader} read {told}")
    columns = {
        "what": F.when(F.col("given").isNull(), skipped).otherwise(another),
        "at_ns": F.least("told_ns", "invoke_ns"),
    }
    other = event("polls", "reader as process", "topic", "partition", "offset", "told as value")
    return _finding(rows.withColumns(columns), since=F.col("since"), other=other)


def _finding(rows: DataFrame, *, since: Column, other: Column) -> DataFrame:
    columns = {"since": since.cast("int"), "other": other.cast("string")}
    return rows.withColumns(columns).select(*_READ, "offset", "given", "what", "at_ns", "since", "other")


PLUGIN: type[Check] = ReadsFromOffset

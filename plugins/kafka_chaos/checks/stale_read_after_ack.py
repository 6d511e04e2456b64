"""stale-read-after-ack: an end offset is past everything acknowledged before it was requested.

acks=all means that the high watermark has passed the record, and a new leader answers only when it has reached the high
watermark of the leader before (KIP-207). A leader that was replaced unnoticed may still answer its old one, so only a
settled partition is judged: its state has not changed, and nothing has been healed, for a while.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE
from harness.analysis.check_helpers.findings import event, finding, severity, with_unclean_election
from harness.analysis.check_helpers.records import acknowledged
from harness.analysis.frames import PARTITION_KEY, in_order
from harness.analysis.subjects import RECORDS_PLACED
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject
from harness.values import ACKS_ALL

SETTLED_NS = 2_000_000_000


class StaleReadAfterAck(Check):
    """Every answer about a partition's end, against what had been acknowledged before it was asked for."""

    name: ClassVar[str] = "stale-read-after-ack"
    title: ClassVar[str] = "stale-read-after-ack"
    promise: ClassVar[str] = "A settled partition's end is past everything acknowledged with acks=all before (KIP-207)."
    needs: ClassVar[tuple[str, ...]] = ("sends", "end_offsets")
    about: ClassVar[Subject] = RECORDS_PLACED
    reads: ClassVar[tuple[str, ...]] = ("partition_states", "leader_epochs", "fault_windows")
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE,)
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an answer."""
        records = _past_an_answer(acknowledged(facts["sends"]).where(F.col("acks") == ACKS_ALL), facts["end_offsets"])
        record = F.struct("offset", "value", "process", "index", "complete_ns", "leader_epoch")
        at_ns = F.col("complete_ns").alias("at_ns")
        answers = facts["end_offsets"].withColumnRenamed("offset", "end_offset").withColumn("at_ns", F.col("invoke_ns"))
        rows = (
            records.select(*PARTITION_KEY, at_ns, record.alias("record"))
            .unionByName(answers, allowMissingColumns=True)
            .withColumn("furthest", F.max("record").over(in_order(*PARTITION_KEY, by=("at_ns",))))
            .where(F.col("end_offset") <= F.col("furthest.offset"))
            .join(_settled(facts["partition_states"]), on=list(PARTITION_KEY), how="left")
            .join(_healed(facts["fault_windows"]), on="run_id", how="left")
            .where(F.coalesce(F.col("at_ns") > F.greatest("changed_ns", "healed_ns") + SETTLED_NS, F.lit(True)))
        )
        rows = with_unclean_election(rows, facts["leader_epochs"], settings, since="furthest.leader_epoch")
        return finding(
            rows,
            self.name,
            offset="end_offset",
            leader_epoch="furthest.leader_epoch",
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            message=(
                "The end of a settled partition is past what was acknowledged: {process} received end offset "
                "{end_offset} of {topic}-{partition} after {furthest.value} had been acknowledged at offset "
                "{furthest.offset}."
            ),
            evidence=F.array(
                event("sends", "furthest as record"),
                event("end_offsets", "process", "index", "end_offset", "invoke_ns", "complete_ns"),
            ),
        )


def _past_an_answer(records: DataFrame, answers: DataFrame) -> DataFrame:
    """Return the records that no answer about their partition's end has passed for certain; others break nothing."""
    ends = answers.groupBy(*PARTITION_KEY).agg(F.min("offset").alias("least_end_offset"))
    rows = records.join(ends.hint("shuffle_hash"), on=list(PARTITION_KEY), how="inner")
    return rows.where(F.col("offset") >= F.col("least_end_offset"))


def _settled(states: DataFrame) -> DataFrame:
    return states.groupBy(*PARTITION_KEY).agg(F.max("time_ns").alias("changed_ns"))


def _healed(faults: DataFrame) -> DataFrame:
    return faults.groupBy("run_id").agg(F.max("healed_ns").alias("healed_ns"))


PLUGIN: type[Check] = StaleReadAfterAck

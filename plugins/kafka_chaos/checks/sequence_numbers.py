"""I21: a log holds each batch of an idempotent producer once, in the order of sending.

The leader accepts a producer's batches only in the order of their sequence numbers, so within one producer epoch the
records in a partition's log are numbered without gap or repetition (KIP-98). The first may have any number: earlier
ones were deleted, or the log has dropped the producer's state. Numbers start again after 2³¹ - 1. Where a cleaner has
removed records, only the order is judged.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import COMPACTIONS_TOLD, DUMPS_COMPLETE
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.frames import PARTITION_KEY, in_order
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Assumption, Check, Settings, Subject

_PRODUCER = (*PARTITION_KEY, "broker", "producer_id", "producer_epoch")
_SEQUENCES = 2**31


class SequenceNumbers(Check):
    """Every idempotent producer's records in every replica's log."""

    name: ClassVar[str] = "I21"
    title: ClassVar[str] = "I21 sequence-numbers"
    promise: ClassVar[str] = (
        "An idempotent producer's sequence numbers follow each other in the log without gap or repetition (KIP-98)."
    )
    needs: ClassVar[tuple[str, ...]] = ("replicas", "replica_records")
    about: ClassVar[Subject] = rows_of("replica_records", "records of idempotent producers", "sequence >= 0")
    reads: ClassVar[tuple[str, ...]] = ("compactions",)
    assumes: ClassVar[tuple[Assumption, ...]] = (*DUMPS_COMPLETE, COMPACTIONS_TOLD)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a record whose number is not the next one."""
        before = F.lag(F.struct("offset", "sequence")).over(in_order(*_PRODUCER, by=("offset",)))
        rows = (
            facts["replica_records"]
            .where(F.col("sequence") >= 0)
            .select(*_PRODUCER, "offset", "sequence", "leader_epoch", "value", before.alias("before"))
            .withColumn("step", (F.col("sequence") - F.col("before.sequence") + _SEQUENCES) % _SEQUENCES)
            .where(F.col("step") != 1)
            .join(_compacted_to(facts["compactions"]), on=list(PARTITION_KEY), how="left")
        )
        cleaned_between = F.col("before.offset") < F.col("compacted_to")
        ahead = F.col("step").between(2, _SEQUENCES // 2)
        rows = rows.where(~F.coalesce(cleaned_between & ahead, F.lit(False)))
        return finding(
            rows,
            self.name,
            message=(
                "Sequence numbers follow each other: in {topic}-{partition} on broker {broker} producer {producer_id} "
                "of epoch {producer_epoch} has number {sequence} at offset {offset} after number {before.sequence} at "
                "offset {before.offset}."
            ),
            evidence=F.array(
                event("replica_records", "broker", "producer_id", "producer_epoch", "before"),
                event("replica_records", "broker", "producer_id", "producer_epoch", "offset", "sequence", "value"),
            ),
        )


def _compacted_to(compactions: DataFrame) -> DataFrame:
    """One row a partition that was cleaned, on whatever broker: up to where."""
    return compactions.groupBy(*PARTITION_KEY).agg(F.max("until_offset").alias("compacted_to"))


PLUGIN: type[Check] = SequenceNumbers

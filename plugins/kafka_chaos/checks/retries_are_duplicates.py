"""I28: a retry of a batch that is in the log is answered as a duplicate, not refused.

A producer whose answer was lost sends the batch again. The leader has it and answers with its offset; if it refused the
numbers, the producer would consider records lost that consumers read. Kafka remembers the last five batches of a
producer, as many as may be in flight, and rebuilds them from the log (KIP-98, KAFKA-5494, Kafka's
`ProducerStateManager`). A leader has what it wrote in its term, and earlier records below the end that its log had
then, unless it overwrote them.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import BROKERS_WHOLE, has_field, without_acks
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Assumption, Check, Settings, Subject

REMEMBERED_BATCHES = 5


class RetriesAreDuplicates(Check):
    """Every refused batch that its leader had written."""

    name: ClassVar[str] = "I28"
    title: ClassVar[str] = "I28 retries-are-duplicates"
    promise: ClassVar[str] = (
        "A retry of one of a producer's last five batches in the log is answered as a duplicate, never refused "
        "(KIP-98, KAFKA-5494)."
    )
    needs: ClassVar[tuple[str, ...]] = ("appends",)
    about: ClassVar[Subject] = rows_of("refused_retries", "refused batches that a log holds")
    fields: ClassVar[tuple[str, ...]] = ("append.base_sequence",)
    reads: ClassVar[tuple[str, ...]] = ("refused_retries",)
    # Brokers that log refusals also log the acks of their appends.
    assumes: ClassVar[tuple[Assumption, ...]] = (has_field("batch_refused", "appends", without_acks), BROKERS_WHOLE)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a refusal."""
        led = F.col("written_since") | (F.col("last_offset") < F.col("leader_end_offset"))
        in_log = led & ~F.col("overwritten") & (F.col("offset") >= F.col("log_start_offset"))
        remembered = (F.col("later_batches") < REMEMBERED_BATCHES) & ~F.col("later_epoch")
        return finding(
            facts["refused_retries"].where(in_log & remembered),
            self.name,
            message=(
                "A retry is answered as a duplicate: broker {broker}, leader of {topic}-{partition} in epoch "
                "{leader_epoch}, refused with error {error} the batch of producer {producer_id} that begins with "
                "number {base_sequence}, which it has at offset {offset} with {later_batches} behind it."
            ),
            evidence=F.array(
                event(
                    "refused_retries",
                    "broker",
                    "incarnation",
                    "seq",
                    "producer_id",
                    "producer_epoch",
                    "base_sequence",
                    "offset",
                    "later_batches",
                    "leader_end_offset",
                    "written_since",
                )
            ),
        )


PLUGIN: type[Check] = RetriesAreDuplicates

"""I19: acks=all is acknowledged only with enough replicas in sync, once all of them have the record.

With fewer members in the ISR than `min.insync.replicas` a write is refused, or answered with an error if it was
appended before the ISR shrank; and success means that the high watermark has passed the record (Kafka's
`Partition.checkEnoughReplicasReachOffset`). The requirement is the least that the topic ever had; if that is unknown,
only the high watermark is judged.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.check_helpers.min_insync import REQUIREMENT_FACTS, with_required_isr
from harness.contracts.checks import Check, Settings
from harness.values import ACKS_ALL


class AcknowledgedInSync(Check):
    """Acknowledgements of leaders with acks=all, by the size of their ISR."""

    name: ClassVar[str] = "I19"
    title: ClassVar[str] = "I19 acknowledged-in-sync"
    promise: ClassVar[str] = (
        "acks=all succeeds only with min.insync.replicas in the ISR and below the high watermark (Partition)."
    )
    needs: ClassVar[tuple[str, ...]] = ("acknowledgements",)
    reads: ClassVar[tuple[str, ...]] = REQUIREMENT_FACTS

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a leader, epoch and size of the ISR."""
        wrong = F.when(
            F.col("isr_size") < F.col("at_least"),
            phrase(
                "with {isr_size} in the ISR where {at_least} are needed ({answers} batches, from offset {first_offset})"
            ),
        ).when(
            F.col("offset") >= F.col("high_watermark"),
            phrase(
                "while the high watermark was still {high_watermark} ({answers} batches, from offset {first_offset})"
            ),
        )
        rows = (
            with_required_isr(facts["acknowledgements"].where(F.col("acks") == ACKS_ALL), facts, settings)
            .withColumn("wrong", wrong)
            .where(F.col("wrong").isNotNull())
        )
        return finding(
            rows,
            self.name,
            message=(
                "acks=all succeeds only when enough replicas have the record: broker {broker}, leader of "
                "{topic}-{partition} in epoch {leader_epoch}, acknowledged offset {offset} {wrong}."
            ),
            evidence=F.array(
                event("acknowledgements", "broker", "seq", "isr_size", "first_offset", "offset", "high_watermark")
            ),
        )


PLUGIN: type[Check] = AcknowledgedInSync

"""fenced-producers: once a partition has a batch of a producer's epoch, no batch of an older epoch is appended.

InitProducerId raises the epoch of a transactional id, so that a former producer of it is refused everywhere, markers
included (KIP-98, KIP-360, `ProducerAppendInfo.checkProducerEpoch`).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.check_helpers.transactions import PRODUCER_KEY, OfTransactions, on_furthest
from harness.analysis.frames import in_order
from harness.contracts.checks import Check, Settings


class FencedProducers(OfTransactions):
    """Every batch and marker of a transactional producer beside what is in the partition before it."""

    name: ClassVar[str] = "fenced-producers"
    title: ClassVar[str] = "fenced-producers"
    promise: ClassVar[str] = (
        "After a producer's epoch was raised nothing of an older epoch is appended (KIP-98, KIP-360)."
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a batch or marker of an older epoch."""
        columns = (*PRODUCER_KEY, "producer_epoch", "leader_epoch")
        written = (
            facts["transactional_batches"]
            .select(*columns, F.col("first_offset").alias("offset"), F.lit("batch").alias("what"))
            .unionByName(facts["markers"].select(*columns, "offset", F.lit("marker").alias("what")))
        )
        earlier = in_order(*PRODUCER_KEY, by=("offset",))
        rows = (
            on_furthest(written, facts["replicas"])
            .withColumn("newest", F.max(F.struct("producer_epoch", "offset", "what")).over(earlier))
            .where(F.col("producer_epoch") < F.col("newest.producer_epoch"))
        )
        return finding(
            self.judged(rows, facts, settings),
            self.name,
            severity=F.col("severity"),
            message=(
                "A fenced producer appends nothing: {topic}-{partition} has a {what} of epoch {producer_epoch} of "
                "producer {producer_id} at offset {offset}, after a {newest.what} of epoch "
                "{newest.producer_epoch} at offset {newest.offset}."
            ),
            evidence=F.array(
                event("transactional_batches", "broker", "topic", "partition", "producer_id", "newest"),
                event("transactional_batches", "broker", "topic", "partition", "offset", "what", "producer_epoch"),
            ),
        )


PLUGIN: type[Check] = FencedProducers

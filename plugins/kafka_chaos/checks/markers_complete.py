"""markers-complete: each partition has one marker for each complete transaction, and none that ends a later one.

Complete is stored when each partition that Prepare names has its marker; without one the partition stays open, and
consumers with read_committed wait there. A marker that arrives a second time and closes what was written since ends the
next transaction early (KAFKA-10080).

AddOffsetsToTxn may name a partition of `__consumer_offsets` that is not there yet. A coordinator that does not know the
partition when the transaction ends takes it for deleted, and sends no marker, as in Kafka. So a transaction that was
decided before the partition had existed for ten seconds needs no marker there, if it leaves no offsets open.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.check_helpers.replication import furthest_replicas
from harness.analysis.check_helpers.transactions import (
    OfTransactions,
    by_partition,
    closed,
    decisions,
    in_whole_logs,
    instances,
    on_furthest,
    parts,
    without_deleted,
    without_thinned,
)
from harness.analysis.frames import PARTITION_KEY
from harness.contracts.checks import Check, Settings
from harness.values import OFFSETS_TOPIC

KNOWN_NS = 10_000_000_000
"""After a partition is made, every coordinator's metadata has it within this time."""
_PRODUCER = (*PARTITION_KEY, "producer_id", "producer_epoch")


class MarkersComplete(OfTransactions):
    """How many markers a partition has of a producer, beside how many transactions with that partition are complete."""

    name: ClassVar[str] = "markers-complete"
    title: ClassVar[str] = "markers-complete"
    promise: ClassVar[str] = (
        "After Complete every partition of the transaction has its marker, and no second one closes later data "
        "(KAFKA-10080)."
    )
    reads: ClassVar[tuple[str, ...]] = (*OfTransactions.reads, "replica_records", "partition_states", "topics")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a producer and partition with too few markers, and one with too many that close data."""
        rows = self._lacking(facts).unionByName(self._again(facts))
        return finding(
            self.judged(in_whole_logs(rows, facts["transactions"]), facts, settings),
            self.name,
            severity=F.col("severity"),
            message=(
                "Each transaction has one marker in each partition: {wrong} of {transactional_id} (producer "
                "{producer_id}, epoch {producer_epoch}) in {topic}-{partition}: {number} for {wanted} transactions."
            ),
            evidence=F.array(
                event("transactions", "transactional_id", "producer_id", "producer_epoch", "wanted"),
                event("markers", "topic", "partition", "producer_id", "producer_epoch", "number"),
            ),
        )

    def _lacking(self, facts: dict[str, DataFrame]) -> DataFrame:
        key = [*_PRODUCER, "result"]
        complete = instances(facts["transactions"]).where("complete")
        decided = complete.drop("partitions").withColumnsRenamed(
            {
                "producer_epoch": "written_epoch",
                "decided_epoch": "producer_epoch",
                "decided_partitions": "partitions",
            }
        )
        made = facts["partition_states"].groupBy(*PARTITION_KEY).agg(F.min("time_ns").alias("made_ns"))
        known = F.coalesce(F.col("decided_ns") >= F.col("made_ns") + KNOWN_NS, F.lit(False))
        wanted = (
            by_partition(decided)
            .join(made, on=list(PARTITION_KEY), how="left")
            .groupBy(*key, "transactional_id")
            .agg(
                F.count("*").alias("wanted"),
                F.count(F.when(known | (F.col("topic") != OFFSETS_TOPIC), True)).alias("needed"),
                F.collect_set("written_epoch").alias("written_epochs"),
            )
        )
        held = on_furthest(facts["markers"], facts["replicas"]).groupBy(*key).agg(F.count("*").alias("number"))
        rows = (
            wanted.join(held, on=key, how="left")
            .withColumn("number", F.coalesce("number", F.lit(0)))
            .where(F.col("number") < F.col("wanted"))
            .join(furthest_replicas(facts["replicas"]), on=list(PARTITION_KEY), how="left_semi")
            .join(_open(facts), on=[*PARTITION_KEY, "producer_id"], how="left")
            .where((F.col("number") < F.col("needed")) | F.arrays_overlap("written_epochs", "open_epochs"))
        )
        return (
            without_thinned(without_deleted(rows, facts), facts)
            .withColumn("wrong", F.lit("markers are missing"))
            .drop("result", "needed", "written_epochs", "open_epochs")
        )

    def _again(self, facts: dict[str, DataFrame]) -> DataFrame:
        key = list(_PRODUCER)
        named = by_partition(decisions(facts["transactions"]))
        wanted = named.groupBy(*key, "transactional_id").agg(F.count("*").alias("wanted"))
        return (
            closed(facts)
            .groupBy(*key)
            .agg(F.count("*").alias("number"))
            .join(wanted, on=key, how="inner")
            .where(F.col("number") > F.col("wanted"))
            .withColumn("wrong", F.lit("too many markers close records"))
            .select(*key, "wanted", "transactional_id", "number", "wrong")
        )


def _open(facts: dict[str, DataFrame]) -> DataFrame:
    """One row a partition and producer: the `open_epochs` in which it wrote what no marker closes.

    Epochs in which it has a transaction there that is not complete are left out.
    """
    ongoing = by_partition(instances(facts["transactions"]).where(~F.col("complete"))).select(*_PRODUCER)
    return (
        on_furthest(parts(facts["transactional_batches"], facts["markers"]), facts["replicas"])
        .where(F.col("marker").isNull())
        .join(ongoing, on=list(_PRODUCER), how="left_anti")
        .groupBy(*PARTITION_KEY, "producer_id")
        .agg(F.collect_set("producer_epoch").alias("open_epochs"))
    )


PLUGIN: type[Check] = MarkersComplete

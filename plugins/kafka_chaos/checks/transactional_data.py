"""transactional-data: records of a transaction lie between the record that names their partition and its marker.

A partition becomes part of a transaction before its first batch. A batch that arrives after the marker would begin a
transaction that no coordinator knows, and that hangs for ever: since KIP-890 leaders ask the coordinator first.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.check_helpers.transactions import (
    OfTransactions,
    by_partition,
    in_whole_logs,
    instances,
    on_furthest,
    parts,
)
from harness.analysis.frames import PARTITION_KEY
from harness.contracts.checks import Check, Settings

_PRODUCER = (*PARTITION_KEY, "producer_id", "producer_epoch")


class TransactionalData(OfTransactions):
    """How many parts of transactions a producer has in a partition, beside how many transactions name that one."""

    name: ClassVar[str] = "transactional-data"
    title: ClassVar[str] = "transactional-data"
    promise: ClassVar[str] = (
        "Transactional records lie only between an Ongoing record that names their partition and the marker (KIP-890)."
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a producer epoch and partition with parts of transactions that do not name it."""
        transactions, key = facts["transactions"], list(_PRODUCER)
        named = by_partition(instances(transactions)).groupBy(*key).agg(F.count("*").alias("named"))
        last = F.struct("first_offset", "last_offset", F.col("marker").isNull().alias("open"))
        written = (
            on_furthest(parts(facts["transactional_batches"], facts["markers"]), facts["replicas"])
            .groupBy(*key)
            .agg(F.count("*").alias("parts"), F.max(last).alias("last"))
        )
        rows = (
            written.join(named, on=key, how="left")
            .withColumn("named", F.coalesce("named", F.lit(0)))
            .where(F.col("parts") > F.col("named"))
            .withColumn("offset", F.col("last.first_offset"))
            .withColumn("end", F.when(F.col("last.open"), "no marker ends the last one").otherwise("all have markers"))
        )
        return finding(
            self.judged(in_whole_logs(rows, transactions), facts, settings),
            self.name,
            severity=F.col("severity"),
            message=(
                "Transactional records lie within a transaction that names their partition: in {topic}-{partition} "
                "producer {producer_id} of epoch {producer_epoch} wrote in {parts} transactions, and {named} name that "
                "partition; {end}, from offset {offset} on."
            ),
            evidence=F.array(
                event("transactional_batches", "topic", "partition", "producer_id", "producer_epoch", "parts", "last"),
                event("transactions", "producer_id", "producer_epoch", "named"),
            ),
        )


PLUGIN: type[Check] = TransactionalData

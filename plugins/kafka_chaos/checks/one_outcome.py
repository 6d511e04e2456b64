"""one-outcome: a transaction commits on all of its partitions, or aborts on all of them.

The last Prepare record of a transaction is its outcome. A partition where a marker of the other outcome closes records
of it is torn off: consumers see a part of the transaction (KIP-98).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.check_helpers.transactions import (
    OfTransactions,
    by_partition,
    closed,
    decisions,
    in_whole_logs,
    instances,
)
from harness.analysis.frames import PARTITION_KEY
from harness.contracts.checks import Check, Settings

_KEY = (*PARTITION_KEY, "producer_id", "producer_epoch", "result")


class OneOutcome(OfTransactions):
    """How often each outcome closes records of a producer in a partition, beside how often it was the last decision."""

    name: ClassVar[str] = "one-outcome"
    title: ClassVar[str] = "one-outcome"
    promise: ClassVar[str] = "A transaction has one outcome on all its partitions (KIP-98)."

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a partition, producer epoch and outcome that was not the transactions' own."""
        transactions = facts["transactions"]
        last = instances(transactions).drop("producer_epoch").withColumnRenamed("decided_epoch", "producer_epoch")
        outcomes = by_partition(last).groupBy(*_KEY).agg(F.count("*").alias("decided"))
        tried = by_partition(decisions(transactions))
        key = list(_KEY)
        of_producer = [*PARTITION_KEY, "producer_id", "producer_epoch"]
        counted = closed(facts).groupBy(*key).agg(F.count("*").alias("closed"), F.max("offset").alias("offset"))
        every = closed(facts).groupBy(*of_producer).agg(F.count("*").alias("all_closed"))
        every_try = tried.groupBy(*of_producer).agg(
            F.count("*").alias("all_decided"), F.max("transactional_id").alias("transactional_id")
        )
        rows = (
            counted.join(outcomes, on=key, how="left")
            .join(every, on=of_producer, how="inner")
            .join(every_try, on=of_producer, how="inner")
            .withColumn("decided", F.coalesce("decided", F.lit(0)))
            .where((F.col("closed") > F.col("decided")) & (F.col("all_closed") <= F.col("all_decided")))
        )
        return finding(
            self.judged(in_whole_logs(rows, transactions), facts, settings),
            self.name,
            severity=F.col("severity"),
            message=(
                "A transaction has one outcome on all its partitions: in {topic}-{partition} {closed} transactions "
                "of {transactional_id} (producer {producer_id}, epoch {producer_epoch}) ended in {result}, and "
                "{result} was decided for {decided}."
            ),
            evidence=F.array(
                event("markers", "topic", "partition", "producer_id", "producer_epoch", "result", "offset", "closed"),
                event("transactions", "transactional_id", "producer_id", "producer_epoch", "result", "decided"),
            ),
        )


PLUGIN: type[Check] = OneOutcome

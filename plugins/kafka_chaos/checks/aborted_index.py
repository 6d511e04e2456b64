"""aborted-index: a replica's index of aborted transactions has those of its log, and no others.

A leader names aborted transactions to consumers from this index (`.txnindex`). One that lacks an entry lets them read
aborted records as if they were committed, one with an entry too many hides committed ones (KAFKA-9807, KAFKA-13727).
Logs from which something is gone have lost entries too, and are not judged.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, last_isr
from harness.analysis.check_helpers.transactions import PRODUCER_KEY, OfTransactions, parts, thinned_logs
from harness.analysis.frames import REPLICA_KEY
from harness.contracts.checks import Check, Settings

_ENTRY = (*PRODUCER_KEY, "first_offset", "last_offset")


class AbortedIndex(OfTransactions):
    """The index of every replica in the last ISR beside one that is rebuilt from its log."""

    name: ClassVar[str] = "aborted-index"
    title: ClassVar[str] = "aborted-index"
    promise: ClassVar[str] = (
        "The index of aborted transactions equals one made anew from the log (KAFKA-9807, KAFKA-13727)."
    )
    reads: ClassVar[tuple[str, ...]] = (
        *OfTransactions.reads,
        "aborted_transactions",
        "partition_states",
        "replica_records",
        "topics",
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an entry that is missing, and one an entry that no aborted transaction has."""
        aborted = (
            parts(facts["transactional_batches"], facts["markers"])
            .where(F.col("marker.result") == "abort")
            .select(*PRODUCER_KEY, "first_offset", F.col("marker.offset").alias("last_offset"))
        )
        indexed = facts["aborted_transactions"].select(*_ENTRY)
        key = list(_ENTRY)
        missing = aborted.join(indexed, on=key, how="left_anti").withColumn("wrong", F.lit("is not in the index"))
        more = indexed.join(aborted, on=key, how="left_anti").withColumn("wrong", F.lit("is in the index alone"))
        thinned = thinned_logs(facts)
        states = facts["partition_states"]
        known = states.select("run_id", F.col("run_id").alias("known")).distinct()
        in_sync = last_isr(states, facts["topics"]).withColumn("in_sync", F.lit(True))
        rows = (
            missing.unionByName(more)
            .join(thinned, on=list(REPLICA_KEY), how="left_anti")
            .join(known, on="run_id", how="left")
            .join(in_sync, on=list(REPLICA_KEY), how="left")
            .where(F.col("known").isNull() | F.col("in_sync"))
        )
        return finding(
            self.judged(rows, facts, settings),
            self.name,
            offset="first_offset",
            severity=F.col("severity"),
            message=(
                "The index of aborted transactions is that of the log: on broker {broker} the transaction of producer "
                "{producer_id} from offset {first_offset} to the marker at {last_offset} of {topic}-{partition} "
                "{wrong}."
            ),
            evidence=F.array(
                event(
                    "aborted_transactions",
                    *("broker", "topic", "partition", "producer_id", "first_offset", "last_offset", "wrong"),
                )
            ),
        )


PLUGIN: type[Check] = AbortedIndex

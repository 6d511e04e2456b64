"""markers-kept: compaction removes no marker while records of its transaction remain.

Without its marker the transaction looks open: consumers with read_committed wait before it for ever, or get its aborted
records once another marker of the producer follows (KAFKA-8351, KAFKA-13727, KAFKA-14055, KIP-534).
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
    thinned_logs,
    without_deleted,
)
from harness.analysis.frames import PARTITION_KEY, REPLICA_KEY
from harness.contracts.checks import Check, Settings


class MarkersKept(OfTransactions):
    """Every part without a marker in a compacted log, beside the transactions that may be open there."""

    name: ClassVar[str] = "markers-kept"
    title: ClassVar[str] = "markers-kept"
    promise: ClassVar[str] = (
        "Compaction removes no marker while its data remain and reveals no aborted record (KAFKA-8351, KAFKA-14055)."
    )
    reads: ClassVar[tuple[str, ...]] = (*OfTransactions.reads, "replica_records", "partition_states", "topics")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a part that has lost its marker."""
        transactions = facts["transactions"]
        thinned = thinned_logs(facts)
        unended = by_partition(instances(transactions).where(~F.col("complete")))
        rows = (
            on_furthest(parts(facts["transactional_batches"], facts["markers"]), facts["replicas"])
            .where(F.col("marker").isNull())
            .join(thinned, on=list(REPLICA_KEY), how="left_semi")
            .join(unended, on=[*PARTITION_KEY, "producer_id"], how="left_anti")
        )
        return finding(
            self.judged(in_whole_logs(without_deleted(rows, facts), transactions), facts, settings),
            self.name,
            offset="first_offset",
            severity=F.col("severity"),
            message=(
                "A marker stays with its data: records of producer {producer_id} in {topic}-{partition} from offset "
                "{first_offset} to {last_offset} have no marker after compaction, and their transaction has ended."
            ),
            evidence=F.array(
                event(
                    "transactional_batches",
                    *("broker", "topic", "partition", "producer_id", "producer_epoch", "first_offset", "last_offset"),
                )
            ),
        )


PLUGIN: type[Check] = MarkersKept

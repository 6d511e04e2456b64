"""What did cleaners take from logs, and the absence of which records does that explain?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.check_helpers.records import acknowledged
from harness.analysis.check_helpers.transactions import parts
from harness.analysis.frames import PARTITION_KEY, REPLICA_KEY, conform, in_order
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.protocol import COMPACTIONS, SUPERSEDED
from harness.store.history import ABORTED, COMMITTED
from harness.values import NULL

_RECORD = (*PARTITION_KEY, "key", "offset")


def compactions(state_changes: StateChanges) -> DataFrame:
    """One row a range of a log that a cleaner went through."""
    return conform(state_changes.of("compaction"), COMPACTIONS)


def superseded(
    compactions: DataFrame,
    sends: DataFrame,
    polls: DataFrame,
    replica_records: DataFrame,
    batches: DataFrame,
    markers: DataFrame,
) -> DataFrame:
    """One row an offset whose record may be gone, as a later one with its key is known, or as it is a tombstone.

    Of a record that was written twice, the second offset is known from those that read it. A record of a transaction
    that may have been aborted may be gone too, and replaces none if it was certainly aborted. The outcome that its
    client recorded counts; where there is none, the marker in a log does.
    Any replica counts: a follower of a leader that has cleaned its log lacks the same records.

    A record with acks=1 that is in no log and was not read was lost with its leader, unless a later one replaced it.
    `committed` is false where only such records replace one: a cleaner stays below the high watermark, and what is
    committed stays in some log, or a later record with its key does. Tombstones count as committed, as cleaners remove
    them.
    """
    cleaned = compactions.groupBy(*PARTITION_KEY).agg(F.max("until_offset").alias("compacted_to"))
    tombstone = _is_null(F.col("value")).alias("tombstone")
    sent = sends.select("run_id", "topic", "value", "key", "transaction_outcome")
    read = polls.join(F.broadcast(cleaned), on=list(PARTITION_KEY), how="left_semi").join(
        sent, on=["run_id", "topic", "value"], how="inner"
    )
    by_leader_alone = F.coalesce(F.col("acks") == 1, F.lit(False)) & ~_is_null(F.col("value"))
    known = (
        acknowledged(sends)
        .withColumn("committed", ~by_leader_alone)
        .unionByName(read, allowMissingColumns=True)
        .select(*_RECORD, tombstone, "transaction_outcome", "committed")
        .unionByName(replica_records.select(*_RECORD, tombstone), allowMissingColumns=True)
        .unionByName(
            _aborted(replica_records, batches, markers, cleaned).select(*_RECORD, tombstone, "transaction_outcome"),
            True,
        )
        .join(F.broadcast(cleaned), on=list(PARTITION_KEY), how="inner")
        .where((F.col("offset") < F.col("compacted_to")) & (F.col("key") != ""))
        .groupBy(*_RECORD)
        .agg(
            F.max("tombstone").alias("tombstone"),
            F.max("compacted_to").alias("compacted_to"),
            F.max("transaction_outcome").alias("outcome"),
            F.max(F.coalesce("committed", F.lit(True))).alias("kept"),
        )
    )
    of_key = in_order(*PARTITION_KEY, "key", by=("offset",)).rowsBetween(0, Window.unboundedFollowing)
    outcome = F.coalesce("outcome", F.lit(COMMITTED))
    replaces = outcome != ABORTED
    last = F.max(F.when(replaces, F.col("offset"))).over(of_key)
    last_kept = F.max(F.when(replaces & F.col("kept"), F.col("offset"))).over(of_key)
    removable = F.col("tombstone") | (outcome != COMMITTED)
    return conform(
        known.withColumns({"last_offset": last, "last_kept": last_kept})
        .where(removable | _is_before("last_offset"))
        .withColumn("committed", removable | _is_before("last_kept")),
        SUPERSEDED,
    )


def _aborted(replica_records: DataFrame, batches: DataFrame, markers: DataFrame, cleaned: DataFrame) -> DataFrame:
    """The records of replicas of cleaned partitions that a marker in the same log aborts."""
    holder = [*REPLICA_KEY, "producer_id"]
    ranges = (
        parts(batches, markers).where(F.col("marker.result") == "abort").select(*holder, "first_offset", "last_offset")
    )
    return (
        replica_records.join(F.broadcast(cleaned), on=list(PARTITION_KEY), how="left_semi")
        .join(ranges, on=holder, how="inner")
        .where(F.col("offset").between(F.col("first_offset"), F.col("last_offset")))
        .withColumn("transaction_outcome", F.lit(ABORTED))
    )


def _is_before(last: str) -> Column:
    return F.coalesce(F.col("offset") < F.col(last), F.lit(False))


def _is_null(value: Column) -> Column:
    """Return whether a record has no value: it is named by its header then (`value_id`)."""
    return (value == "") | value.endswith(NULL)

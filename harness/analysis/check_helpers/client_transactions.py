"""What became of clients' transactions in the logs, and what may excuse that?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.check_helpers.compaction import SUPERSEDED, not_superseded
from harness.analysis.check_helpers.findings import with_unclean_election
from harness.analysis.check_helpers.log_starts import decided, not_deleted
from harness.analysis.check_helpers.records import acknowledged, passed_by_one, reading_spans
from harness.analysis.check_helpers.transactions import PRODUCER_KEY, on_furthest
from harness.analysis.frames import PARTITION_KEY, by_parts, in_order, made_once
from harness.contracts.checks import Settings
from harness.store.history import READ_COMMITTED

TRANSACTION_KEY = ("run_id", "process", "transaction")
"""Of a client's transaction."""


@made_once
def closing(records: DataFrame, markers: DataFrame, replicas: DataFrame) -> DataFrame:
    """One row a record that a marker closes in the log that has come furthest, with `marker_offset` and `result`."""
    ends = on_furthest(markers, replicas).select(
        *PRODUCER_KEY, "offset", F.lit(None).cast("string").alias("value"), F.col("offset").alias("end"), "result"
    )
    written = (
        records.where(F.col("producer_id") >= 0)
        .join(ends.select(*PRODUCER_KEY).distinct(), on=list(PRODUCER_KEY), how="left_semi")
        .select(
            *(*PRODUCER_KEY, "offset", "value"),
            F.lit(None).cast("bigint").alias("end"),
            F.lit(None).cast("string").alias("result"),
        )
    )
    following = in_order(*PRODUCER_KEY, by=("offset",)).rowsBetween(0, Window.unboundedFollowing)
    return (
        written.unionByName(ends)
        .withColumn("marker_offset", F.first("end", ignorenulls=True).over(following))
        .withColumn("marker_result", F.first("result", ignorenulls=True).over(following))
        .where(F.col("end").isNull() & F.col("marker_offset").isNotNull())
        .select(*PRODUCER_KEY, "offset", "value", "marker_offset", F.col("marker_result").alias("result"))
    )


def ended_sends(facts: dict[str, DataFrame]) -> DataFrame:
    """One row an acknowledged record of a client's transaction that a marker closes (`closing`)."""
    ends = closing(facts["replica_records"], facts["markers"], facts["replicas"])
    place = [*PARTITION_KEY, "offset", "value"]
    return of_transactions(facts["sends"]).join(
        ends.select(*place, "broker", "producer_id", "marker_offset", "result"), on=place, how="inner"
    )


def marker_times(marker_writes: DataFrame) -> DataFrame:
    """One row a marker that a leader logged, at `marker_offset`: when it was written first and last there.

    Columns: `written_ns` and `last_written_ns`. They differ where a deposed leader had a marker at that offset, which
    was truncated and may be of an earlier transaction.
    """
    return marker_writes.groupBy(*PARTITION_KEY, F.col("offset").alias("marker_offset"), "producer_id").agg(
        F.min("time_ns").alias("written_ns"), F.max("time_ns").alias("last_written_ns")
    )


def of_transactions(sends: DataFrame) -> DataFrame:
    """One row a record of a transaction that was acknowledged with its offset; the columns of `sends`."""
    return acknowledged(sends).where(F.col("transaction").isNotNull())


def read_committed(polls: DataFrame) -> DataFrame:
    """Return what readers with read_committed got."""
    return polls.where(F.col("isolation") == READ_COMMITTED)


def passed_unread(records: DataFrame, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
    """Return the records that a reader with read_committed passed and that none got, with `spans` and `unclean`.

    Records are left out that retention, a client or a cleaner may have removed. The facts are `UNREAD_BY`.
    """
    readers = read_committed(facts["polls"])
    came_past = (F.col("offset") < F.col("last")) & (F.lit(settings.read_from_start) | passed_by_one(F.col("offset")))
    place = [*PARTITION_KEY, "value"]

    def never_read(records: DataFrame, read: DataFrame) -> DataFrame:
        unread = records.join(read, on=place, how="left_anti")
        return unread.join(reading_spans(readers), on=list(PARTITION_KEY), how="inner").where(came_past)

    unread = by_parts(never_read, records, readers.select(*place), on=place)
    kept = decided(not_superseded(unread, facts[SUPERSEDED]), facts, settings)
    return with_unclean_election(not_deleted(kept, facts["replicas"], settings), facts["leader_epochs"], settings)


UNREAD_BY = ("leader_epochs", "broker_logs", "replicas", SUPERSEDED)
"""Facts, beside `sends` and `polls`, that say whether a record is missing."""

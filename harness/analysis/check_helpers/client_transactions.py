"""What became of clients' transactions in the logs, and what may excuse that?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.check_helpers.compaction import SUPERSEDED, not_superseded
from harness.analysis.check_helpers.findings import with_unclean_election
from harness.analysis.check_helpers.log_starts import decided, not_deleted
from harness.analysis.check_helpers.records import acknowledged, passed_by_one, reading_spans, with_others_there
from harness.analysis.check_helpers.transactions import PRODUCER_KEY, on_furthest
from harness.analysis.frames import PARTITION_KEY, by_parts, in_order, made_once, stored_for_parts
from harness.contracts.checks import Settings
from harness.store.history import READ_COMMITTED

TRANSACTION_KEY = ("run_id", "process", "transaction")
"""Of a client's transaction."""


@made_once
def closing(records: DataFrame, markers: DataFrame, replicas: DataFrame) -> DataFrame:
    """One row a record or marker, of a producer with markers, in the log that has come furthest.

    Columns: `PRODUCER_KEY`, `offset`, `value`, null for a marker, and the first marker from there on: `marker_offset`
    and `result`, null for a record of an open transaction.
    """
    ends = on_furthest(markers, replicas).select(
        *PRODUCER_KEY, "offset", F.lit(None).cast("string").alias("value"), F.col("offset").alias("end"), "result"
    )
    written = records.join(ends.select(*PRODUCER_KEY).distinct(), on=list(PRODUCER_KEY), how="left_semi").select(
        *(*PRODUCER_KEY, "offset", "value"),
        F.lit(None).cast("bigint").alias("end"),
        F.lit(None).cast("string").alias("result"),
    )
    from_here = in_order(*PRODUCER_KEY, by=("offset",)).rowsBetween(Window.currentRow, Window.unboundedFollowing)
    return written.unionByName(ends).select(
        *(*PRODUCER_KEY, "offset", "value"),
        F.first("end", ignorenulls=True).over(from_here).alias("marker_offset"),
        F.first("result", ignorenulls=True).over(from_here).alias("result"),
    )


def ended_sends(facts: dict[str, DataFrame]) -> DataFrame:
    """One row an acknowledged record of a producer with markers in the log, with the marker that closes it (`closing`).

    What no marker closes has neither `marker_offset` nor `result`.
    """
    ends = closing(facts["replica_records"], facts["markers"], facts["replicas"])
    place = [*PARTITION_KEY, "offset", "value"]
    return acknowledged(facts["sends"]).join(
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
    spans = stored_for_parts(reading_spans(readers))

    def never_read(records: DataFrame, read: DataFrame) -> DataFrame:
        unread = records.join(read, on=place, how="left_anti")
        return unread.join(spans, on=list(PARTITION_KEY), how="inner").where(came_past)

    unread = by_parts(never_read, records, readers.select(*place), on=place)
    kept = decided(not_superseded(unread, facts[SUPERSEDED]), facts, settings)
    rows = with_others_there(not_deleted(kept, facts["replicas"], settings), readers)
    return with_unclean_election(rows, facts["leader_epochs"], settings, since="since")


UNREAD_BY = ("leader_epochs", "broker_logs", "replicas", SUPERSEDED)
"""Facts, beside `sends` and `polls`, that say whether a record is missing."""

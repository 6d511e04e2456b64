"""Records as clients saw them: which were acknowledged, which were read, and how far readers came."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event
from harness.analysis.frames import PARTITION_KEY, by_parts, in_turn, made_once
from harness.store.history import COMMITTED, OpType


def acknowledged(sends: DataFrame) -> DataFrame:
    """One row a record that was acknowledged with its offset, which acks=0 never is; the columns of `sends`."""
    return sends.where(is_acknowledged())


def is_acknowledged() -> Column:
    """Return whether a row of `sends` is a record that was acknowledged with its offset."""
    return (F.col("outcome") == OpType.OK.value) & F.col("offset").isNotNull()


def stays_readable() -> Column:
    """Return whether a row of `sends` is no record of a transaction that may have been aborted."""
    return F.col("transaction_outcome").isNull() | (F.col("transaction_outcome") == COMMITTED)


@made_once
def unread(sends: DataFrame, polls: DataFrame) -> DataFrame:
    """One row an acknowledged record whose value was not read from its partition, at any offset.

    A record of a transaction counts when its commit was acknowledged too.

    Columns: those of `sends`, and of its partition the `spans` of its readers, the last offset that was read and its
    value, null if nothing was read.
    """
    spans = (
        polls.groupBy(*PARTITION_KEY, "process")
        .agg(*_span(), F.max_by("value", in_turn("offset", "value")).alias("value"))
        .groupBy(*PARTITION_KEY)
        .agg(
            _spans(),
            F.max("last").alias("last_read_offset"),
            F.max_by("value", in_turn("last", "value")).alias("last_read_value"),
        )
    )
    place = [*PARTITION_KEY, "value"]

    def never_read(sent: DataFrame, read: DataFrame) -> DataFrame:
        return sent.join(read, on=place, how="left_anti")

    absent = by_parts(never_read, acknowledged(sends).where(stays_readable()), polls.select(*place), on=place)
    return absent.join(spans.hint("shuffle_hash"), on=list(PARTITION_KEY), how="left")


def with_others_there(unread: DataFrame, polls: DataFrame) -> DataFrame:
    """Add `since`: the oldest epoch of other records that were read at a row's `offset`, else that of its own record.

    A reader that got what an unclean election took away goes on behind it, and not with what was written there since.
    """
    place = [*PARTITION_KEY, "offset"]
    there = polls.select(*place, F.col("leader_epoch").alias("read_in"), F.lit(True).alias("other"))
    others = unread.join(there, on=place, how="left").groupBy(*unread.columns)
    rows = others.agg(
        F.count("other").alias("others"), F.min("read_in").alias("oldest"), F.count("read_in").alias("known")
    )
    all_known = (F.col("known") == F.col("others")) & F.col("leader_epoch").isNotNull()
    since = F.when(all_known, F.least(F.coalesce("oldest", "leader_epoch"), "leader_epoch"))
    return rows.withColumn("since", since).drop("others", "oldest", "known")


def reading_spans(polls: DataFrame) -> DataFrame:
    """One row a partition: the `spans` of its readers, and the `last` offset that was read."""
    of_readers = polls.groupBy(*PARTITION_KEY, "process").agg(*_span())
    return of_readers.groupBy(*PARTITION_KEY).agg(_spans(), F.max("last").alias("last"))


def _span() -> tuple[Column, Column]:
    return F.min("offset").alias("first"), F.max("offset").alias("last")


def _spans() -> Column:
    return F.collect_list(F.struct("first", "last")).alias("spans")


def passed_by_one(offset: Column) -> Column:
    """Return whether one reader began at an offset or before it, and came past it; null in a row without `spans`."""
    return F.exists("spans", lambda span: (span["first"] <= offset) & (span["last"] > offset))


def acks_text() -> Column:
    """Return a row's acks level as producers configure it."""
    return F.when(F.col("acks") == -1, "all").otherwise(F.col("acks").cast("string"))


def send_and_last_read() -> Column:
    """Return a record's send and the last record that was read of its partition, as evidence."""
    return F.array(
        event("sends", "process", "index", "value", "acks", "offset", "leader_epoch", "invoke_ns", "complete_ns"),
        event("polls", "last_read_offset as offset", "last_read_value as value"),
    )

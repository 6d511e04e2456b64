"""Which readers jumped ahead over records that others read, or went back: within one poll, or from poll to poll?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.check_helpers.compaction import SUPERSEDED
from harness.analysis.check_helpers.findings import event
from harness.analysis.check_helpers.log_starts import decided, deletable
from harness.analysis.check_helpers.records import stays_readable
from harness.analysis.frames import PARTITION_KEY, by_parts, in_order, made_once, partition_number, stored_for_parts
from harness.contracts.checks import Settings, Severity
from harness.store.history import READ_COMMITTED, READ_UNCOMMITTED

REBALANCED_MODES = ("subscribe", "")
"""Modes of a poll in which a rebalance may move the reader; other clients' histories need not say the mode."""


def skips(facts: dict[str, DataFrame], settings: Settings, *, within_poll: bool) -> DataFrame:
    """One row a step over a record that another reader read and that is not deleted.

    A record is deleted if it lies before the start of every replica's log; where records may be deleted, of one's, as
    followers write down a new start later than their leader. A record that may be aborted is skipped only by a reader
    that is known to read uncommitted records.

    Columns: those of `poll_steps`, the first such offset as `skipped`, and where logs begin, `first_start` and
    `last_start`.
    """
    steps = decided(facts["poll_steps"], facts, settings)
    rows = _skips(steps, facts["polls"], facts["sends"], facts["replicas"], facts[SUPERSEDED])
    start = F.when(deletable(settings), F.col("last_start")).otherwise(F.col("first_start"))
    return _which(rows.where(F.coalesce(F.col("skipped") >= start, F.lit(True))), within_poll)


@made_once
def _skips(
    poll_steps: DataFrame, polls: DataFrame, sends: DataFrame, replicas: DataFrame, superseded: DataFrame
) -> DataFrame:
    """Of both kinds; the record before a step was read too, so what follows it among all offsets read is skipped.

    But for those that a cleaner may have emptied since.
    """
    named = F.col("topic").isNotNull() & F.col("partition").isNotNull()
    place = partition_number().alias("place")
    ahead = poll_steps.where(F.col("offset") > F.col("previous_offset") + 1).select("*", place)
    read = polls.where(named).select(place, "offset", "value", "isolation")
    jumped = ahead.select("place").distinct().hint("shuffle_hash")
    aborted = sends.where(~stays_readable()).select(place, "value", F.lit(False).alias("committed"))
    only_aborted = (F.col("isolation") != READ_COMMITTED) & F.col("committed").isNotNull()
    # Sail keeps the left side of a join in memory; it expects few rows of a join, and would keep those too
    reads = aborted.join(read, on=["place", "value"], how="right").join(jumped, on="place", how="left_semi")
    reads = stored_for_parts(reads.select("place", "offset", (~only_aborted).alias("committed")))
    offsets = by_parts(_offsets, reads, on=("place", "offset"))
    emptied = superseded.select(place, "offset", F.lit(True).alias("emptied"))
    rows = by_parts(_following, ahead, offsets.join(emptied, on=["place", "offset"], how="left"), on=("place",))
    starts = replicas.groupBy(*PARTITION_KEY).agg(
        F.min("log_start_offset").alias("first_start"), F.max("log_start_offset").alias("last_start")
    )
    return rows.join(starts, on=list(PARTITION_KEY), how="left")


def _offsets(reads: DataFrame) -> DataFrame:
    """One row an offset that was read: whether its record was `committed`, null where no reader can say."""
    return reads.groupBy("place", "offset").agg(F.max("committed").alias("committed"))


def _following(ahead: DataFrame, offsets: DataFrame) -> DataFrame:
    """The steps ahead of some partitions over an offset that was read, with the first such one as `skipped`."""
    stays = F.when(F.col("emptied").isNull(), F.col("offset"))
    after_it = in_order("place", by=("offset",)).rowsBetween(1, Window.unboundedFollowing)
    following = offsets.select(
        "place",
        F.col("offset").alias("previous_offset"),
        F.first(stays, ignorenulls=True).over(after_it).alias("skipped_of_all"),
        F.first(F.when(F.col("committed"), stays), ignorenulls=True).over(after_it).alias("skipped_committed"),
    )
    reads_all = F.col("isolation") == READ_UNCOMMITTED
    skipped = F.when(reads_all, F.col("skipped_of_all")).otherwise(F.col("skipped_committed"))
    return (
        ahead.join(following, on=["place", "previous_offset"], how="inner")
        .withColumn("skipped", skipped)
        .drop("place", "skipped_of_all", "skipped_committed")
        .where(F.col("skipped") < F.col("offset"))
    )


def regressions(facts: dict[str, DataFrame], *, within_poll: bool) -> DataFrame:
    """One row a step to an offset that the reader has passed, with the columns of `poll_steps`."""
    return _which(facts["poll_steps"], within_poll).where(F.col("offset") <= F.col("previous_offset"))


def _which(steps: DataFrame, within_poll: bool) -> DataFrame:
    same = F.col("index") == F.col("previous_index")
    return steps.where(same if within_poll else ~same)


def step_events() -> Column:
    """Return the two records of a step, as evidence."""
    before = event("polls", "process", "mode", "previous_index as index", "previous_offset as offset")
    return F.array(before, event("polls", "process", "mode", "index", "offset", "leader_epoch"))


def note_if_moved(severity: Column) -> Column:
    """Return the severity, or a note where a rebalance may have moved the reader (`with_moves`)."""
    return F.when(F.col("moved"), Severity.NOTE.value).otherwise(severity)


def with_moves(steps: DataFrame, ownerships: DataFrame) -> DataFrame:
    """Return the steps with `moved`: a rebalance may have moved the reader, as no ownership of its own spans the step.

    What began last before the step must have begun before the poll that it comes from: a member that gets a partition
    again that it has kept was moved too. It must not end before the poll to which the step leads has ended: a rebalance
    may come within a poll. In a history without ownerships any of its members may have been moved.
    """
    key = [*PARTITION_KEY, "process"]
    owned = ownerships.select(*key, F.struct(F.col("index").alias("since"), "until_index", "until_ns").alias("owned"))
    last = F.max(F.when(F.col("owned.since") < F.col("index"), F.col("owned"))).alias("owned")
    ended_later = (F.col("owned.until_index") > F.col("index")) & (F.col("owned.until_ns") >= F.col("time_ns"))
    not_ended = F.col("owned.until_index").isNull()
    spans = (F.col("owned.since") < F.col("previous_index")) & (not_ended | ended_later)
    return (
        steps.join(owned, on=key, how="left")
        .groupBy(*steps.columns)
        .agg(last)
        .withColumn("moved", F.col("mode").isin(*REBALANCED_MODES) & ~F.coalesce(spans, F.lit(False)))
    )

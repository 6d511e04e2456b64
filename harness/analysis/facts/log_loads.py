"""What did each broker find of its logs when it started, and how had it left them?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import LIFE_KEY, PARTITION_KEY, conform, in_order, in_turn
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.protocol import LOG_LOADS, SEGMENT_DELETIONS
from harness.events import (
    BecomeFollower,
    BecomeLeader,
    BrokerRegistered,
    BrokerStart,
    LogsClose,
    LogStart,
    Recovery,
    Truncate,
)

_BROKER = ("run_id", "broker")
_TELL_STARTS = (Recovery.ev, LogStart.ev, BecomeLeader.ev, BecomeFollower.ev, Truncate.ev)
"""Lines that say where a log starts; of truncations those after which it is empty."""


def log_loads(state_changes: StateChanges) -> DataFrame:
    """One row a log that a broker loaded when it started.

    The life before is the last one in which the broker came to load its logs: only then does it take the marker of a
    clean stop away.
    """
    lives = _lives(state_changes)
    before = lives.select(
        *_BROKER, F.col("incarnation").alias("previous_incarnation"), F.col("closes").alias("closed")
    ).distinct()
    starts = _last_starts(state_changes).withColumnRenamed("incarnation", "previous_incarnation")
    loads = state_changes.of(Recovery.ev).join(
        lives.select(*LIFE_KEY, "previous_incarnation"), on=list(LIFE_KEY), how="left"
    )
    return conform(
        loads.join(before, on=[*_BROKER, "previous_incarnation"], how="left").join(
            starts, on=[*PARTITION_KEY, "broker", "previous_incarnation"], how="left"
        ),
        LOG_LOADS,
    )


def segment_deletions(state_changes: StateChanges) -> DataFrame:
    """One row a segment that retention deleted."""
    return conform(state_changes.of("segment_delete"), SEGMENT_DELETIONS)


def _lives(state_changes: StateChanges) -> DataFrame:
    """One row a life in which a broker loaded its logs, with the one before."""
    ev = F.col("ev")
    lives = (
        state_changes.of(BrokerStart.ev, Recovery.ev, BrokerRegistered.ev, LogsClose.ev)
        .groupBy(*LIFE_KEY)
        .agg(
            F.min(F.when(ev == BrokerStart.ev, F.col("time_ns"))).alias("began_ns"),
            F.max(F.when(ev == LogsClose.ev, F.col("seq"))).isNotNull().alias("closes"),
            F.max(F.when(ev.isin(Recovery.ev, BrokerRegistered.ev), F.col("seq"))).isNotNull().alias("loaded"),
        )
        .where(F.col("loaded") & F.col("began_ns").isNotNull())
    )
    previous = F.lag("incarnation").over(in_order(*_BROKER, by=("began_ns",)))
    return lives.withColumn("previous_incarnation", previous)


def _last_starts(state_changes: StateChanges) -> DataFrame:
    """One row a log in one life: where it started by the last line that says so."""
    empties = (F.col("ev") == Truncate.ev) & (F.col("reason") == "full")
    moved = F.when(empties, F.col("to")).otherwise(F.col("new").try_cast("bigint"))  # of other kinds, `new` is a list
    start = F.coalesce("log_start_offset", moved)
    return (
        state_changes.of(*_TELL_STARTS)
        .where(F.coalesce(start, F.lit(-1)) >= 0)
        .groupBy(*PARTITION_KEY, "broker", "incarnation")
        .agg(F.max_by(start, in_turn("seq")).alias("previous_log_start_offset"))
    )

"""Which high watermark did each follower receive with the last records that it copied, and which did it adopt?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY, conform, in_turn
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.protocol import FOLLOWER_WATERMARKS

CARRIED_NS = 10_000_000
"""By so much a high watermark is older than a record, so that every answer with the record carries it: Kafka reads the
high watermark before the records."""
_EPOCH = (*PARTITION_KEY, "leader_epoch")
_FOLLOWER = (*_EPOCH, "broker")


def follower_watermarks(claims: DataFrame, state_changes: StateChanges, lives: DataFrame) -> DataFrame:
    """One row a follower and leader epoch in which it copied records that the leader says it wrote.

    `claims` is the fact `leadership_claims`.
    """
    writes, marks = state_changes.of("append"), state_changes.of("hw")
    last = in_turn("time_ns", "seq")
    copied = (
        writes.where(F.col("role") == "follower")
        .groupBy(*_FOLLOWER)
        .agg(F.max_by(F.struct("incarnation", "seq", "time_ns", "last_offset"), last).alias("copied"))
        .select(*_FOLLOWER, "copied.*")
        .join(lives.select("run_id", "broker", "incarnation", "lived_ns"), on=["run_id", "broker", "incarnation"])
    )
    return conform(
        copied.join(_of_leaders(copied, writes, marks), on=list(_FOLLOWER), how="inner").join(
            _taken_over(claims, marks), on=list(_FOLLOWER), how="left"
        ),
        FOLLOWER_WATERMARKS,
    )


def _of_leaders(copied: DataFrame, writes: DataFrame, marks: DataFrame) -> DataFrame:
    """One row a follower and epoch: the leader's high watermark when it wrote what the follower copied last.

    A leader that starts again begins at its checkpoint; what it knew in an earlier life does not count.
    """
    offsets = copied.select(*_FOLLOWER, F.col("last_offset").alias("copied_offset"))
    written = (
        writes.where(F.col("role") == "leader")
        .select(
            *_EPOCH,
            F.col("broker").alias("leader"),
            F.col("incarnation").alias("life"),
            "base_offset",
            "last_offset",
            F.col("time_ns").alias("written_ns"),
        )
        .join(offsets, on=list(_EPOCH), how="inner")
        .where(F.col("copied_offset").between(F.col("base_offset"), F.col("last_offset")))
        .groupBy(*_FOLLOWER, "leader")
        .agg(F.max(F.struct("written_ns", "life")).alias("written"))
        .select(*_FOLLOWER, "leader", "written.*")
    )
    raised = marks.where(F.col("role") == "leader").select(
        *_EPOCH,
        F.col("broker").alias("leader"),
        F.col("incarnation").alias("life"),
        F.col("new").cast("bigint").alias("mark"),
        "time_ns",
    )
    return (
        written.join(raised, on=[*_EPOCH, "leader", "life"], how="inner")
        .where(F.col("time_ns") + CARRIED_NS <= F.col("written_ns"))
        .groupBy(*_FOLLOWER, "leader")
        .agg(F.max("mark").alias("leader_high_watermark"))
    )


def _taken_over(claims: DataFrame, marks: DataFrame) -> DataFrame:
    """One row a follower and epoch: the highest that it knew."""
    known = marks.where(F.col("role") == "follower").select(*_FOLLOWER, F.col("new").cast("bigint").alias("mark"))
    begun = claims.where(F.col("role") == "follower").select(*_FOLLOWER, F.col("high_watermark").alias("mark"))
    return known.unionByName(begun).groupBy(*_FOLLOWER).agg(F.max("mark").alias("high_watermark"))

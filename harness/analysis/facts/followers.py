"""Which high watermark and log start did each follower receive with the last records that it copied, and adopt?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import LIFE_KEY, PARTITION_KEY, conform, in_turn
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.protocol import FOLLOWER_WATERMARKS

CARRIED_NS = 10_000_000
"""By so much a high watermark or log start is older than a record, so that every answer with the record carries it:
Kafka reads both before the records."""
_EPOCH = (*PARTITION_KEY, "leader_epoch")
_FOLLOWER = (*_EPOCH, "broker")
_LIFE = (*PARTITION_KEY, "broker", "incarnation")


def follower_watermarks(claims: DataFrame, state_changes: StateChanges, lives: DataFrame) -> DataFrame:
    """One row a follower and leader epoch in which it copied records that the leader says it wrote.

    `claims` is the fact `leadership_claims`.
    """
    writes, marks, moves = state_changes.of("append"), state_changes.of("hw"), state_changes.of("log_start")
    last = in_turn("time_ns", "seq")
    copied = (
        writes.where(F.col("role") == "follower")
        .groupBy(*_FOLLOWER)
        .agg(F.max_by(F.struct("incarnation", "seq", "time_ns", "last_offset"), last).alias("copied"))
        .select(*_FOLLOWER, "copied.*")
        .join(lives.select(*LIFE_KEY, "lived_ns", "disk_failed"), on=list(LIFE_KEY))
    )
    written = _written(copied, writes, lives)
    starts = moves.select(*_LIFE, "seq", "time_ns", F.col("new").try_cast("bigint").alias("start"))
    return conform(
        copied.join(written, on=list(_FOLLOWER), how="inner")
        .join(_marks_of_leaders(written, marks), on=list(_FOLLOWER), how="left")
        .join(_starts_of_leaders(written, claims, starts), on=list(_FOLLOWER), how="left")
        .where(F.coalesce("leader_high_watermark", "leader_log_start_offset").isNotNull())
        .join(_known_marks(claims, marks), on=list(_FOLLOWER), how="left")
        .join(_known_starts(copied, claims, starts, writes), on=list(_FOLLOWER), how="left"),
        FOLLOWER_WATERMARKS,
    )


def _written(copied: DataFrame, writes: DataFrame, lives: DataFrame) -> DataFrame:
    """One row a follower and epoch: when, and in which life, the leader wrote what the follower copied last.

    A leader that starts again begins at its checkpoints; what it knew in an earlier life does not count. So there is no
    row where that life ended before the copy was made: the follower had it from a later one.
    """
    offsets = copied.select(
        *_FOLLOWER, F.col("last_offset").alias("copied_offset"), F.col("time_ns").alias("copied_ns")
    )
    ends = lives.select(*LIFE_KEY, F.col("lived_ns").alias("ended_ns"))
    return (
        writes.where(F.col("role") == "leader")
        .join(ends, on=list(LIFE_KEY))
        .select(
            *_EPOCH,
            F.col("broker").alias("leader"),
            F.col("incarnation").alias("life"),
            "base_offset",
            "last_offset",
            F.col("time_ns").alias("written_ns"),
            F.col("seq").alias("written_seq"),
            "ended_ns",
        )
        .join(offsets, on=list(_EPOCH), how="inner")
        .where(F.col("copied_offset").between(F.col("base_offset"), F.col("last_offset")))
        .where(F.col("copied_ns") <= F.col("ended_ns"))
        .groupBy(*_FOLLOWER, "leader")
        .agg(F.max(F.struct("written_ns", "written_seq", "life")).alias("written"))
        .select(*_FOLLOWER, "leader", "written.*")
    )


def _marks_of_leaders(written: DataFrame, marks: DataFrame) -> DataFrame:
    """One row a follower and epoch: the leader's high watermark at that moment."""
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
        .groupBy(*_FOLLOWER)
        .agg(F.max("mark").alias("leader_high_watermark"))
    )


def _starts_of_leaders(written: DataFrame, claims: DataFrame, starts: DataFrame) -> DataFrame:
    """One row a follower and epoch: the start of the leader's log at that moment, by what it says since it leads."""
    leads = (
        claims.where((F.col("role") == "leader") & (F.col("log_start_offset") >= 0))
        .groupBy(*_EPOCH, "broker", "incarnation")
        .agg(F.max(F.struct("seq", "time_ns", F.col("log_start_offset").alias("start"))).alias("claim"))
        .withColumns({"leader": F.col("broker"), "life": F.col("incarnation")})
        .drop("broker", "incarnation")
    )
    led = written.join(leads, on=[*_EPOCH, "leader", "life"], how="inner")
    moved = starts.withColumnsRenamed({"broker": "leader", "incarnation": "life"})
    stated = led.select(*_FOLLOWER, "written_ns", "written_seq", "claim", "claim.*").unionByName(
        led.join(moved, on=[*PARTITION_KEY, "leader", "life"], how="inner").select(
            *_FOLLOWER, "written_ns", "written_seq", "claim", "seq", "time_ns", "start"
        )
    )
    return (
        stated.where(F.col("seq").between(F.col("claim.seq"), F.col("written_seq")))
        .where(F.col("time_ns") + CARRIED_NS <= F.col("written_ns"))
        .groupBy(*_FOLLOWER)
        .agg(F.max("start").alias("leader_log_start_offset"))
    )


def _known_marks(claims: DataFrame, marks: DataFrame) -> DataFrame:
    """One row a follower and epoch: the highest that it knew."""
    known = marks.where(F.col("role") == "follower").select(*_FOLLOWER, F.col("new").cast("bigint").alias("mark"))
    begun = claims.where(F.col("role") == "follower").select(*_FOLLOWER, F.col("high_watermark").alias("mark"))
    return known.unionByName(begun).groupBy(*_FOLLOWER).agg(F.max("mark").alias("high_watermark"))


def _known_starts(copied: DataFrame, claims: DataFrame, starts: DataFrame, writes: DataFrame) -> DataFrame:
    """One row a follower and epoch: the highest start that its log had before it wrote records of another epoch.

    Afterwards its own retention may have moved the start.
    """
    first_of_epochs = writes.groupBy(*_LIFE, "leader_epoch").agg(F.min("seq").alias("other_seq")).drop("leader_epoch")
    until = (
        copied.join(first_of_epochs, on=list(_LIFE), how="left")
        .groupBy(*_FOLLOWER, "incarnation")
        .agg(F.min(F.when(F.col("other_seq") > F.col("seq"), F.col("other_seq"))).alias("until_seq"))
    )
    begun = claims.select(*_LIFE, "seq", F.col("log_start_offset").alias("start")).where(F.col("start") >= 0)
    known = starts.select(*_LIFE, "seq", "start").unionByName(begun)
    return (
        until.join(known, on=list(_LIFE), how="inner")
        .where(F.col("until_seq").isNull() | (F.col("seq") < F.col("until_seq")))
        .groupBy(*_FOLLOWER)
        .agg(F.max("start").alias("log_start_offset"))
    )

"""What did the metadata cache of each broker's last life hold when the load ended?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import LIFE_KEY, conform
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.protocol import METADATA_CACHES
from harness.events import FORGOTTEN

_HELD = "array<struct<topic: string, partition: int, leader: int, leader_epoch: int, isr: array<int>>>"


def metadata_caches(state_changes: StateChanges, operations: DataFrame) -> DataFrame:
    """One row a partition in a cache, and one without a partition for an empty cache.

    The last line about a partition says what the cache holds of it. What is logged when brokers stop does not count:
    by then ZooKeeper's history has been taken.
    """
    ended = operations.groupBy("run_id").agg(F.max(F.greatest("invoke_ns", "complete_ns")).alias("ended_ns"))
    is_update = (F.col("ev") == "ctl_recv") & F.col("live_brokers").isNotNull()
    lines = (
        state_changes.of("broker_start", "ctl_recv")
        .where((F.col("ev") == "broker_start") | is_update)
        .join(ended, on="run_id", how="inner")
        .where(F.col("time_ns") <= F.col("ended_ns"))
    )
    update = F.when(is_update, F.col("seq"))
    lives = lines.groupBy(*LIFE_KEY, "ended_ns").agg(
        F.max("time_ns").alias("lived_ns"), F.max_by("live_brokers", update).alias("live_brokers")
    )
    last_lives = (
        lives.groupBy("run_id", "broker", "ended_ns")
        .agg(F.max_by(F.struct("incarnation", "live_brokers"), "lived_ns").alias("last"))
        .select("run_id", "broker", "ended_ns", "last.*")
    )
    held = (
        lines.where(is_update)
        .select(*LIFE_KEY, "seq", F.explode(F.from_json("partitions", _HELD)).alias("held"))
        .groupBy(*LIFE_KEY, "held.topic", "held.partition")
        .agg(F.max_by(F.struct("seq", "held.leader", "held.leader_epoch", "held.isr"), "seq").alias("last"))
        .select(*LIFE_KEY, "topic", "partition", "last.*")
        .where(F.col("leader") != FORGOTTEN)
    )
    return conform(last_lives.join(held, on=list(LIFE_KEY), how="left"), METADATA_CACHES)

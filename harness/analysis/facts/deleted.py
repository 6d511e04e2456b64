"""Which logs that had been deleted were still on a broker's disk, and since when could it have removed them?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.facts.protocol import control_requests
from harness.analysis.frames import PARTITION_KEY, conform
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.protocol import DELETED_LOGS

_BROKER = ("run_id", "broker")


def deleted_logs(folders: DataFrame, lives: DataFrame, state_changes: StateChanges) -> DataFrame:
    """One row a folder that waits to be removed.

    A broker looks for such folders when it has loaded its logs, just before it registers. A replica that began again
    may have moved to another data directory, which puts a folder aside without a line: when that was is not known.
    """
    last_lives = (
        lives.groupBy(*_BROKER)
        .agg(F.max_by(F.struct("began_ns", "lived_ns", "disk_failed"), "lived_ns").alias("last"))
        .select(*_BROKER, "last.*")
    )
    stops = F.when(F.col("api") == "StopReplica", F.col("time_ns"))
    begins = F.when(F.col("api") == "LeaderAndIsr", F.col("time_ns"))
    stopped = (
        control_requests(state_changes)
        .where(F.col("partition_verdict") == "applied")
        .groupBy(*PARTITION_KEY, "broker")
        .agg(F.max(stops).alias("stopped_ns"), F.max(begins).alias("begun_ns"))
        .where(F.coalesce(F.col("begun_ns") < F.col("stopped_ns"), F.lit(True)))
    )
    rows = folders.join(last_lives, on=list(_BROKER), how="left").join(
        stopped, on=[*PARTITION_KEY, "broker"], how="left"
    )
    return conform(rows, DELETED_LOGS)

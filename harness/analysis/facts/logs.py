"""How did replicas' logs and high watermarks change, and what did the logs hold after the run?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import conform, events_of, null_if_unknown
from harness.analysis.schemas import HIGH_WATERMARKS, REPLICA_RECORDS, REPLICAS, TRUNCATIONS


def high_watermarks(state_changes: DataFrame) -> DataFrame:
    """One row a change of one replica's high watermark."""
    return conform(events_of(state_changes, "hw"), HIGH_WATERMARKS)


def truncations(state_changes: DataFrame) -> DataFrame:
    """One row each time that a log lost its end."""
    return conform(events_of(state_changes, "truncate").withColumnRenamed("to", "to_offset"), TRUNCATIONS)


def replicas(dumps: DataFrame) -> DataFrame:
    """One row a replica: its checkpoints and whether its dump is whole."""
    return conform(
        dumps.where(F.col("type") == "replica").withColumn("high_watermark", null_if_unknown("high_watermark")),
        REPLICAS,
    )


def replica_records(dumps: DataFrame) -> DataFrame:
    """One row a record in one replica's log."""
    return conform(dumps.where(F.col("type") == "record"), REPLICA_RECORDS)

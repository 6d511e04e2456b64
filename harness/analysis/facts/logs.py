"""What became of replicas' logs: high watermarks, truncations, and what was found in them after the run."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import conform, known
from harness.analysis.schemas import HIGH_WATERMARKS, REPLICA_RECORDS, REPLICAS, TRUNCATIONS


def high_watermarks(state_changes: DataFrame) -> DataFrame:
    """One row a change of one replica's high watermark."""
    return conform(_said(state_changes, "hw"), HIGH_WATERMARKS)


def truncations(state_changes: DataFrame) -> DataFrame:
    """One row each time that a log lost its end."""
    return conform(_said(state_changes, "truncate").withColumnRenamed("to", "to_offset"), TRUNCATIONS)


def _said(state_changes: DataFrame, kind: str) -> DataFrame:
    return (
        state_changes.where(F.col("ev") == kind)
        .withColumnRenamed("inc", "incarnation")
        .withColumnRenamed("mono", "time_ns")
    )


def replicas(dumps: DataFrame) -> DataFrame:
    """One row a replica: its checkpoints and whether its dump is whole."""
    return conform(
        dumps.where(F.col("type") == "replica").withColumn("high_watermark", known("high_watermark")), REPLICAS
    )


def replica_records(dumps: DataFrame) -> DataFrame:
    """One row a record in one replica's log."""
    return conform(dumps.where(F.col("type") == "record"), REPLICA_RECORDS)

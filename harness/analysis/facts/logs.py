"""How did replicas' logs and high watermarks change, and what did the logs hold after the run?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import conform, null_if_unknown
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.sources.typed import NO_SEQUENCE
from harness.analysis.tables.schemas import HIGH_WATERMARKS, REPLICA_RECORDS, REPLICAS, TRUNCATIONS
from harness.values import OFFSETS_TOPIC


def high_watermarks(state_changes: StateChanges) -> DataFrame:
    """One row a change of one replica's high watermark."""
    return conform(state_changes.of("hw"), HIGH_WATERMARKS)


def truncations(state_changes: StateChanges) -> DataFrame:
    """One row each time that a log lost its end."""
    return conform(state_changes.of("truncate").withColumnRenamed("to", "to_offset"), TRUNCATIONS)


def replicas(dumps: DataFrame) -> DataFrame:
    """One row a replica: its checkpoints and whether its dump is whole."""
    return conform(
        dumps.where(F.col("type") == "replica").withColumn("high_watermark", null_if_unknown("high_watermark")),
        REPLICAS,
    )


def replica_records(dumps: DataFrame) -> DataFrame:
    """One row a record in one replica's log; without a producer it has no number, whatever its batch says.

    Kafka's coordinator writes `__consumer_offsets` without a producer, in batches that begin with number 0.
    """
    records = dumps.where(F.col("type") == "record")
    numbered = F.when((F.col("producer_id") >= 0) & (F.col("topic") != OFFSETS_TOPIC), F.col("sequence")).otherwise(
        NO_SEQUENCE
    )
    return conform(records.withColumn("sequence", numbered), REPLICA_RECORDS)

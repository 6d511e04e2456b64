"""Records as clients saw them: acknowledged, read, never read."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY
from harness.store.history import OpType


def acknowledged(sends: DataFrame) -> DataFrame:
    """One row per record the cluster said it has, with its offset; a send with acks=0 is never told."""
    return sends.where((F.col("outcome") == OpType.OK.value) & F.col("offset").isNotNull())


def unread(records: DataFrame, polls: DataFrame) -> DataFrame:
    """The records whose value nobody read from their partition, at whatever offset."""
    return records.join(polls, on=[*PARTITION_KEY, "value"], how="left_anti")


def read_span(polls: DataFrame) -> DataFrame:
    """One row a partition: the lowest and the highest offset that anybody read, and the value of the highest."""
    return polls.groupBy(*PARTITION_KEY).agg(
        F.min("offset").alias("first_read_offset"),
        F.max("offset").alias("last_read_offset"),
        F.max_by("value", "offset").alias("last_read_value"),
    )

"""What became of records as clients saw them: which were acknowledged, which were read, how far did readers come?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.findings import event
from harness.analysis.frames import PARTITION_KEY
from harness.store.history import OpType


def acknowledged(sends: DataFrame) -> DataFrame:
    """One row a record that was acknowledged with its offset, which acks=0 never is; the columns of `sends`."""
    return sends.where((F.col("outcome") == OpType.OK.value) & F.col("offset").isNotNull())


def unread(records: DataFrame, polls: DataFrame) -> DataFrame:
    """One row a record whose value nobody read from its partition, at whatever offset; the columns of `records`."""
    return records.join(polls, on=[*PARTITION_KEY, "value"], how="left_anti")


def read_span(polls: DataFrame) -> DataFrame:
    """One row a partition that was read: its first and last read offset, and the value of the last."""
    return polls.groupBy(*PARTITION_KEY).agg(
        F.min("offset").alias("first_read_offset"),
        F.max("offset").alias("last_read_offset"),
        F.max_by("value", "offset").alias("last_read_value"),
    )


def acks_text() -> Column:
    """Return a row's acks level as producers configure it."""
    return F.when(F.col("acks") == -1, "all").otherwise(F.col("acks").cast("string"))


def send_and_last_read() -> Column:
    """Return a record's send and the last record that was read of its partition, as evidence."""
    return F.array(
        event("sends", "process", "index", "value", "acks", "offset", "leader_epoch", "invoke_ns", "complete_ns"),
        event("polls", F.col("last_read_offset").alias("offset"), F.col("last_read_value").alias("value")),
    )

"""What clients tried and saw: one row a record that was sent, one row a record that was read."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import conform, known
from harness.analysis.schemas import POLLS, SENDS
from harness.store.history import OpKind, OpType

_LARGEST_BATCH = 1_000_000
"""Records; a longer range of offsets in a log line is not a batch and is not unfolded."""


def completed(operations: DataFrame, *kinds: OpKind) -> DataFrame:
    """One row an operation: what it asked, when, and how it ended; without an end it is an info.

    Should two ends be on file, ok outranks info and info outranks fail, as their names sort backwards.
    """
    is_end = F.col("type") != OpType.INVOKE.value
    is_ok = F.col("type") == OpType.OK.value
    return (
        operations.where(F.col("kind").isin([kind.value for kind in kinds]))
        .groupBy("run_id", "process", "index", "kind")
        .agg(
            F.min("time_ns").alias("invoke_ns"),
            F.max(F.when(is_end, F.col("time_ns"))).alias("complete_ns"),
            F.coalesce(F.max(F.when(is_end, F.col("type"))), F.lit(OpType.INFO.value)).alias("outcome"),
            *(F.max(name).alias(name) for name in ("topic", "partition", "key", "value", "acks", "group", "error")),
            F.max(F.when(is_ok, F.col("offset"))).alias("ok_offset"),
            F.max("offset").alias("offset"),
            F.count("*").alias("lines"),
        )
    )


def sends(operations: DataFrame, state_changes: DataFrame) -> DataFrame:
    """One row a record that a client tried to write, with the epoch in which it was acknowledged."""
    tried = completed(operations, OpKind.SEND).select(
        "run_id",
        "process",
        "index",
        "topic",
        known("partition"),
        "key",
        "value",
        "acks",
        "invoke_ns",
        "complete_ns",
        "outcome",
        F.nullif(F.col("ok_offset"), F.lit(-1)).alias("offset"),
        "error",
        "lines",
    )
    answers = _answered_offsets(state_changes)
    within = (F.col("answer_ns") >= F.col("invoke_ns")) & (F.col("answer_ns") <= F.col("complete_ns"))
    epochs = (
        tried.where(F.col("offset").isNotNull())
        .join(answers, on=["run_id", "topic", "partition", "offset"], how="inner")
        .where(within)
        .groupBy("run_id", "process", "index")
        .agg(F.max("leader_epoch").alias("leader_epoch"))
    )
    return conform(tried.join(epochs, on=["run_id", "process", "index"], how="left"), SENDS)


def _answered_offsets(state_changes: DataFrame) -> DataFrame:
    """One row an offset that a leader said is written: when by its own clock, and in which leader epoch."""
    length = F.col("last_offset") - F.col("base_offset")
    good = (F.col("ev") == "produce_resp") & (F.col("error") == "0") & (F.col("base_offset") >= 0)
    return state_changes.where(good & length.between(0, _LARGEST_BATCH)).select(
        "run_id",
        "topic",
        "partition",
        F.explode(F.sequence("base_offset", "last_offset")).alias("offset"),
        F.col("mono").alias("answer_ns"),
        "leader_epoch",
    )


def polls(operations: DataFrame) -> DataFrame:
    """One row a record that a client read, in the order in which it was handed out."""
    is_poll = (F.col("kind") == OpKind.POLL.value) & (F.col("type") == OpType.OK.value)
    return conform(
        operations.where(is_poll)
        .select("run_id", "process", "index", "time_ns", "mode", F.posexplode("records").alias("position", "record"))
        .select(
            "run_id",
            "process",
            "index",
            "time_ns",
            "mode",
            "position",
            "record.topic",
            "record.partition",
            "record.offset",
            "record.value",
            F.nullif(F.col("record.leader_epoch"), F.lit(-1)).alias("leader_epoch"),
        ),
        POLLS,
    )

"""What did clients send and read? One row a record that was sent, one row a record that was read."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import conform, null_if_unknown
from harness.analysis.schemas import POLLS, SENDS
from harness.analysis.state_changes import StateChanges
from harness.store.history import OpKind, OpType

_LARGEST_BATCH = 1_000_000
"""Records; a longer range of offsets in a log line is not a batch and is not unfolded."""


def completed(operations: DataFrame, *kinds: OpKind) -> DataFrame:
    """One row an operation: its arguments, `invoke_ns`, `complete_ns`, `outcome`, `ok_offset`, `lines` and more.

    Without an end it is an info. Of two ends ok outranks info and info outranks fail, as their names sort backwards.
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


def sends(operations: DataFrame, state_changes: StateChanges) -> DataFrame:
    """One row a record that a client tried to write, with the epoch in which it was acknowledged."""
    attempts = completed(operations, OpKind.SEND).select(
        "run_id",
        "process",
        "index",
        "topic",
        null_if_unknown("partition"),
        "key",
        "value",
        "acks",
        "invoke_ns",
        "complete_ns",
        "outcome",
        null_if_unknown("ok_offset").alias("offset"),
        "error",
        "lines",
    )
    answers = _answered_offsets(state_changes)
    within = (F.col("answer_ns") >= F.col("invoke_ns")) & (F.col("answer_ns") <= F.col("complete_ns"))
    epochs = (
        attempts.where(F.col("offset").isNotNull())
        .join(answers, on=["run_id", "topic", "partition", "offset"], how="inner")
        .where(within)
        .groupBy("run_id", "process", "index")
        .agg(F.max("leader_epoch").alias("leader_epoch"))
    )
    return conform(attempts.join(epochs, on=["run_id", "process", "index"], how="left"), SENDS)


def successes(state_changes: StateChanges) -> DataFrame:
    """One row an answer of a leader that a batch was written, with the columns of its line."""
    return state_changes.of("produce_resp").where((F.col("error") == "0") & (F.col("base_offset") >= 0))


def _answered_offsets(state_changes: StateChanges) -> DataFrame:
    """One row an offset that a leader acknowledged: `answer_ns`, and in which leader epoch."""
    length = F.col("last_offset") - F.col("base_offset")
    return (
        successes(state_changes)
        .where(length.between(0, _LARGEST_BATCH))
        .select(
            "run_id",
            "topic",
            "partition",
            F.explode(F.sequence("base_offset", "last_offset")).alias("offset"),
            F.col("time_ns").alias("answer_ns"),
            "leader_epoch",
        )
    )


def polls(operations: DataFrame) -> DataFrame:
    """One row a record that a client read, with its place in the poll."""
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
            null_if_unknown("record.leader_epoch").alias("leader_epoch"),
        ),
        POLLS,
    )

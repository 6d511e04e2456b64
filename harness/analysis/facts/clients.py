"""What did clients send and read? One row a record that was sent, one row a record that was read."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import conform, null_if_unknown
from harness.analysis.schemas import POLLS, SENDS
from harness.analysis.state_changes import StateChanges
from harness.analysis.typed import ARGUMENTS, OPERATIONS
from harness.store.history import OpKind, OpType

_LARGEST_BATCH = 1_000_000
"""Records; a longer range of offsets in a log line is not a batch and is not unfolded."""
_ANSWERED_IN = """array_max(transform(
    filter(answers, each -> each.time_ns between invoke_ns and complete_ns), each -> each.leader_epoch))"""


def completed(lines: DataFrame) -> DataFrame:
    """One row an operation: its arguments, when it began and ended, how, and how many lines tell of it.

    Without an end it is an info. Of two ends ok outranks info and info outranks fail, as their names sort backwards.
    """
    is_end = F.col("type") != OpType.INVOKE.value
    is_ok = F.col("type") == OpType.OK.value
    return (
        lines.groupBy("run_id", "process", "index", "kind")
        .agg(
            F.min("time_ns").alias("invoke_ns"),
            F.max(F.when(is_end, F.col("time_ns"))).alias("complete_ns"),
            F.coalesce(F.max(F.when(is_end, F.col("type"))), F.lit(OpType.INFO.value)).alias("outcome"),
            *(F.max(name).alias(name) for name in ARGUMENTS),
            F.max(F.when(is_ok, F.col("offset"))).alias("ok_offset"),
            F.max("offset").alias("offset"),
            F.count("*").alias("lines"),
        )
        .select(*OPERATIONS.names)
    )


def of_kind(operations: DataFrame, *kinds: OpKind) -> DataFrame:
    """Return the operations of some kinds."""
    return operations.where(F.col("kind").isin([kind.value for kind in kinds]))


def sends(operations: DataFrame, state_changes: StateChanges) -> DataFrame:
    """One row a record that a client tried to write, with the epoch in which it was acknowledged."""
    attempts = of_kind(operations, OpKind.SEND).select(
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
    rows = attempts.join(_answers(state_changes), on=["run_id", "topic", "partition", "offset"], how="left")
    return conform(rows.withColumn("leader_epoch", F.expr(_ANSWERED_IN)), SENDS)


def successes(state_changes: StateChanges) -> DataFrame:
    """One row an answer of a leader that a batch was written, with the columns of its line."""
    return state_changes.of("produce_resp").where((F.col("error") == "0") & (F.col("base_offset") >= 0))


def _answers(state_changes: StateChanges) -> DataFrame:
    """One row an offset that leaders acknowledged: when, and in which leader epochs."""
    length = F.col("last_offset") - F.col("base_offset")
    return (
        successes(state_changes)
        .where(length.between(0, _LARGEST_BATCH))
        .select(
            "run_id",
            "topic",
            "partition",
            F.explode(F.sequence("base_offset", "last_offset")).alias("offset"),
            F.struct("time_ns", "leader_epoch").alias("answer"),
        )
        .groupBy("run_id", "topic", "partition", "offset")
        .agg(F.collect_list("answer").alias("answers"))
    )


def polls(lines: DataFrame) -> DataFrame:
    """One row a record that a client read, with its place in the poll."""
    is_poll = (F.col("kind") == OpKind.POLL.value) & (F.col("type") == OpType.OK.value)
    return conform(
        lines.where(is_poll)
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

"""What did clients send and read? One row a record that was sent, one row a record that was read."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY, conform, null_if_unknown, partition_number
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.sources.typed import ARGUMENTS, OPERATIONS
from harness.analysis.tables.schemas import POLLS, SENDS
from harness.store.history import OpKind, OpType

_LARGEST_BATCH = 1_000_000
"""Records; a longer range of offsets in a log line is not a batch and is not unfolded."""
_BLOCK_BITS = 6
"""A block has as many offsets as a long has bits."""
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


def sends(operations: DataFrame, state_changes: StateChanges, *, many: bool = False) -> DataFrame:
    """One row a record that a client tried to write, with the epoch in which it was acknowledged.

    Args:
        operations: All of them.
        state_changes: Lines of brokers.
        many: Whether there are so many that it pays to look first where an offset was acknowledged more than once.
    """
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
    if not many:
        place = [*PARTITION_KEY, "offset"]
        rows = attempts.join(_all(_answered(state_changes, *PARTITION_KEY), *place), on=place, how="left")
        return conform(rows.withColumn("leader_epoch", F.expr(_ANSWERED_IN)), SENDS)
    numbered = attempts.withColumn("number", partition_number())
    rows = numbered.join(_answers_to_many(state_changes).hint("shuffle_hash"), on=["number", "offset"], how="left")
    in_time = F.col("answer.time_ns").between(F.col("invoke_ns"), F.col("complete_ns"))
    of_one = F.when(in_time, F.col("answer.leader_epoch"))
    return conform(rows.withColumn("leader_epoch", F.coalesce(of_one, F.expr(_ANSWERED_IN))), SENDS)


def successes(state_changes: StateChanges) -> DataFrame:
    """One row an answer of a leader that a batch was written, with the columns of its line."""
    return state_changes.of("produce_resp").where((F.col("error") == "0") & (F.col("base_offset") >= 0))


def _answered(state_changes: StateChanges, *partition: Column | str) -> DataFrame:
    """One row a leader's answer and offset in it: `partition`, when it was, and in which leader epoch."""
    length = F.col("last_offset") - F.col("base_offset")
    return (
        successes(state_changes)
        .where(length.between(0, _LARGEST_BATCH))
        .select(
            *partition,
            F.explode(F.sequence("base_offset", "last_offset")).alias("offset"),
            F.struct("time_ns", "leader_epoch").alias("answer"),
        )
    )


def _all(answered: DataFrame, *place: str) -> DataFrame:
    """One row a place that leaders acknowledged, with all answers."""
    return answered.groupBy(*place).agg(F.collect_list("answer").alias("answers"))


def _answers_to_many(state_changes: StateChanges) -> DataFrame:
    """One row an offset that leaders acknowledged, with its `answer`, or all `answers` in blocks where one has two.

    Partitions are numbers. An offset is a bit of a block's, so there are as many bits as answers where none has two.
    """
    answered = _answered(state_changes, partition_number().alias("number"))
    answered = answered.withColumn("block", F.shiftright("offset", _BLOCK_BITS))
    bit, block = F.expr(f"shiftleft(1L, cast(offset & {2**_BLOCK_BITS - 1} as int))"), ["number", "block"]
    several = F.broadcast(
        answered.groupBy(*block)
        .agg(F.count("*").alias("times"), F.bit_count(F.bit_or(bit)).alias("offsets"))
        .where(F.col("times") > F.col("offsets"))
        .select(*block)
    )
    one = answered.join(several, on=block, how="left_anti").drop("block")
    more = _all(answered.join(several, on=block, how="left_semi"), "number", "offset")
    return one.unionByName(more, allowMissingColumns=True)


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

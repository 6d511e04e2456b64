"""What did clients send and read? One row a record that was sent, one row a record that was read."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY, by_parts, conform, null_if_unknown, partition_number
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.sources.typed import ARGUMENTS, OPERATIONS
from harness.analysis.tables.schemas import POLLS, SENDS
from harness.store.history import ABORTED, COMMITTED, UNKNOWN, OpKind, OpType

_LARGEST_BATCH = 1_000_000
"""Records; a longer range of offsets in a log line is not a batch and is not unfolded."""
FEW = 2_000_000
"""Answers that every task may have, some 60 bytes each."""
_BLOCK_BITS = 6
_BLOCK = 2**_BLOCK_BITS
"""Offsets of a block: as many as a long has bits."""
MOST_UNPLACED = 10_000
"""Acknowledged sends without an offset that are looked for among what was read; more of them are left as they are."""
_OPERATION = ("run_id", "process", "index", "kind")
_OF_POLL = ("run_id", "process", "index", "time_ns", "mode", "isolation")
_ANSWER = "struct(base_offset, last_offset, time_ns, leader_epoch)"
_EPOCH = """array_max(transform(
    filter(answers, each -> offset between each.base_offset and each.last_offset
        and each.time_ns between invoke_ns and complete_ns),
    each -> each.leader_epoch))"""
"""In which a send was acknowledged: by an answer to its offset while it was under way."""
_ONLY_ANSWER = f"""get(answers, cast(
    bit_count(begins & ~shiftleft(-2L, cast(offset & {_BLOCK - 1} as int))) as int) - 1)"""
"""Where answers stand apart, the only one that can have a send's offset: the last that begins there or before."""
_EPOCH_OF_ONE = """if(
    offset <= answer.last_offset and answer.time_ns between invoke_ns and complete_ns, answer.leader_epoch, null)"""


def completed(lines: DataFrame) -> DataFrame:
    """One row an operation: its arguments, when it began and ended, how, and its number of lines.

    Without an end it is an info. Of two ends ok outranks info and info outranks fail, as their names sort backwards.
    """
    return by_parts(_completed, lines, on=_OPERATION)


def _completed(lines: DataFrame) -> DataFrame:
    is_end = F.col("type") != OpType.INVOKE.value
    is_ok = F.col("type") == OpType.OK.value
    return (
        lines.groupBy(*_OPERATION)
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


def sends(
    operations: DataFrame,
    state_changes: StateChanges,
    read: DataFrame,
    *,
    many: bool = False,
    few: int = FEW,
    commits: bool = True,
) -> DataFrame:
    """One row a record that a client tried to write, with the epoch in which it was acknowledged.

    Args:
        operations: All of them.
        state_changes: Lines of brokers.
        read: One row a record that a client read, as `polls` returns it.
        many: Whether there are so many that answers are looked up by blocks of offsets.
        few: With no more answers, every task has all of them, so that no send has to move.
        commits: Whether a client may have committed a transaction.
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
        _null_if_empty("made_from"),
        _null_if_empty("transactional_id"),
        null_if_unknown("transaction"),
        "lines",
    )
    attempts = _placed_where_read(attempts, read)
    attempts = _with_transaction_outcomes(attempts, operations, commits, many)
    answered = _answered(state_changes)
    if not many:
        place = [*PARTITION_KEY, "offset"]
        offsets = answered.withColumn("offset", F.explode(F.sequence("base_offset", "last_offset")))
        answers = offsets.groupBy(*place).agg(F.collect_list(F.expr(_ANSWER)).alias("answers"))
        rows = attempts.join(answers, on=place, how="left")
        return conform(rows.withColumn("leader_epoch", F.expr(_EPOCH)), SENDS)
    blocks = _in_blocks(answered).hint("broadcast" if answered.count() <= few else "shuffle_hash")
    placed = attempts.withColumns({"number": partition_number(), "block": F.shiftright("offset", _BLOCK_BITS)})
    rows = blocks.join(placed, on=["number", "block"], how="right").withColumn("answer", F.expr(_ONLY_ANSWER))
    epoch = F.when(F.col("apart"), F.expr(_EPOCH_OF_ONE)).otherwise(F.expr(_EPOCH))
    return conform(rows.withColumn("leader_epoch", epoch), SENDS)


def _placed_where_read(attempts: DataFrame, read: DataFrame) -> DataFrame:
    """Return sends, with offsets for those that were acknowledged without one and were read at one offset only.

    librdkafka takes a later answer to an idempotent producer as one to all batches before it, and then names no offset
    (`rd_kafka_handle_implicit_ack`).
    """
    key = ["run_id", "topic", "partition", "value"]
    is_acknowledged = (F.col("outcome") == OpType.OK.value) & (F.col("acks") != 0)
    is_unplaced = is_acknowledged & F.col("offset").isNull() & (F.col("value") != "")
    unplaced = attempts.where(is_unplaced).select(*key)
    if not 0 < unplaced.count() <= MOST_UNPLACED:
        return attempts
    found = read.join(F.broadcast(unplaced.distinct()), on=key, how="left_semi").groupBy(*key)
    at = found.agg(F.min("offset").alias("read_at"), F.max("offset").alias("last_at")).where("read_at = last_at")
    joined = attempts.join(F.broadcast(at.drop("last_at")), on=key, how="left")
    return joined.withColumn("offset", F.when(is_unplaced, F.col("read_at")).otherwise(F.col("offset"))).drop("read_at")


def transaction_outcomes(operations: DataFrame) -> DataFrame:
    """One row a transaction that its client asked to commit: whether that succeeded, failed for certain, or is unknown.

    Any other transaction can only be aborted.
    """
    commits = of_kind(operations, OpKind.COMMIT_TRANSACTION).where(F.col("transaction") >= 0)
    best = F.max("outcome")  # ok outranks info, and info outranks fail
    by_outcome = {OpType.OK: COMMITTED, OpType.INFO: UNKNOWN, OpType.FAIL: ABORTED}
    said = F.create_map(*(F.lit(each) for pair in by_outcome.items() for each in (pair[0].value, pair[1])))
    outcomes = commits.groupBy("run_id", "process", "transaction").agg(best.alias("outcome"))
    return outcomes.select("run_id", "process", "transaction", said[F.col("outcome")].alias("transaction_outcome"))


def _with_transaction_outcomes(sends: DataFrame, operations: DataFrame, commits: bool, many: bool) -> DataFrame:
    aborted = F.when(F.col("transaction").isNotNull(), ABORTED)
    if not commits:
        return sends.withColumn("transaction_outcome", aborted)
    outcomes = transaction_outcomes(operations)
    outcomes = outcomes if many else F.broadcast(outcomes)
    # Sail keeps the left side of a join in memory
    said = outcomes.join(sends, on=["run_id", "process", "transaction"], how="right")
    return said.withColumn("transaction_outcome", F.coalesce("transaction_outcome", aborted))


def _null_if_empty(name: str) -> Column:
    return F.nullif(F.col(name), F.lit("")).alias(name)


def successes(state_changes: StateChanges) -> DataFrame:
    """One row an answer of a leader that a batch was written, with the columns of its line."""
    return state_changes.of("produce_resp").where((F.col("error") == "0") & (F.col("base_offset") >= 0))


def _answered(state_changes: StateChanges) -> DataFrame:
    """Return the lines of leaders' answers that a batch was written, of batches that can be unfolded."""
    length = F.col("last_offset") - F.col("base_offset")
    return successes(state_changes).where(length.between(0, _LARGEST_BATCH))


def _in_blocks(answered: DataFrame) -> DataFrame:
    """One row a block of a partition of which leaders acknowledged offsets, with all such `answers` in order.

    Partitions are numbers. A block's offsets are bits of a long: where an answer `begins`, and which ones any has. As
    many of these as offsets in all answers mean that no two share one: they stand `apart`.
    """
    blocks = F.sequence(F.shiftright("base_offset", _BLOCK_BITS), F.shiftright("last_offset", _BLOCK_BITS))
    ends = {
        "first": F.greatest(F.col("base_offset") - F.col("block") * _BLOCK, F.lit(0)).cast("int"),
        "last": F.least(F.col("last_offset") - F.col("block") * _BLOCK, F.lit(_BLOCK - 1)).cast("int"),
    }
    offsets = F.bit_count(F.bit_or(F.expr("shiftleft(-1L, first) & ~shiftleft(-2L, last)")))
    return (
        answered.select("*", partition_number().alias("number"), F.explode(blocks).alias("block"))
        .withColumns(ends)
        .groupBy("number", "block")
        .agg(
            F.array_sort(F.collect_list(F.expr(_ANSWER))).alias("answers"),
            F.bit_or(F.expr("shiftleft(1L, first)")).alias("begins"),
            (F.sum(F.expr("last - first + 1")) == offsets).alias("apart"),
        )
    )


def polls(lines: DataFrame) -> DataFrame:
    """One row a record that a client read, with its place in the poll."""
    is_poll = (F.col("kind") == OpKind.POLL.value) & (F.col("type") == OpType.OK.value)
    return conform(
        lines.where(is_poll)
        .select(*_OF_POLL, F.posexplode("records").alias("position", "record"))
        .select(
            *_OF_POLL[:-1],
            _null_if_empty("isolation"),
            "position",
            "record.topic",
            "record.partition",
            "record.offset",
            "record.value",
            null_if_unknown("record.leader_epoch").alias("leader_epoch"),
        ),
        POLLS,
    )

"""Which readers jumped, which records overtook others, and where did partitions end for consumers?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.client_tables import END_OFFSETS, POLL_STEPS, SEND_REVERSALS
from harness.analysis.facts.clients import of_kind
from harness.analysis.frames import conform, in_order
from harness.store.history import OpKind, OpType


def poll_steps(polls: DataFrame) -> DataFrame:
    """One row a step of a reader that is not to the next offset; each mode of reading is a reader of its own."""
    in_turn = in_order("run_id", "process", "mode", "topic", "partition", by=("index", "position"))
    before = F.lag(F.struct("index", "offset", "leader_epoch")).over(in_turn)
    return conform(
        polls.withColumn("before", before)
        .where(F.col("offset") != F.col("before.offset") + 1)
        .withColumn("previous_index", F.col("before.index"))
        .withColumn("previous_offset", F.col("before.offset"))
        .withColumn("previous_leader_epoch", F.col("before.leader_epoch")),
        POLL_STEPS,
    )


def send_reversals(sends: DataFrame) -> DataFrame:
    """One row an acknowledged record that lies before an earlier one of its process, beside the furthest of those."""
    earlier = in_order("run_id", "process", "topic", "partition", by=("index",)).rowsBetween(
        Window.unboundedPreceding, -1
    )
    furthest = F.max(F.struct("offset", "index", "complete_ns", "leader_epoch")).over(earlier)
    return conform(
        sends.where((F.col("outcome") == OpType.OK.value) & F.col("offset").isNotNull())
        .withColumn("furthest", furthest)
        .where(F.col("offset") < F.col("furthest.offset"))
        .withColumn("earlier_index", F.col("furthest.index"))
        .withColumn("earlier_offset", F.col("furthest.offset"))
        .withColumn("earlier_complete_ns", F.col("furthest.complete_ns"))
        .withColumn("earlier_leader_epoch", F.col("furthest.leader_epoch")),
        SEND_REVERSALS,
    )


def end_offsets(operations: DataFrame) -> DataFrame:
    """One row a successful request for a partition's end."""
    answered = of_kind(operations, OpKind.END_OFFSET).where(F.col("outcome") == OpType.OK.value)
    return conform(answered.where(F.col("ok_offset") >= 0).withColumn("offset", F.col("ok_offset")), END_OFFSETS)

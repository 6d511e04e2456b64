"""For how long could nobody write to a partition, although somebody tried?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.frames import conform, in_order
from harness.analysis.schemas import AVAILABILITY
from harness.store.history import OpType

THRESHOLD_MS = 250
"""Shorter waits for an acknowledgement are everyday life, not a gap."""

_KEY = ("run_id", "topic", "partition", "acks")


def availability(sends: DataFrame, threshold_ms: int = THRESHOLD_MS, *, many: bool = False) -> DataFrame:
    """One row a span of a partition and acks level without an acknowledged write although a send was under way.

    Sends are taken in the order in which they ended; all that ended after one success, up to and including the next,
    wait together. The span begins at the earlier success, or at the first of these sends where that is later.

    Args:
        sends: All of them.
        threshold_ms: A shorter span is none.
        many: Whether one task cannot have all sends of a run and acks level.
    """
    is_ok = F.col("outcome") == OpType.OK.value
    ended = _with_ends(sends, many=many).where(F.col("partition").isNotNull())
    in_turn = in_order(*_KEY, by=("end_ns", "process", "index"))
    before = in_turn.rowsBetween(Window.unboundedPreceding, -1)
    waits = (
        ended.withColumn("successes", F.coalesce(F.count(F.when(is_ok, 1)).over(before), F.lit(0)))
        .withColumn("last_success_ns", F.max(F.when(is_ok, F.col("end_ns"))).over(before))
        .groupBy(*_KEY, "successes")
        .agg(
            F.min("invoke_ns").alias("first_try_ns"),
            F.max("last_success_ns").alias("last_success_ns"),
            F.max("end_ns").alias("to_ns"),
            (~F.bool_or(is_ok)).alias("open"),
            F.count("*").alias("attempts"),
        )
        .withColumn("from_ns", F.greatest("last_success_ns", "first_try_ns"))
        .withColumn("gap_ms", (F.col("to_ns") - F.col("from_ns")) / 1e6)
    )
    return conform(waits.where(F.col("gap_ms") > threshold_ms), AVAILABILITY)


def _with_ends(sends: DataFrame, *, many: bool) -> DataFrame:
    """Return the sends with `end_ns`: of one that never ended, the last sign of any of its run and acks level."""
    sign, level = F.coalesce("complete_ns", "invoke_ns"), F.struct("run_id", "acks").alias("level")
    if not many:
        last_sign = F.max(sign).over(Window.partitionBy("run_id", "acks"))
        return sends.withColumn("end_ns", F.coalesce("complete_ns", last_sign))
    last = sends.groupBy(level).agg(F.max(sign).alias("last_sign_ns"))
    rows = sends.withColumn("level", level).join(F.broadcast(last), on="level", how="inner")
    return rows.withColumn("end_ns", F.coalesce("complete_ns", "last_sign_ns"))

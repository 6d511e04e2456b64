"""Times without an acknowledged write to a partition, although some were tried."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.frames import as_number, conform, in_order, stored
from harness.analysis.tables.schemas import AVAILABILITY
from harness.store.history import OpType

THRESHOLD_MS = 250
"""Shorter waits for an acknowledgement are everyday life, not a gap."""

FEW = 1_000
"""Pauses, at most, that sends are compared with."""

_KEY = ("run_id", "topic", "partition", "acks")


def availability(sends: DataFrame, *, many: bool = False, few: int = FEW) -> DataFrame:
    """One row a span of a partition and acks level without an acknowledged write although a send was under way.

    Sends are taken in the order in which they ended; all that ended after one success, up to and including the next,
    wait together. The span begins at the earlier success, or at the first of these sends where that is later.

    Args:
        sends: All of them.
        many: Whether one task cannot have all sends of a run and acks level. Then those alone are put in order that
            ended in a pause: between two successes further apart, before the first success, or after the last.
        few: With more pauses than that, all sends are put in order.
    """
    ended = _with_ends(sends, many=many).where(F.col("partition").isNotNull())
    if many:
        pauses = stored(_pauses(ended))
        if pauses.count() <= few:
            return conform(_waits(_within(ended, pauses), by_pause=True), AVAILABILITY)
    return conform(_waits(ended), AVAILABILITY)


def _waits(ended: DataFrame, *, by_pause: bool = False) -> DataFrame:
    """Return the spans of sends with `end_ns`; `by_pause` takes each pause by itself, which begins at `pause_ns`."""
    key, is_ok = (*_KEY, "pause_ns") if by_pause else _KEY, _is_ok()
    before = in_order(*key, by=("end_ns", "process", "index")).rowsBetween(Window.unboundedPreceding, -1)
    waits = (
        ended.withColumn("successes", F.coalesce(F.count(F.when(is_ok, 1)).over(before), F.lit(0)))
        .withColumn("last_success_ns", F.max(F.when(is_ok, F.col("end_ns"))).over(before))
        .groupBy(*key, "successes")
        .agg(
            F.min("invoke_ns").alias("first_try_ns"),
            F.max("last_success_ns").alias("last_success_ns"),
            F.max("end_ns").alias("to_ns"),
            (~F.bool_or(is_ok)).alias("open"),
            F.count("*").alias("attempts"),
        )
        .withColumn("from_ns", F.greatest("last_success_ns", "first_try_ns"))
        .withColumn("gap_ms", (F.col("to_ns") - F.col("from_ns")) / 1e6)
        .where(F.col("gap_ms") > THRESHOLD_MS)
    )
    if not by_pause:
        return waits
    # what ends with the success that a pause begins with has waited before it
    return waits.where(F.col("pause_ns").isNull() | (F.col("successes") > 0))


def _pauses(ended: DataFrame) -> DataFrame:
    """One row a pause of a partition and acks level, its `level`: from `pause_ns` to `until_ns`.

    The first begins with null, and the last ends with null. Successes that end within half of the threshold are taken
    together, as no pause is between them.
    """
    ends_ns = F.when(_is_ok(), F.col("end_ns"))
    time = F.expr(f"end_ns div {THRESHOLD_MS * 500_000}").alias("time")
    together = ended.groupBy(as_number(*_KEY).alias("level"), time).agg(
        F.min(ends_ns).alias("first_ns"), F.max(ends_ns).alias("pause_ns")
    )
    begin = together.select("level").distinct()
    marks = together.where(F.col("pause_ns").isNotNull()).unionByName(begin, allowMissingColumns=True)
    until_ns = F.lead("first_ns").over(in_order("level", by=("time",)))
    is_long = F.col("until_ns") - F.col("pause_ns") > THRESHOLD_MS * 1_000_000
    pauses = marks.withColumn("until_ns", until_ns).where(F.coalesce(is_long, F.lit(True)))
    return pauses.select("level", "pause_ns", "until_ns")


def _within(ended: DataFrame, pauses: DataFrame) -> DataFrame:
    """Return the sends that ended in a pause, its ends included, with `pause_ns`: twice where it is between two."""
    since = F.col("pause_ns").isNull() | (F.col("end_ns") >= F.col("pause_ns"))
    until = F.col("until_ns").isNull() | (F.col("end_ns") <= F.col("until_ns"))
    rows = ended.withColumn("level", as_number(*_KEY))
    return rows.join(F.broadcast(pauses), on="level", how="inner").where(since & until)


def _is_ok() -> Column:
    return F.col("outcome") == OpType.OK.value


def _with_ends(sends: DataFrame, *, many: bool) -> DataFrame:
    """Return the sends with `end_ns`: of one that never ended, the last sign of any of its run and acks level."""
    sign, level = F.coalesce("complete_ns", "invoke_ns"), as_number("run_id", "acks").alias("level")
    if not many:
        last_sign = F.max(sign).over(Window.partitionBy("run_id", "acks"))
        return sends.withColumn("end_ns", F.coalesce("complete_ns", last_sign))
    # stored, so that Sail knows that these rows are few, and keeps them in memory and not the sends
    last = stored(sends.groupBy(level).agg(F.max(sign).alias("last_sign_ns")))
    rows = sends.withColumn("level", level).join(F.broadcast(last), on="level", how="inner")
    return rows.withColumn("end_ns", F.coalesce("complete_ns", "last_sign_ns"))

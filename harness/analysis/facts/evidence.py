"""What is wrong with the evidence itself: what is unreadable, missing, damaged, or there twice?"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import conform, union
from harness.analysis.sources.parsed_lines import CORRUPT
from harness.analysis.sources.reading import Sources
from harness.analysis.sources.typed import UNIQUE_KEYS
from harness.analysis.tables.schemas import (
    DAMAGED_REPLICA,
    DUPLICATED,
    EVIDENCE,
    MISSING,
    REPEATED_VALUES,
    TORN,
    UNREADABLE,
    VALUE_IDS,
)
from harness.store.history import OpKind, OpType

_LINES_OF_A_SEND = 2
"""Its beginning and its end."""


def evidence(sources: Sources, sends: DataFrame) -> DataFrame:
    """One row a file and what is wrong with it, or a run whose value ids are not unique; with tables nothing is."""
    lines = sources.lines
    parts = [_unreadable(frame, sources.torn) for frame in lines.values()]
    parts += [_duplicates(lines[kind], key) for kind, key in UNIQUE_KEYS.items() if kind in lines]
    if "state_changes" in lines:
        parts.append(_misnumbered(lines["state_changes"]))
    if "operations" in lines:
        parts += [_missing_invokes(lines["operations"]), _duplicate_ends(lines["operations"])]
        parts += [_duplicate_sends(sends), _repeated_values(sends)]
    if "replicas" in lines:
        parts += [_duplicate_dumps(lines["replicas"]), _damaged(lines["replicas"])]
    return conform(union(parts), EVIDENCE)


def _unreadable(lines: DataFrame, torn: Sequence[str]) -> DataFrame:
    """Lines that are torn or corrupt."""
    only_torn = (F.col("count") == 1) & F.concat_ws("/", "run_id", "subject").isin(list(torn))
    return (
        lines.where(F.col(CORRUPT).isNotNull())
        .groupBy("run_id", F.col("file").alias("subject"))
        .agg(F.count("*").alias("count"))
        .withColumn("problem", F.when(only_torn, TORN).otherwise(UNREADABLE))
    )


def _misnumbered(state_changes: DataFrame) -> DataFrame:
    """Gaps and repetitions in the numbers of a broker's lines: in one life of its process there is each number once.

    The lines of one life may be in several files; the remark names the first of them.
    """
    numbers = F.count_distinct("seq")
    problems = F.array(
        F.struct(F.lit(MISSING).alias("problem"), (F.max("seq") + 1 - numbers).alias("count")),
        F.struct(F.lit(DUPLICATED).alias("problem"), (F.count("seq") - numbers).alias("count")),
    )
    return (
        state_changes.where(F.col("seq").isNotNull())
        .groupBy("run_id", "broker", "inc")
        .agg(problems.alias("problems"), F.min("file").alias("subject"))
        .select("run_id", "subject", F.inline("problems"))
        .where(F.col("count") > 0)
    )


def _missing_invokes(operations: DataFrame) -> DataFrame:
    """Operations of a process whose beginning is missing: their numbers are without gaps; one row a process."""
    invokes = F.count(F.when(F.col("type") == OpType.INVOKE.value, 1))
    return (
        operations.where(F.col("index").isNotNull())
        .groupBy("run_id", "process")
        .agg((F.max("index") + 1 - invokes).alias("count"), F.min("file").alias("subject"))
        .where(F.col("count") > 0)
        .select("run_id", "subject", F.lit(MISSING).alias("problem"), "count")
    )


def _duplicates(lines: DataFrame, key: Sequence[str]) -> DataFrame:
    """Lines beyond the first with the same key."""
    return (
        lines.where(F.col(key[0]).isNotNull())
        .groupBy("run_id", *key)
        .agg((F.count("*") - 1).alias("more"), F.min("file").alias("subject"))
        .where(F.col("more") > 0)
        .groupBy("run_id", "subject")
        .agg(F.sum("more").alias("count"))
        .withColumn("problem", F.lit(DUPLICATED))
    )


def _duplicate_ends(operations: DataFrame) -> DataFrame:
    """Operations other than sends that begin or end twice: a record that was read would count twice."""
    is_end = (F.col("type") != OpType.INVOKE.value).alias("is_end")
    others = operations.where(F.col("kind") != OpKind.SEND.value)
    return _duplicates(others.select("run_id", "file", "process", "index", is_end), ("process", "index", "is_end"))


def _duplicate_sends(sends: DataFrame) -> DataFrame:
    """Sends that begin or end twice, one row a process."""
    return (
        sends.where(F.col("lines") > _LINES_OF_A_SEND)
        .groupBy("run_id", F.concat(F.lit("operations of "), "process").alias("subject"))
        .agg(F.sum(F.col("lines") - _LINES_OF_A_SEND).alias("count"))
        .withColumn("problem", F.lit(DUPLICATED))
    )


def _duplicate_dumps(dumps: DataFrame) -> DataFrame:
    """Replicas that were dumped more than once: their records would count as often."""
    return _duplicates(dumps.where(F.col("type") == "replica"), ("broker", "topic", "partition"))


def _damaged(dumps: DataFrame) -> DataFrame:
    """Replicas whose log could not be read to its end."""
    return dumps.where((F.col("type") == "replica") & (F.col("damage") != "")).select(
        "run_id",
        F.col("file").alias("subject"),
        F.concat(F.lit(DAMAGED_REPLICA), "damage").alias("problem"),
        F.lit(1).cast("bigint").alias("count"),
    )


def _repeated_values(sends: DataFrame) -> DataFrame:
    """Value ids that were sent more than once: with them the fate of a record is unknown."""
    return (
        sends.groupBy("run_id", "value")
        .agg(F.count("*").alias("times"))
        .where(F.col("times") > 1)
        .groupBy("run_id")
        .agg(F.count("*").alias("count"), F.min("value").alias("value"))
        .select(
            "run_id",
            F.lit(VALUE_IDS).alias("subject"),
            F.concat(F.lit(REPEATED_VALUES), "value").alias("problem"),
            "count",
        )
    )

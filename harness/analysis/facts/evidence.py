"""Remarks on the evidence itself: what is unreadable, missing or damaged, and what checks assume but does not hold."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import conform
from harness.analysis.schemas import EVIDENCE, TORN, VALUE_IDS
from harness.analysis.sources import CORRUPT, Sources


def evidence(sources: Sources, sends: DataFrame) -> DataFrame:
    """One row a file and what is wrong with it, or a run whose value ids are not unique."""
    parts = [_unreadable(frame, sources.torn) for frame in sources.frames.values()]
    parts += [_missing(sources.state_changes), _damaged(sources.replicas), _repeated(sends)]
    return conform(reduce(DataFrame.unionByName, parts), EVIDENCE)


def _unreadable(lines: DataFrame, torn: Sequence[str]) -> DataFrame:
    """Lines that are torn or corrupt."""
    only_torn = (F.col("count") == 1) & F.concat_ws("/", "run_id", "subject").isin(list(torn))
    return (
        lines.where(F.col(CORRUPT).isNotNull())
        .groupBy("run_id", F.col("file").alias("subject"))
        .agg(F.count("*").alias("count"))
        .withColumn("problem", F.when(only_torn, TORN).otherwise("unreadable lines"))
    )


def _missing(state_changes: DataFrame) -> DataFrame:
    """Gaps in the numbers of a broker's lines, which are without gaps within one life of its process."""
    return (
        state_changes.where(F.col("seq").isNotNull())
        .groupBy("run_id", F.col("file").alias("subject"), "inc")
        .agg((F.max("seq") + 1 - F.count_distinct("seq")).alias("count"))
        .where(F.col("count") > 0)
        .drop("inc")
        .withColumn("problem", F.lit("missing lines, by their numbers"))
    )


def _damaged(dumps: DataFrame) -> DataFrame:
    """Replicas whose log could not be read to its end."""
    return dumps.where((F.col("type") == "replica") & (F.col("damage") != "")).select(
        "run_id",
        F.col("file").alias("subject"),
        F.concat(F.lit("damaged replica: "), "damage").alias("problem"),
        F.lit(1).cast("bigint").alias("count"),
    )


def _repeated(sends: DataFrame) -> DataFrame:
    """Value ids that were sent more than once: with them nobody can tell what became of a record."""
    return (
        sends.groupBy("run_id", "value")
        .agg(F.count("*").alias("times"))
        .where(F.col("times") > 1)
        .groupBy("run_id")
        .agg(F.count("*").alias("count"), F.min("value").alias("value"))
        .select(
            "run_id",
            F.lit(VALUE_IDS).alias("subject"),
            F.concat(F.lit("sent more than once, first "), "value").alias("problem"),
            "count",
        )
    )

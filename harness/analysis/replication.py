"""How far the logs of replicas had come: what every check asks that compares promises with what members really had."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY


def lacking(waited: DataFrame, facts: dict[str, DataFrame]) -> DataFrame:
    """The members that never had, up to their leader's epoch, what its high watermark said that all of them have.

    A log's end is the furthest it ever was, so what a member had and lost again is not found here.

    Args:
        waited: Rows of a partition with `leader_epoch`, `isr` and the `high_watermark` that the members stood for.
        facts: All facts.

    Returns:
        One row a row of `waited` and member, with `member` and its log's furthest end as `reached`.
    """
    key = [*PARTITION_KEY, "leader_epoch", "zk_version", "isr", "high_watermark"]
    members = waited.select(*key, F.explode("isr").alias("broker"))
    ends = _ends(facts).withColumnRenamed("leader_epoch", "by_epoch")
    return (
        members.join(ends, on=[*PARTITION_KEY, "broker"], how="left")
        .groupBy(*key, F.col("broker").alias("member"))
        .agg(F.max(F.when(F.col("by_epoch") <= F.col("leader_epoch"), F.col("end"))).alias("reached"))
        .withColumn("reached", F.coalesce("reached", F.lit(0)))
        .where(F.col("reached") < F.col("high_watermark"))
    )


def _ends(facts: dict[str, DataFrame]) -> DataFrame:
    """One row a replica and leader epoch: how far its log reached: by what it wrote, began with or was cut to."""
    columns = [*PARTITION_KEY, "broker", "leader_epoch"]
    wrote = facts["appends"].select(*columns, (F.col("last_offset") + 1).alias("end"))
    had = facts["leadership_claims"].select(*columns, F.col("log_end_offset").alias("end"))
    kept = facts["truncations"].select(*columns, F.col("to_offset").alias("end"))
    return wrote.unionByName(had).unionByName(kept).groupBy(*columns).agg(F.max("end").alias("end"))

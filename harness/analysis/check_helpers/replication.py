"""How far did the logs of replicas reach, compared with what leaders called committed?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY, REPLICA_KEY, in_turn, made_once


@made_once
def furthest_replicas(replicas: DataFrame) -> DataFrame:
    """One row a partition: the broker whose log has come furthest, first by its last leader epoch, then by its end.

    That log has everything that is committed, unless an unclean election or a power loss took it.
    """
    last_epoch = F.array_max(F.transform("leader_epochs", lambda entry: entry[0]))
    furthest = F.max_by("broker", in_turn(last_epoch, "log_end_offset", "broker"))
    return replicas.groupBy(*PARTITION_KEY).agg(furthest.alias("broker")).select(*REPLICA_KEY)


def members_below_high_watermark(watermarks: DataFrame, facts: dict[str, DataFrame]) -> DataFrame:
    """One row a member of an ISR whose log never reached the high watermark, up to the leader epoch that exposed it.

    A log's end is the furthest it ever was, so what a member had and lost again is not seen here.

    Args:
        watermarks: Rows of a partition: `leader_epoch`, `zk_version`, `isr`, and the `high_watermark` under that ISR.
        facts: All facts.

    Returns:
        Run, topic, partition, those four columns, the broker as `member`, and its log's furthest end as `reached`.
    """
    key = [*PARTITION_KEY, "leader_epoch", "zk_version", "isr", "high_watermark"]
    members = watermarks.select(*key, F.explode("isr").alias("broker"))
    ends = _ends(facts["appends"], facts["leadership_claims"], facts["truncations"])
    return (
        members.join(ends, on=[*PARTITION_KEY, "broker"], how="left")
        .groupBy(*key, F.col("broker").alias("member"))
        .agg(F.max(F.when(F.col("by_epoch") <= F.col("leader_epoch"), F.col("end"))).alias("reached"))
        .withColumn("reached", F.coalesce("reached", F.lit(0)))
        .where(F.col("reached") < F.col("high_watermark"))
    )


@made_once
def _ends(appends: DataFrame, leadership_claims: DataFrame, truncations: DataFrame) -> DataFrame:
    """One row a replica and leader epoch, `by_epoch`: how far its log reached."""
    columns = [*PARTITION_KEY, "broker", "leader_epoch as by_epoch"]
    reached = (
        appends.selectExpr(*columns, "last_offset + 1 as end")
        .unionByName(leadership_claims.selectExpr(*columns, "log_end_offset as end"))
        .unionByName(truncations.selectExpr(*columns, "to_offset as end"))
    )
    return reached.groupBy(*PARTITION_KEY, "broker", "by_epoch").agg(F.max("end").alias("end"))

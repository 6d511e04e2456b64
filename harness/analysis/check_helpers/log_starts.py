"""Which records may retention or a client have deleted from the start of a log?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY
from harness.contracts.checks import ANY_TOPIC, Settings


def begun(replicas: DataFrame) -> DataFrame:
    """Return where each partition's log begins, as `begins_at`: where it does on the replica that has deleted most.

    A leader deletes first. Its followers keep a segment that begins before, and write down the new start later.
    """
    return replicas.groupBy(*PARTITION_KEY).agg(F.max("log_start_offset").alias("begins_at"))


def deletable(settings: Settings) -> Column:
    """Return whether records of a row's `topic` may be deleted."""
    topics = F.split(F.lit(settings.deleting_topics), ",")
    return F.array_contains(topics, F.col("topic")) | F.array_contains(topics, ANY_TOPIC)


def undecided(rows: DataFrame, replicas: DataFrame, broker_logs: DataFrame, settings: Settings) -> DataFrame:
    """Return rows of `run_id`, `topic` and `partition` whose absent records may have been deleted or compacted.

    Records of their topics may be deleted and no replica states where the log begins, or cleaned and no broker has a
    log.
    """
    dumped, told = replicas.select(*PARTITION_KEY), broker_logs.select("run_id")
    compacted = F.array_contains(F.split(F.lit(settings.compacted_topics), ","), F.col("topic"))
    of_deleting = rows.where(deletable(settings)).join(dumped, on=list(PARTITION_KEY), how="left_anti")
    of_compacted = rows.where(compacted).join(told, on="run_id", how="left_anti")
    return of_deleting.unionByName(of_compacted).select(*PARTITION_KEY).distinct()


def decided(rows: DataFrame, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
    """Leave out the rows whose absence proves nothing (`undecided`); subjects count them."""
    places = rows.select(*PARTITION_KEY).distinct()
    left_out = undecided(places, facts["replicas"], facts["broker_logs"], settings)
    return rows.join(left_out, on=list(PARTITION_KEY), how="left_anti")


def not_deleted(rows: DataFrame, replicas: DataFrame, settings: Settings) -> DataFrame:
    """Leave out the rows whose `offset` lies before the start of a log from which records may be deleted."""
    kept = rows.join(begun(replicas), on=list(PARTITION_KEY), how="left")
    before = F.coalesce(F.col("offset") < F.col("begins_at"), F.lit(False))
    return kept.where(~(deletable(settings) & before)).drop("begins_at")

"""Which records has a log left behind, as retention or a client deleted them?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY
from harness.contracts.checks import Settings


def begun(replicas: DataFrame) -> DataFrame:
    """Return where each partition's log begins, as `begins_at`: where it does on the replica that has deleted most.

    A leader deletes first. Its followers keep a segment that begins before, and write down the new start later.
    """
    return replicas.groupBy(*PARTITION_KEY).agg(F.max("log_start_offset").alias("begins_at"))


def deletable(settings: Settings) -> Column:
    """Return whether records of a row's `topic` may be deleted."""
    return F.array_contains(F.split(F.lit(settings.deleting_topics), ","), F.col("topic"))


def not_deleted(rows: DataFrame, replicas: DataFrame, settings: Settings) -> DataFrame:
    """Leave out the rows whose `offset` lies before the start of a log from which records may be deleted."""
    kept = rows.join(begun(replicas), on=list(PARTITION_KEY), how="left")
    before = F.coalesce(F.col("offset") < F.col("begins_at"), F.lit(False))
    return kept.where(~(deletable(settings) & before)).drop("begins_at")

"""Which absent records does compaction explain? A cleaner keeps the last record of each key and may remove others."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY
from harness.contracts.checks import Settings

SUPERSEDED = "superseded"
"""The fact with offsets that cleaners may have removed, and the column that `with_superseded` adds."""


def by_committed(superseded: DataFrame, leader_epochs: DataFrame, settings: Settings) -> DataFrame:
    """Leave out the offsets that only records replace which were lost with their leader: no cleaner may remove those.

    They stay where committed records may be lost: after a power loss or an unclean election, and without leader epochs.
    """
    if settings.power_loss:
        return superseded
    lossless = (
        leader_epochs.groupBy(*PARTITION_KEY)
        .agg(F.max(F.coalesce("unclean", F.lit(True))).alias("unclean"))
        .where(~F.col("unclean"))
        .select(*PARTITION_KEY, F.lit(True).alias("lossless"))
    )
    rows = superseded.join(lossless, on=list(PARTITION_KEY), how="left")
    return rows.where(F.col("committed") | F.col("lossless").isNull()).drop("lossless")


def not_superseded(rows: DataFrame, superseded: DataFrame) -> DataFrame:
    """Return the rows whose `offset` cannot have been removed by a cleaner."""
    return rows.join(superseded, on=[*PARTITION_KEY, "offset"], how="left_anti")


def with_superseded(rows: DataFrame, superseded: DataFrame) -> DataFrame:
    """Add `superseded`: whether a cleaner may have removed the record at the row's `offset`."""
    known = superseded.select(*PARTITION_KEY, "offset", F.lit(True).alias("emptied"))
    return (
        rows.join(known, on=[*PARTITION_KEY, "offset"], how="left")
        .withColumn(SUPERSEDED, F.coalesce("emptied", F.lit(False)))
        .drop("emptied")
    )

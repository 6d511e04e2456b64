"""Which absent records does compaction explain? A cleaner keeps the last record of each key and may remove others."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY
from harness.contracts.checks import Settings

SUPERSEDED = "superseded"
"""The fact with offsets that cleaners may have removed, and the column that `with_superseded` adds."""


def by_committed(superseded: DataFrame, settings: Settings) -> DataFrame:
    """Leave out the offsets that only records replace which were lost with their leader: no cleaner may remove those.

    They stay where committed records may be lost: by a power loss, or where unclean elections are allowed.
    """
    if settings.power_loss or settings.unclean_leader_election:
        return superseded
    return superseded.where("committed")


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

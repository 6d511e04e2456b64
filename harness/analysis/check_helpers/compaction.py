"""Which absent records does compaction explain? A cleaner keeps the last of each key, and may take the others."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY

SUPERSEDED = "superseded"
"""The fact by which it is known, and the column that `with_superseded` adds."""


def not_superseded(rows: DataFrame, superseded: DataFrame) -> DataFrame:
    """Return the rows whose `offset` no cleaner may have emptied."""
    return rows.join(superseded, on=[*PARTITION_KEY, "offset"], how="left_anti")


def with_superseded(rows: DataFrame, superseded: DataFrame) -> DataFrame:
    """Add `superseded`: whether a cleaner may have emptied the row's `offset`."""
    known = superseded.select(*PARTITION_KEY, "offset", F.lit(True).alias("emptied"))
    return (
        rows.join(known, on=[*PARTITION_KEY, "offset"], how="left")
        .withColumn(SUPERSEDED, F.coalesce("emptied", F.lit(False)))
        .drop("emptied")
    )

"""Which signs of life did the cluster show after the last heal?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import conform
from harness.analysis.tables.schemas import LIVENESS


def liveness(lines: DataFrame) -> DataFrame:
    """One row a sign that was looked for; what does not belong to it is null."""
    values = {
        "broker": F.when(F.col("broker") >= 0, F.col("broker")),
        **{name: F.when(F.col(name) != "", F.col(name)) for name in ("topic", "process", "hindrance")},
        "partition": F.when(F.col("partition") >= 0, F.col("partition")),
    }
    return conform(lines.where(F.col("sign").isNotNull()).withColumns(values), LIVENESS)

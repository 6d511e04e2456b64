"""Of which partitions does a history lack the end, or ask for it too early to show what is missing there?"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from harness.analysis.engine.compat import to_read
from harness.analysis.engine.hadoop import AnyResultFolder
from harness.analysis.facts.build import fact_path
from harness.analysis.frames import PARTITION_KEY
from harness.analysis.subjects import is_acknowledged_send
from harness.analysis.tables.schemas import TABLES

SHOWN_PARTITIONS = 5
WITHOUT_ENDS = (
    "no line requests the end of a partition (kind `end_offset`): records that are missing at the end of a log look "
    "like records that were not read yet"
)


def describe_ends(spark: SparkSession, folder: AnyResultFolder) -> list[str]:
    """Return a sentence on the partitions without an end, and on those whose end was asked for too early."""
    sends, ends = (fact_of(spark, folder, name) for name in ("sends", "end_offsets"))
    key = list(PARTITION_KEY)
    asked = ends.groupBy(*key).agg(F.max("invoke_ns").alias("asked_ns"))
    rows = (
        sends.where(is_acknowledged_send() & F.col("partition").isNotNull())
        .groupBy(*key)
        .agg(F.max("complete_ns").alias("acknowledged_ns"))
        .join(asked, on=key, how="left")
        .where(F.col("asked_ns").isNull() | (F.col("asked_ns") < F.col("acknowledged_ns")))
        .select(F.concat_ws("-", "topic", "partition").alias("place"), F.col("asked_ns").isNull().alias("never"))
        .collect()
    )
    if ends.isEmpty():
        return [WITHOUT_ENDS] if rows else []
    never = sorted(row.place for row in rows if row.never)
    early = sorted(row.place for row in rows if not row.never)
    sentences = [f"no line requests the end of {_listed(never)} (kind `end_offset`)"] if never else []
    if early:
        sentences.append(f"the end of {_listed(early)} was requested before the last record was acknowledged there")
    return [
        f"{each}: records missing from the end of the log look like records that were not read yet"
        for each in sentences
    ]


def _listed(places: list[str]) -> str:
    more = len(places) - SHOWN_PARTITIONS
    return ", ".join(places[:SHOWN_PARTITIONS]) + (f" and {more:,} more" if more > 0 else "")


def fact_of(spark: SparkSession, folder: AnyResultFolder, name: str) -> DataFrame:
    """Return a fact of a judged history."""
    return spark.read.schema(TABLES[name].ddl).parquet(to_read(spark, fact_path(folder.facts, name)))

"""Small steps that facts and checks share; each takes and returns a frame or a column."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window, WindowSpec

from harness.analysis.table import Table

PLANNERS = 2
"""Plans made at once: each is made by one thread."""
PARTITION_KEY = ("run_id", "topic", "partition")


def conform(frame: DataFrame, table: Table) -> DataFrame:
    """Return exactly the table's columns, in its order and with its types; a value that does not fit becomes null.

    What has its type already stays the same column: renamed, Spark would forget that rows are together by it.
    """
    types = dict(frame.dtypes)
    return frame.selectExpr(
        *(
            f"`{column.name}`"
            if types.get(column.name) == column.type
            else f"try_cast(`{column.name}` as {column.type}) `{column.name}`"
            for column in table.columns
        )
    )


def united(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames in as many tasks as one of them would take.

    A union has a task for each partition of each part, and every one of these tasks is sent the plan of all parts: with
    dozens of checks, reading plans would cost more than judging.
    """
    spark = frames[0].sparkSession
    tasks = str(spark.conf.get("spark.sql.shuffle.partitions"))
    return _union(planned(frames) if is_local(spark) else frames).coalesce(int(tasks))


def planned(frames: Iterable[DataFrame]) -> list[DataFrame]:
    """Return the same rows as if read from somewhere; they are computed when they are first asked for, and kept.

    The optimizer goes through a whole plan until nothing changes in it: many small plans cost less than a large one,
    and whoever builds on these rows plans from here. Only for a local master: what a lost executor kept would be gone.
    """

    def kept(frame: DataFrame) -> DataFrame:
        return frame.localCheckpoint(eager=False, storageLevel=StorageLevel.MEMORY_AND_DISK_DESER)

    with ThreadPoolExecutor(max_workers=PLANNERS) as pool:
        return list(pool.map(kept, frames))


def is_local(spark: SparkSession) -> bool:
    """Return whether the session's tasks run in its own process."""
    return str(spark.sparkContext.master).startswith("local")


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the union by halves: each step is analysed whole, so one after the other would be quadratic."""
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return _union(frames[:middle]).unionByName(_union(frames[middle:]))


def known(name: str, unknown: int = -1) -> Column:
    """Return the column with its stand-in for "not known" as null."""
    return F.nullif(F.col(name), F.lit(unknown)).alias(name)


def in_order(*keys: str, by: tuple[str, ...]) -> WindowSpec:
    """Return a window over rows that share `keys`, in the order of `by`."""
    return Window.partitionBy(*keys).orderBy(*by)

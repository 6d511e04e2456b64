"""In what do the engines that judge differ? Apache Spark in a JVM of this process, and what Spark Connect reaches.

Judging code uses this module where engines differ, and frames and columns that all engines have for the rest.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4
from weakref import WeakKeyDictionary

from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType

from harness.analysis.engine.hadoop import Folder
from harness.analysis.engine.storage import literal_glob
from harness.errors import EvidenceError

LOCAL_TASKS, REMOTE_TASKS = 2, 16
"""At once, as far as is known behind Spark Connect: on one machine, and on a cluster."""

_masters: WeakKeyDictionary[SparkSession, str | None] = WeakKeyDictionary()


def is_connect(spark: SparkSession) -> bool:
    """Return whether the session speaks Spark Connect: it has no context, no RDDs and no JVM here."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def is_sail(spark: SparkSession) -> bool:
    """Return whether Sail answers, which has no master as any Spark has."""
    return _master(spark) is None


def is_local(spark: SparkSession) -> bool:
    """Return whether what tasks store stays as long as the session: on one machine, or in Sail's storage."""
    master = _master(spark)
    return master is None or master.startswith("local")


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks the engine has at once."""
    if is_connect(spark):
        return LOCAL_TASKS if is_local(spark) else REMOTE_TASKS
    return spark.sparkContext.defaultParallelism


def checkpoint(frame: DataFrame) -> DataFrame:
    """Return the same rows without the plan behind them, computed when first needed, or at once where that must be."""
    if is_sail(frame.sparkSession):
        return frame.localCheckpoint(eager=True)  # Sail has no other, and writes it to files
    return frame.localCheckpoint(eager=False, storageLevel=StorageLevel.MEMORY_AND_DISK_DESER)


def scanned(rows: DataFrame) -> DataFrame:
    """Return the rows of files so that any condition may be put to them.

    Sail 0.7.2 pushes conditions down to the files, and cannot if one reads an array: such rows are stored again.
    """
    arrays = any(isinstance(column.dataType, ArrayType) for column in rows.schema)
    return checkpoint(rows) if arrays and is_sail(rows.sparkSession) else rows


def to_read(spark: SparkSession, path: Folder) -> str:
    """Return what the engine takes for exactly this path; Sail knows no escapes in a glob, and reads nothing then."""
    return path.absolute().as_uri() if isinstance(path, Path) and is_sail(spark) else literal_glob(str(path))


def to_write(spark: SparkSession, path: Folder) -> str:
    """Return what the engine takes for exactly this path where it writes."""
    return path.absolute().as_uri() if isinstance(path, Path) and is_sail(spark) else str(path)


def in_tasks(frame: DataFrame, number: int) -> DataFrame:
    """Return the same rows in no more than so many tasks, where the engine gains by that."""
    if number > 1 and is_sail(frame.sparkSession):
        return frame  # Sail 0.7.2 reads the parts of a task one after the other, and waits for ever when they share one
    return frame.coalesce(number)


def by_run(frame: DataFrame, number: int) -> DataFrame:
    """Return the same rows in so many tasks, all of a run in one where the engine gains by that.

    Sail 0.7.2 takes what it has grouped and stored of such rows for parted by run, which they then are not: windows and
    groups by run, made on them, came out in pieces.
    """
    return frame.repartition(number) if is_sail(frame.sparkSession) else frame.repartition(number, "run_id")


@contextmanager
def forgetting(spark: SparkSession) -> Iterator[None]:
    """Release at the end what is stored meanwhile; behind Spark Connect it is released with its frame."""
    if is_connect(spark):
        yield
        return
    context = spark.sparkContext
    before = set(context._jsc.getPersistentRDDs())
    try:
        yield
    finally:
        for number, rows in dict(context._jsc.getPersistentRDDs()).items():
            if number not in before:
                rows.unpersist(False)  # Spark itself would wait until its JVM collects garbage


def require_same_files(spark: SparkSession, folder: Path) -> None:
    """Return when the engine writes to the folder that this process sees: findings elsewhere would look like none.

    Raises:
        EvidenceError: it writes somewhere else, or cannot write there.
    """
    if not is_connect(spark):
        return
    probe = folder / f".engine-was-here-{uuid4().hex}"  # one that an earlier probe left must not speak for this engine
    folder.mkdir(parents=True, exist_ok=True)
    try:
        spark.range(1).write.parquet(to_write(spark, probe))
        seen = any(probe.glob("*.parquet"))
    except AnalysisException:
        seen = False
    finally:
        shutil.rmtree(probe, ignore_errors=True)
    if not seen:
        raise EvidenceError(
            f"the engine does not see {folder} as this machine does: "
            "runs and TMPDIR must be in storage that both share, at the same path"
        )


def _master(spark: SparkSession) -> str | None:
    if not is_connect(spark):
        return str(spark.sparkContext.master)
    if spark not in _masters:
        _masters[spark] = spark.conf.get("spark.master", None)
    return _masters[spark]

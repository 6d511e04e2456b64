"""The Spark session that facts, checks and suites share: local, quick to start, quiet, and gone without a trace."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

MASTER_VARIABLE = "CHAOS_SPARK_MASTER"
LOCAL_PARTITIONS = 2
"""Shuffle partitions of a local session: a run is small, and each partition costs a task."""

_QUIET = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n%ex{none}
"""


def _options(master: str, scratch: Path) -> dict[str, str]:
    """Return the settings; everything that Spark writes by itself goes below `scratch`."""
    quiet = scratch / "log4j2.properties"
    quiet.write_text(_QUIET, encoding="utf-8")
    options = {
        "spark.master": master,
        "spark.app.name": "chaos-analysis",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.driver.extraJavaOptions": " ".join(
            (
                f"-Dlog4j2.configurationFile={quiet.as_uri()}",
                f"-Djava.io.tmpdir={scratch}",
                "-Djava.net.preferIPv4Stack=true",
                "-XX:+UseSerialGC",
                "-Xshare:auto",
                "-XX:TieredStopAtLevel=1",
            )
        ),
    }
    if master.startswith("local"):
        options |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "2g",
            "spark.default.parallelism": str(LOCAL_PARTITIONS),
            "spark.sql.shuffle.partitions": str(LOCAL_PARTITIONS),
            "spark.sql.files.minPartitionNum": "1",
            "spark.sql.files.openCostInBytes": "65536",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.shuffle.compress": "false",
        }
    return options


@contextmanager
def spark_session(master: str | None = None) -> Iterator[SparkSession]:
    """Yield the active session, or start one and stop it at the end, its scratch folder removed.

    Args:
        master: Spark master URL; by default what CHAOS_SPARK_MASTER says, else `local[2]`.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    scratch = Path(tempfile.mkdtemp(prefix="chaos-spark-"))
    try:
        builder = SparkSession.builder
        for name, value in _options(master or os.environ.get(MASTER_VARIABLE) or "local[2]", scratch).items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)

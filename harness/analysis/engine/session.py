"""The Spark session that facts, checks and suites share: local, quick to start, quiet, and gone without a trace."""

import atexit
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import psutil
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from harness.analysis.engine import connect, jvm
from harness.analysis.engine.compat import parallelism
from harness.errors import HarnessError
from harness.progress import Listener, Silent, step
from harness.system.engine import by_jvm, chosen_remote
from harness.system.scratch import new_scratch_folder, scratch_folder

MASTER_VARIABLE = "CHAOS_SPARK_MASTER"
CONF_VARIABLE = "CHAOS_SPARK_CONF"
"""Settings of Spark that win over those in here, as words KEY=VALUE, quoted as in a shell."""
LOCAL_MASTER = "local[2]"
LOCAL_PARTITIONS = 2
"""Shuffle partitions of a local session: a run is small, and each partition costs a task."""
CLUSTER_PARTITIONS = 16
"""The same on a cluster, where a batch of runs is judged at once; Spark's own 200 would be mostly empty."""
SMALL_BYTES = 100_000_000
"""Evidence that is read faster than the code to read it can be compiled."""
LARGE_BYTES = 500_000_000
"""Evidence that takes minutes to judge."""
TASK_BYTES = 32_000_000
"""Lines that one task reads and parses."""
SHUFFLED_BYTES = 256_000_000
"""Lines whose facts one task joins."""
GENERATED_CLASSES = 10_000
"""Classes of generated code that are kept: with Spark's 100 each batch of a sweep would compile all its own again."""
PATIENCE_S = 24 * 3600
"""A table that goes to all tasks may take so long to make; Spark's five minutes would end judging on a busy machine."""
BROADCAST_BYTES = 1_000_000
"""Only what is small for certain goes to every task whole: epochs, replicas, states, never records."""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

MEMORY_GB = 2
"""Of a local session's JVM."""
LASTING_SHARE, LASTING_MAX_GB = 4, 8
"""A session that lasts may take so much of the machine's memory: one part in so many, and no more than that."""

_FIRST_JARS = ("spark-catalyst", "spark-core", "spark-sql", "scala-", "spark-")
_ONE_COLLECTOR = "-XX:+UseSerialGC"
_ALL_COLLECT = "-XX:+UseParallelGC"
_ONE_COMPILER = "-XX:TieredStopAtLevel=1"
"""A run is judged before the JVM's second compiler has earned what it costs."""
_ROOM_FOR_CODE = "-XX:ReservedCodeCacheSize=240m"
"""What the JVM reserves with both compilers; with one it reserves a fifth, which planning fills."""
_UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
"""Classes are loaded without verification, which takes a tenth of the time in which a small run is judged."""

_QUIET = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m %ex{1}%n
"""


@contextmanager
def spark_session(
    master: str | None = None,
    *,
    lasting: bool = False,
    size_bytes: int = 0,
    progress: Listener | None = None,
    anywhere: bool = False,
) -> Iterator[SparkSession]:
    """Yield the active session, or start one and end it with its JVM and its scratch folder.

    Args:
        master: Spark master URL; by default what CHAOS_SPARK_MASTER says, else two local threads.
        lasting: Whether it has work for minutes, not seconds.
        size_bytes: Of what is to be judged; if it is large, the session lasts.
        progress: Receives the progress.
        anywhere: Whether its work takes no more than Spark Connect has, so that the engine does it that was chosen.

    Raises:
        SparkError: Spark does not start, or ends in the middle of its work.
        HarnessError: CHAOS_SPARK_CONF cannot be read.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    if anywhere and not by_jvm():
        with _connected(progress or Silent()) as spark:
            yield spark
        return
    settings = _own_settings()
    scratch = new_scratch_folder()
    end = partial(_end, scratch)
    atexit.register(end)  # a signal may end the process while a background thread still judges in here
    try:
        url = master or os.environ.get(MASTER_VARIABLE) or LOCAL_MASTER
        options = _options(url, scratch, lasting or size_bytes > LARGE_BYTES)
        java = [options[JAVA_OPTIONS], *([settings[JAVA_OPTIONS]] if JAVA_OPTIONS in settings else [])]
        with step(progress or Silent(), "starting Spark"):
            spark = jvm.started(options | settings | {JAVA_OPTIONS: " ".join(java)}, scratch)
        with _ended_in_good_order(spark):
            yield spark
    finally:
        end()
        atexit.unregister(end)


@contextmanager
def _connected(progress: Listener) -> Iterator[SparkSession]:
    """Yield a session with the server that was named, or else with Sail."""
    address = chosen_remote()
    with ExitStack() as stack:
        with step(progress, f"connecting to {connect.place_of(address)}" if address else "starting Sail"):
            if address:
                spark = stack.enter_context(connect.remote_session(address))
            else:
                spark = stack.enter_context(connect.sail_session(stack.enter_context(scratch_folder())))
        yield spark


@contextmanager
def _ended_in_good_order(spark: SparkSession) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        jvm.kill()  # it works on, and the interrupt may have cut what it could be asked to stop over
        raise
    except Exception as error:
        jvm.raise_if_engine_lost(error)
        raise
    finally:
        jvm.stop(spark)


def tasks_for(spark: SparkSession, size_bytes: int) -> int:
    """Return how many tasks share so many bytes of lines: one where more would only cost, else at least one a core."""
    wanted = -(-size_bytes // TASK_BYTES)
    return wanted if wanted <= 1 else max(wanted, parallelism(spark))


@contextmanager
def tuned(
    spark: SparkSession, size_bytes: int, *, read_bytes: int | None = None, together: bool = False
) -> Iterator[None]:
    """Fit jobs to so many bytes of lines: number of tasks, and expressions interpreted where little is read.

    Args:
        spark: The session.
        size_bytes: Of all lines.
        read_bytes: Of those that are read, and what tables count for that stand for others; all lines by default.
        together: Whether all of a run is. Then no table is sent to all tasks for a join: each has its part already.
    """
    read_bytes = size_bytes if read_bytes is None else read_bytes
    tasks = max(tasks_for(spark, read_bytes), 1)
    joining = tasks if together else max(-(-read_bytes // SHUFFLED_BYTES), parallelism(spark))
    values = {"spark.sql.shuffle.partitions": str(joining), "spark.sql.files.minPartitionNum": str(tasks)}
    if size_bytes <= SMALL_BYTES:
        values |= _INTERPRETED
    if together:
        values["spark.sql.autoBroadcastJoinThreshold"] = "-1"
    with configured(spark, values):
        yield


@contextmanager
def configured(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Let a session have other settings for a while."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, previous in before.items():
            if previous is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, previous)


def _options(master: str, scratch: Path, lasting: bool) -> dict[str, str]:
    """Return the settings; everything that Spark writes by itself goes below `scratch`."""
    quiet = scratch / "log4j2.properties"
    quiet.write_text(_QUIET, encoding="utf-8")
    java = [f"-Dlog4j2.configurationFile={quiet.as_uri()}", f"-Djava.io.tmpdir={scratch}"]
    options = {
        "spark.master": master,
        "spark.app.name": "chaos-analysis",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.codegen.cache.maxEntries": str(GENERATED_CLASSES),
        "spark.sql.broadcastTimeout": str(PATIENCE_S),
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.shuffle.partitions": str(CLUSTER_PARTITIONS),
        "spark.sql.requireAllClusterKeysForCoPartition": "false",  # what is together by run is joined where it is
        "spark.sql.unionOutputPartitioning": "false",  # Spark 4.1 zips unions of unequal numbers of partitions
    }
    if master.startswith("local"):
        options["spark.driver.extraClassPath"] = _first_jars()
        java += [
            *([_ALL_COLLECT] if lasting else [_ONE_COLLECTOR, _ONE_COMPILER, _ROOM_FOR_CODE, *_UNVERIFIED]),
            "-Djava.net.preferIPv4Stack=true",
        ]
        options |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": f"{_memory_gb(lasting)}g",
            "spark.default.parallelism": str(LOCAL_PARTITIONS),
            "spark.sql.shuffle.partitions": str(LOCAL_PARTITIONS),
            "spark.sql.files.minPartitionNum": "1",
            "spark.sql.files.openCostInBytes": "65536",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.autoBroadcastJoinThreshold": str(BROADCAST_BYTES),
            "spark.sql.inMemoryColumnarStorage.compressed": "false",
            "spark.shuffle.compress": "false",
        }
    return options | {JAVA_OPTIONS: " ".join(java)}


def _first_jars() -> str:
    """Return a class path of the jars that nearly all classes are in.

    The JVM looks for each class in one jar after the other, and for the code of each lambda once more when Spark sends
    it to a task: with almost 300 jars in no order that takes an eighth of all the time that a run is judged.
    """
    jars = Path(_find_spark_home()) / "jars"  # type: ignore[no-untyped-call]
    return os.pathsep.join(str(jar) for name in _FIRST_JARS for jar in sorted(jars.glob(f"{name}*.jar")))


def _own_settings() -> dict[str, str]:
    """Return the settings that CHAOS_SPARK_CONF holds.

    Raises:
        HarnessError: they cannot be read.
    """
    try:
        words = shlex.split(os.environ.get(CONF_VARIABLE, ""))
    except ValueError as error:
        raise HarnessError(f"{CONF_VARIABLE} cannot be read: {error}") from error
    settings = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.startswith("spark."):
            raise HarnessError(
                f"{CONF_VARIABLE}: {word!r} is not a setting of Spark; give spark.KEY=VALUE, one or more"
            )
        if key == "spark.master":
            raise HarnessError(f"{CONF_VARIABLE}: the master is what {MASTER_VARIABLE} or --master says")
        settings[key] = value
    return settings


def _memory_gb(lasting: bool) -> int:
    """Return how much memory the JVM of a local session may take."""
    share = psutil.virtual_memory().total // LASTING_SHARE // 2**30
    return max(MEMORY_GB, min(share, LASTING_MAX_GB)) if lasting else MEMORY_GB


def _end(scratch: Path) -> None:
    jvm.end()
    shutil.rmtree(scratch, ignore_errors=True)

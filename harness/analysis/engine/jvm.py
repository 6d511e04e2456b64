"""The JVM behind a session: its start, its end, and the detection of an early end."""

import logging
import os
import re
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any

from py4j.java_gateway import JavaClass, JVMView  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from harness.analysis.engine import connect
from harness.errors import SparkError, not_interrupted
from harness.system.scratch import SCRATCH_VARIABLE

STOP_TIMEOUT_S = 10
LOST_TIMEOUT_S = 5
"""From a broken connection to the exit status of the process that broke it."""
TAIL_LINES = 5
FRAME = re.compile(r"\s+(at |\.\.\. \d+ more)")
"""A line of a stack trace, which says where and not what."""
NUMBER = re.compile(r"\d+|@\w+")
"""In what it says of each task: a number, or the name of an object."""
OUT_OF_MEMORY = "java.lang.OutOfMemoryError"
MORE_MEMORY = "CHAOS_SPARK_CONF=spark.driver.memory=8g gives more"
MEMORY_VARIABLE, MEMORY = "SPARK_DRIVER_MEMORY", "2g"
"""What Spark gives a driver where no setting says it, in spark-defaults.conf or elsewhere; its own default is 1 GB."""
CONNECTION = "py4j"
"""Logs a traceback for each call that a broken connection ends; the caller reports it once."""


_in_use = threading.Event()
"""Set from the start of a session until it is stopped."""


def started(options: Mapping[str, str], scratch: Path) -> SparkSession:
    """Return a new session in a JVM of its own; what that JVM says goes to a file, never to the terminal.

    Ctrl-C stays what it was: Spark's own handler speaks to the JVM in the middle of another call, which then fails with
    an error like any other.

    Raises:
        SparkError: it does not start.
    """
    logging.root.addFilter(_is_ours)
    on_interrupt = signal.getsignal(signal.SIGINT)
    conf = SparkConf(loadDefaults=False).setAll(list(options.items()))
    log = scratch / "jvm.log"
    try:
        if SparkContext._gateway is None:
            with log.open("wb") as output, _everything_in(scratch):
                gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
            gateway.log = log
            SparkContext._ensure_initialized(gateway=gateway)
            _remember_names(gateway.jvm)
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
    except (PySparkRuntimeError, Py4JError, OSError) as error:
        why = " ".join(str(error).splitlines()[:2])  # the rest is where in Java
        raise SparkError(f"Spark did not start: {why}; {last_words(log)}") from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, on_interrupt)
    accumulators: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if accumulators is not None:
        accumulators.handle_error = lambda *_: None  # the waiting call reports the end of the JVM, once
    _in_use.set()
    return spark


def raise_if_engine_lost(error: Exception) -> None:
    """Raise what an error stands for if no work can continue after it: Ctrl-C, or the end of Spark.

    Call this before going on after an error of a job.

    Raises:
        KeyboardInterrupt: the error hides one.
        SparkError: there is no Spark any more, whatever the error says.
    """
    not_interrupted(error)
    if isinstance(error, SparkError):
        raise error
    if lost := connect.lost(error) or _lost():
        raise lost from error


@contextmanager
def watched() -> Iterator[None]:
    """Raise one SparkError when Spark has ended, in whatever form that shows; also if it was turned into an answer."""
    try:
        yield
    except Exception as error:
        raise_if_engine_lost(error)
        raise
    if lost := _lost():
        raise lost


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether the client library has not logged it: the caller gets an error, also after the session's end."""
    return CONNECTION not in Path(record.pathname).parts


def stop(spark: SparkSession) -> None:
    """Stop a session; nothing happens when there is nothing to stop any more."""
    if _lost() is None:
        with suppress(Py4JError, OSError):
            spark.stop()
    _in_use.clear()


def kill() -> None:
    """End the JVM at once; nothing happens when there is none."""
    if process := _process():
        process.kill()


def end() -> None:
    """End the JVM that PySpark would keep until this process ends; a later session starts a new one."""
    gateway, process = SparkContext._gateway, _process()
    if gateway is None:
        return
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None  # as `stop` does; a session whose JVM has ended could not be stopped
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    gateway.shutdown()
    if process is None or process.stdin is None:
        return
    with suppress(BrokenPipeError):
        process.stdin.close()
    with suppress(TimeoutExpired):
        process.wait(STOP_TIMEOUT_S)
    process.kill()
    process.wait()


def _lost() -> SparkError | None:
    """Return the end of Spark, if this process has a session and its JVM has ended or given it up."""
    gateway, process, context = SparkContext._gateway, _process(), SparkContext._active_spark_context
    if gateway is None and _in_use.is_set():
        return SparkError("Spark was ended with this process")  # for a thread without a waiter
    if gateway is None or process is None or context is None:
        return None
    try:
        if process.poll() is None and not context._jsc.sc().isStopped():
            return None
    except (Py4JError, OSError):  # a connection breaks a moment before its end shows
        with suppress(TimeoutExpired):
            process.wait(LOST_TIMEOUT_S)
    status = process.poll()
    if status is None:
        how = "it stopped by itself"
    else:
        how = f"its JVM ended with status {status}" if status >= 0 else f"{signal.Signals(-status).name} ended its JVM"
    return SparkError(f"Spark ended in the middle of its work: {how}; {last_words(gateway.log)}")


def _process() -> "Popen[bytes] | None":
    process: Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return process


def last_words(log: Path) -> str:
    """Return what a JVM's log says in its end, each line that recurs once, and what helps if that is known."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    distinct = {
        NUMBER.sub("#", line): line.strip() for line in reversed(lines) if line.strip() and not FRAME.match(line)
    }
    last = list(distinct.values())[TAIL_LINES - 1 :: -1]
    end = f"the end of its log: {' | '.join(last) or 'nothing'}"
    return f"it was out of memory, {MORE_MEMORY}; {end}" if any(OUT_OF_MEMORY in line for line in last) else end


@contextmanager
def _everything_in(scratch: Path) -> Iterator[None]:
    """Have what is started now carry the mark of a scratch folder, and PySpark leave nothing beside it if killed."""
    before, memory = tempfile.tempdir, os.environ.get(MEMORY_VARIABLE)
    tempfile.tempdir = os.environ[SCRATCH_VARIABLE] = str(scratch)
    os.environ[MEMORY_VARIABLE] = memory or MEMORY
    try:
        yield
    finally:
        tempfile.tempdir = before
        del os.environ[SCRATCH_VARIABLE]
        if not memory:
            del os.environ[MEMORY_VARIABLE]


_JAVA_NAMES = ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils")
"""Java classes that PySpark asks for with each column."""


class _KnownClass(JavaClass):  # type: ignore[misc]
    """A Java class with static methods only; each is looked for once."""

    def __getattr__(self, name: str) -> Any:
        method = super().__getattr__(name)
        setattr(self, name, method)
        return method


def _remember_names(jvm: JVMView) -> None:
    """Keep the classes that make columns: py4j would look through every jar for their names, column by column.

    The column of a name is asked for once: columns never change.
    """
    for name in _JAVA_NAMES:
        java_class = getattr(jvm, name)
        setattr(jvm, name, _KnownClass(java_class._fqn, java_class._gateway_client))
    jvm.functions.col = cache(partial(jvm.functions.col))

"""Sessions through Spark Connect, without a JVM here: with Sail in this process, or with a server somewhere else."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit
from warnings import filterwarnings

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harness.errors import HarnessError, SparkError
from harness.system.engine import CLIENT
from harness.system.extras import require

DEFAULT_PORT = 15002
REACHED_IN_S = 10
"""A server that does not take a connection within so long is taken for absent."""
RETRIES = 5
"""Of a call that a server did not answer: about 20 s in all; PySpark's own 15 take ten minutes."""
_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""Set by PySpark, for this whole process, while its functions make columns for Spark Connect."""
_CALL_SITES = "spark.python.sql.dataFrameDebugging.enabled"
"""Has PySpark look for IPython with each call."""
SAIL_IDLE_S = 7 * 24 * 3600
"""Sail ends a session that asks nothing for so long, by default 900 s: reading a large history can take longer."""
SAIL_PURGE_DELAY_MS = "0"
"""For so long Sail keeps freed memory. With 1 ms it keeps about 1 GB, and takes 12 % less CPU time."""
SAIL_PARALLELISM = "SAIL_EXECUTION__DEFAULT_PARALLELISM"
"""Its own default is the number of cores; with 1 Sail 0.7.2 refuses unions ("Can not create InterleaveExec")."""
PURGE_DELAY = "MIMALLOC_PURGE_DELAY"
_LOST, _UNAVAILABLE = "SparkConnectGrpcException", "StatusCode.UNAVAILABLE"
"""PySpark's error of a call without an answer; its class needs the client's libraries to be imported."""


@contextmanager
def sail_session(scratch: Path) -> Iterator[SparkSession]:
    """Yield a session with a server of Sail in this process, which keeps what it stores in `scratch`.

    It listens on the loopback interface until the session ends, without authentication.

    Raises:
        NotInstalled: the extra `sail` is not installed.
        SparkError: it does not start.
    """
    require("pysail", *CLIENT)
    with _environment(PURGE_DELAY, os.environ.get(PURGE_DELAY, SAIL_PURGE_DELAY_MS)):  # read as it is loaded
        from pysail.spark import SparkConnectServer

    os.environ.setdefault("RUST_LOG", "off")  # a failure is raised by the call that it ends
    with (
        _environment("SAIL_EXECUTION__CHECKPOINT__PATH", scratch.as_uri()),
        _environment("SAIL_SPARK__SESSION_TIMEOUT_SECS", str(SAIL_IDLE_S)),
        _environment(SAIL_PARALLELISM, os.environ.get(SAIL_PARALLELISM, str(max(2, _cores())))),
    ):
        try:
            server = SparkConnectServer("127.0.0.1", 0)
            server.start(background=True)
            _, port = server.listening_address
        except (RuntimeError, ValueError, TypeError) as error:
            raise SparkError(f"Sail did not start: {error}") from error
    try:
        with remote_session(f"sc://127.0.0.1:{port}", retries=0) as spark:  # Ctrl-C ends the server too
            yield spark
    finally:
        server.stop()


def _cores() -> int:
    """Return how many cores this process may use at once, as Sail counts them: by affinity and by quota."""
    cores = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):  # no cgroup, or "max"
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        cores = min(cores, max(int(quota) // int(period), 1))
    return cores


@contextmanager
def remote_session(address: str, *, retries: int = RETRIES) -> Iterator[SparkSession]:
    """Yield a session with a server of Spark Connect, `sc://HOST:PORT` with parameters as PySpark takes them.

    Args:
        address: The server's.
        retries: Of a call that it does not answer.

    Raises:
        NotInstalled: the client's libraries are not installed.
        HarnessError: it is no such address.
        SparkError: nothing answers there.
    """
    require(*CLIENT)
    _reach(address)
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")  # the caller gets an error
    with _environment(_MODE, "1"):
        spark = ConnectSession.builder.remote(address).create()
        spark.client.set_retry_policies([DefaultPolicy(max_retries=retries)])
        try:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
        except PySparkException as error:
            raise SparkError(f"{place_of(address)} does not judge: {_details(error)}") from error
        with suppress(PySparkException):  # a server may keep it to itself
            spark.conf.set(_CALL_SITES, "false")
        try:
            yield spark  # type: ignore[misc]  # PySpark's two sessions share their methods, but no class
        except (PySparkException, SparkError) as error:
            gone = lost(error)
            spark.release_session_on_close = not (gone or isinstance(error, SparkError))  # the server is gone
            if gone:
                raise gone from error
            raise
        finally:
            spark.stop()


def place_of(address: str) -> str:
    """Return a server's address without its parameters, among which a token may be."""
    return address.partition(";")[0]


def lost(error: BaseException) -> SparkError | None:
    """Return what stands for a server that does not answer any more, if an error says that."""
    if isinstance(error, PySparkException) and type(error).__name__ == _LOST and _UNAVAILABLE in str(error):
        return SparkError("the Spark Connect server no longer answers")
    return None


def _details(error: PySparkException) -> str:
    """Return what a server said, without what the client's library says around it."""
    details = re.search(r'details = "(.*)"', str(error))
    return details[1] if details else next(iter(str(error).splitlines()), type(error).__name__)


def _reach(address: str) -> None:
    """Return when a server accepts connections there: PySpark itself would retry for ten minutes."""
    url = urlsplit(place_of(address))
    try:
        host, port = url.hostname, url.port or DEFAULT_PORT
    except ValueError:
        host, port = None, 0
    if url.scheme != "sc" or not host:
        raise HarnessError(f"{place_of(address)!r} is not an address of Spark Connect; give sc://HOST:PORT")
    try:
        socket.create_connection((host, port), timeout=REACHED_IN_S).close()
    except OSError as error:
        raise SparkError(f"no Spark Connect server answers at {host}:{port}: {error.strerror or error}") from error


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before

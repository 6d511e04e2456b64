"""A real ZooKeeper server: its configuration, jars, start, and whether it serves."""

import asyncio
import importlib.util
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.cluster.ports import LOOPBACK
from harness.errors import ClusterError
from harness.properties_file import escaped

JARS = (
    "zookeeper",
    "zookeeper-jute",
    "slf4j-api",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j2-impl",
    "metrics-core",
    "netty-common",
    "netty-buffer",
    "netty-handler",
    "netty-transport",
    "snappy-java",
)
"""Names, without version, of the jars that the server loads: itself, its logging, its metrics."""

TICK_MS = 200
"""The shortest session time-out is two ticks; a session expires within one tick after its time-out."""
MAX_SESSION_TIMEOUT_MS = 60_000

JVM_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # the server lives for minutes: quick compilation beats good code
    "-Xshare:auto",
    "-XX:-UsePerfData",  # else a killed JVM leaves /tmp/hsperfdata_<user>/<pid>
    "-Djava.net.preferIPv4Stack=true",
    "-Dsun.net.inetaddr.negative.ttl=0",  # another server's name may not resolve yet: try again
    "-Dzookeeper.preAllocSize=1024",  # KiB of transaction log at a time
)
PROBE_TIMEOUT_S = 1.0

_MODE = "Mode: "

SINGLE_MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"
QUORUM_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
INIT_LIMIT_TICKS = 50
"""Ten seconds for a server to join its leader."""
SYNC_LIMIT_TICKS = 25
"""Five seconds until a server that lags behind is disconnected."""

CONFIG_NAME = "zoo.cfg"
LOGGING_NAME = "log4j2.properties"
ID_NAME = "myid"
"""File in the data directory with the server's own id."""

_APPENDER = """\
status = error
appender.main.type = {type}
appender.main.name = main
{where}appender.main.layout.type = PatternLayout
appender.main.layout.pattern = %d %p %c{{1}}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.main.ref = main
"""
CONSOLE_LOGGING = _APPENDER.format(type="Console", where="")


def file_logging(path: str) -> str:
    """Return the logging configuration of a server that writes its log to a file."""
    return _APPENDER.format(type="File", where=f"appender.main.fileName = {path}\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    """One ZooKeeper server, with paths as the server itself sees them."""

    client_port: int
    client_host: str = LOOPBACK
    """The address that it listens on."""
    data_dir: str
    server_id: int = 1
    ensemble: Mapping[int, str] = field(default_factory=dict)
    """host:quorum-port:election-port of every server by id; empty for a single server."""
    syncs: bool = False
    """Whether it syncs what it writes. A killed process loses nothing of the page cache; only a power loss would."""

    def configuration(self) -> str:
        """Return the text of its zoo.cfg."""
        values = {
            "dataDir": self.data_dir,
            "clientPort": self.client_port,
            "clientPortAddress": self.client_host,
            "tickTime": TICK_MS,
            "maxSessionTimeout": MAX_SESSION_TIMEOUT_MS,
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "ruok,srvr,cons,stat,mntr,dump",
        }
        if self.ensemble:
            values |= {"initLimit": INIT_LIMIT_TICKS, "syncLimit": SYNC_LIMIT_TICKS}
            values |= {f"server.{server_id}": address for server_id, address in self.ensemble.items()}
        return "".join(f"{name}={escaped(str(value))}\n" for name, value in values.items())

    def command(self, java: str, classpath: str, *, config_file: str, log_file: str) -> list[str]:
        """Return the command that starts it."""
        main = QUORUM_MAIN if self.ensemble else SINGLE_MAIN
        own = [f"-Dzookeeper.forceSync={'yes' if self.syncs else 'no'}", f"-Dlog4j2.configurationFile={log_file}"]
        return [java, *JVM_OPTIONS, *own, "-cp", classpath, main, config_file]


def prepare(folder: Path, plan: ServerPlan) -> list[str]:
    """Write the configuration of a server on this host into the folder and return the command that starts it.

    Raises:
        ClusterError: Java or one of the jars is missing.
    """
    write_configuration(folder, plan)
    data = Path(plan.data_dir)
    data.mkdir(parents=True, exist_ok=True)
    (data / ID_NAME).write_text(f"{plan.server_id}\n", encoding="ascii")
    classpath = os.pathsep.join(str(jar) for jar in jars())
    folder = folder.resolve()
    return plan.command(java(), classpath, config_file=str(folder / CONFIG_NAME), log_file=str(folder / LOGGING_NAME))


def write_configuration(folder: Path, plan: ServerPlan, logging: str = CONSOLE_LOGGING) -> None:
    """Write a server's zoo.cfg and logging configuration into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG_NAME).write_text(plan.configuration(), encoding="utf-8")
    (folder / LOGGING_NAME).write_text(logging, encoding="utf-8")


def java() -> str:
    """Return the path of the Java launcher: of JAVA_HOME, else the first in PATH.

    Raises:
        ClusterError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        program = Path(home, "bin", "java")
        if not os.access(program, os.X_OK):
            raise ClusterError(f"JAVA_HOME is {home}, but {program} is not a program")
        return str(program)
    launcher = shutil.which("java")
    if launcher is None:
        raise ClusterError("no java in PATH, and JAVA_HOME is not set: ZooKeeper needs Java 17 or 21")
    return launcher


def jars() -> list[Path]:
    """Return the jars of ZooKeeper and of what it loads, out of PySpark, which is not imported.

    Raises:
        ClusterError: PySpark is not installed, or lacks one of them.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ClusterError("PySpark is not installed, and ZooKeeper's jars are inside it")
    folder = Path(spec.origin).parent / "jars"
    paths = []
    for name in JARS:
        matches = sorted(folder.glob(f"{name}-[0-9]*.jar"))
        if not matches:
            raise ClusterError(f"no {name}-*.jar in {folder}: ZooKeeper needs it")
        paths.append(matches[-1])
    return paths


async def serves(port: int) -> bool:
    """Return whether a ZooKeeper server on this port takes requests, by `srvr`; it answers `ruok` before it does."""
    return (await _answer(port, b"srvr")).startswith(b"Zookeeper version")


async def answers(port: int) -> bool:
    """Return whether a ZooKeeper server on this port is up, by `ruok`; one without a quorum is."""
    return await _answer(port, b"ruok") == b"imok"


async def mode(port: int) -> str:
    """Return leader, follower or standalone, by the own report of a server that takes requests; else nothing."""
    lines = (await _answer(port, b"srvr")).decode(errors="replace").splitlines()
    return next((line.removeprefix(_MODE) for line in lines if line.startswith(_MODE)), "")


async def _answer(port: int, word: bytes) -> bytes:
    """Return what a server answers to a four-letter word; nothing when there is none in time."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(word)
                return await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return b""

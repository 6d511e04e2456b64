"""A real ZooKeeper server from the jars inside PySpark: what it needs, how it is started, whether it serves."""

import asyncio
import importlib.util
import os
import shutil
from pathlib import Path

from harness.cluster.ports import LOOPBACK
from harness.errors import ClusterError

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
"""Names, without version, of what the server loads: itself, its logging, its metrics."""

TICK_MS = 200
"""A session may be as short as two ticks, and is found expired within one."""
MAX_SESSION_TIMEOUT_MS = 60_000

JVM_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # the server lives for minutes: quick compilation beats good code
    "-Xshare:auto",
    "-XX:-UsePerfData",  # else a killed JVM leaves /tmp/hsperfdata_<user>/<pid>
    "-Djava.net.preferIPv4Stack=true",
    "-Dzookeeper.preAllocSize=1024",  # KiB of transaction log at a time
    "-Dzookeeper.forceSync=no",  # a killed process loses nothing of the page cache; only a power loss would
)
PROBE_TIMEOUT_S = 1.0

LOG4J2_CONFIGURATION = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


def prepare(folder: Path, port: int) -> list[str]:
    """Write the server's configuration into the folder and return the command that starts it.

    Raises:
        ClusterError: there is no Java, or PySpark's jars are not where they should be.
    """
    data = data_dir(folder)
    data.mkdir(parents=True, exist_ok=True)
    configuration = {
        "dataDir": data.resolve(),
        "clientPort": port,
        "clientPortAddress": LOOPBACK,
        "tickTime": TICK_MS,
        "maxSessionTimeout": MAX_SESSION_TIMEOUT_MS,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "ruok,srvr,cons,stat,mntr,dump",
    }
    config_file = folder.resolve() / "zoo.cfg"
    config_file.write_text("".join(f"{name}={value}\n" for name, value in configuration.items()), encoding="utf-8")
    log_file = folder.resolve() / "log4j2.properties"
    log_file.write_text(LOG4J2_CONFIGURATION, encoding="utf-8")
    classpath = os.pathsep.join(str(jar) for jar in jars())
    return [
        java(),
        *JVM_OPTIONS,
        f"-Dlog4j2.configurationFile={log_file}",
        "-cp",
        classpath,
        "org.apache.zookeeper.server.ZooKeeperServerMain",
        str(config_file),
    ]


def data_dir(folder: Path) -> Path:
    """Return where the server keeps its transaction logs and snapshots."""
    return folder / "data"


def java() -> str:
    """Return the path of the Java launcher: of JAVA_HOME, else the first in PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        launcher = Path(home, "bin", "java")
        if not os.access(launcher, os.X_OK):
            raise ClusterError(f"JAVA_HOME is {home}, but {launcher} is not a program")
        return str(launcher)
    found = shutil.which("java")
    if found is None:
        raise ClusterError("no java in PATH, and JAVA_HOME is not set: ZooKeeper needs Java 17 or 21")
    return found


def jars() -> list[Path]:
    """Return the jars of ZooKeeper and what it needs, found without importing PySpark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ClusterError("PySpark is not installed, and ZooKeeper's jars are inside it")
    folder = Path(spec.origin).parent / "jars"
    found = []
    for name in JARS:
        matches = sorted(folder.glob(f"{name}-[0-9]*.jar"))
        if not matches:
            raise ClusterError(f"no {name}-*.jar in {folder}: ZooKeeper needs it")
        found.append(matches[-1])
    return found


async def serves(port: int) -> bool:
    """Return whether a ZooKeeper server on this port takes requests (`srvr`; to `ruok` it says yes too early)."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(b"srvr")
                return (await reader.read()).startswith(b"Zookeeper version")
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False

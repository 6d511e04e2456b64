"""Which clusters do benchmarks compare? Ours, and real Apache Kafka 3.9 in ZooKeeper mode, on loopback."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import psutil
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from harness.cluster.driver import ClusterRequest
from harness.cluster.processes.driver import ProcessDriver

KAFKA_LIBS = Path(os.environ.get("KAFKA_LIBS", Path(__file__).parent.parent / ".kafka-libs"))
SESSION_TIMEOUT_MS = 6_000
PAUSE_TIMEOUT_S = 120.0
START_TIMEOUT_S = 180.0
LOG4J = """log4j.rootLogger=WARN, f
log4j.appender.f=org.apache.log4j.FileAppender
log4j.appender.f.File=${kafka.logfile}
log4j.appender.f.layout=org.apache.log4j.PatternLayout
log4j.appender.f.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
"""


class Peer(Protocol):
    """One running cluster; broker ids count from 0."""

    name: str
    bootstrap_servers: str
    zookeeper_connect: str
    zookeeper_data: Path
    """Where the one ZooKeeper server keeps its transaction log."""
    startup_s: float

    def kill(self, broker_id: int) -> None:
        """SIGKILL one broker and wait until it is gone."""

    def stop(self, broker_id: int) -> float:
        """SIGTERM one broker; return the seconds until it was gone."""

    def start(self, broker_id: int) -> None:
        """Start a stopped broker again and wait until it is registered."""

    def pause(self, broker_id: int) -> None:
        """SIGSTOP one broker."""

    def resume(self, broker_id: int) -> None:
        """SIGCONT one broker."""

    def pid(self, broker_id: int) -> int:
        """Return the process id of a running broker."""

    def close(self) -> None:
        """End everything that was started."""


def processor_s(peer: Peer, broker_ids: Iterable[int]) -> float:
    """Return the processor time that brokers have used so far."""
    used = [psutil.Process(peer.pid(broker_id)).cpu_times() for broker_id in broker_ids]
    return sum(times.user + times.system for times in used)


def create_topic(peer: Peer, topic: str, partitions: int, config: dict[str, str] | None = None) -> None:
    """Create a topic with replication factor 3 and wait until a broker's metadata has its leaders.

    On a busy machine sessions end while the brokers start; a topic waits until three are there at a time.
    """
    timeout_s = 120 + partitions / 10
    admin = AdminClient({"bootstrap.servers": peer.bootstrap_servers})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=3, config=config or {})
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            admin.create_topics([new], operation_timeout=timeout_s, request_timeout=timeout_s)[topic].result()
            break
        except KafkaException as error:
            if error.args[0].code() != KafkaError.INVALID_REPLICATION_FACTOR:
                raise
            time.sleep(0.5)
    while time.monotonic() < deadline:
        metadata = admin.list_topics(timeout=10).topics.get(topic)
        if (
            metadata
            and len(metadata.partitions) == partitions
            and all(p.leader >= 0 for p in metadata.partitions.values())
        ):
            return
        time.sleep(0.05)
    raise TimeoutError(f"{peer.name}: topic {topic} has no leaders after {timeout_s:g} s")


class Ours:
    """Brokers of this project through the `process` driver."""

    name = "ours"

    def __init__(self, root: Path, brokers: int, properties: Mapping[str, str]) -> None:
        self._driver = ProcessDriver(root, root.name)
        began = time.monotonic()
        request = ClusterRequest(
            brokers=brokers,
            properties={"zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS), **properties},
            owner_pid=os.getpid(),
        )
        status = asyncio.run(self._driver.start(request))
        self.startup_s = time.monotonic() - began
        self.bootstrap_servers = status.bootstrap_servers
        self.zookeeper_connect = status.zookeeper_connect
        self.zookeeper_data = status.zookeeper[0].data_dir

    def kill(self, broker_id: int) -> None:
        """SIGKILL one broker and wait until it is gone."""
        asyncio.run(self._driver.kill_broker(broker_id))

    def stop(self, broker_id: int) -> float:
        """SIGTERM one broker; return the seconds until it was gone."""
        began = time.monotonic()
        asyncio.run(self._driver.stop_broker(broker_id, timeout_s=60))
        return time.monotonic() - began

    def start(self, broker_id: int) -> None:
        """Start a stopped broker again."""
        asyncio.run(self._driver.start_broker(broker_id))

    def pause(self, broker_id: int) -> None:
        """SIGSTOP one broker."""
        asyncio.run(self._driver.pause_broker(broker_id, at_most_s=PAUSE_TIMEOUT_S))

    def resume(self, broker_id: int) -> None:
        """SIGCONT one broker."""
        asyncio.run(self._driver.resume_broker(broker_id))

    def pid(self, broker_id: int) -> int:
        """Return the process id of a running broker."""
        pid = asyncio.run(self._driver.status()).broker(broker_id).pid
        assert pid is not None, f"broker {broker_id} does not run"
        return pid

    def close(self) -> None:
        """Stop everything."""
        asyncio.run(self._driver.stop())


class RealKafka:
    """Apache Kafka 3.9 from its jars, one JVM a broker."""

    name = "Kafka 3.9"

    def __init__(self, root: Path, brokers: int, properties: Mapping[str, str], port: int = 21_000) -> None:
        if not any(KAFKA_LIBS.glob("kafka_2.13-*.jar")):
            raise FileNotFoundError(f"no jars of real Kafka in {KAFKA_LIBS}: run `make kafka-libs` or set KAFKA_LIBS")
        self._root = root
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._up: set[str] = set()
        """What was started and is meant to run."""
        root.mkdir(parents=True, exist_ok=True)
        (root / "log4j.properties").write_text(LOG4J)
        began = time.monotonic()
        self.zookeeper_connect = f"127.0.0.1:{port}"
        self.zookeeper_data = root / "zookeeper.data"
        (root / "zookeeper.properties").write_text(
            f"dataDir={self.zookeeper_data}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\ntickTime=500\n"
        )
        self._launch("zookeeper", "org.apache.zookeeper.server.quorum.QuorumPeerMain", "256m")
        more = "".join(f"{name}={value}\n" for name, value in properties.items())
        for broker_id in range(brokers):
            (root / f"{broker_id}.properties").write_text(
                f"broker.id={broker_id}\nlisteners=PLAINTEXT://127.0.0.1:{port + 1 + broker_id}\n"
                f"log.dirs={root}/{broker_id}.data\nzookeeper.connect={self.zookeeper_connect}\n"
                f"zookeeper.session.timeout.ms={SESSION_TIMEOUT_MS}\n"
                f"zookeeper.connection.timeout.ms={START_TIMEOUT_S * 1000:.0f}\nauto.create.topics.enable=false\n"
                "default.replication.factor=3\noffsets.topic.num.partitions=4\ngroup.initial.rebalance.delay.ms=0\n"
                + more
            )
            self._launch(str(broker_id), "kafka.Kafka", "512m")
        self.bootstrap_servers = ",".join(f"127.0.0.1:{port + 1 + broker_id}" for broker_id in range(brokers))
        try:
            self._wait_registered()
        except BaseException:
            self.close()
            raise
        self.startup_s = time.monotonic() - began

    def _launch(self, name: str, main: str, heap: str) -> None:
        command = [
            "java",
            f"-Xmx{heap}",
            "-cp",
            f"{KAFKA_LIBS}/*",
            f"-Dlog4j.configuration=file:{self._root}/log4j.properties",
        ]
        command += [f"-Dkafka.logfile={self._root}/{name}.log", main, f"{self._root}/{name}.properties"]
        with (self._root / f"{name}.out").open("ab") as out:
            self._processes[name] = subprocess.Popen(command, stdout=out, stderr=out)
        self._up.add(name)

    def _wait_registered(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            for name in self._up:
                if self._processes[name].poll() is not None:
                    log_tail = (self._root / f"{name}.log").read_text().splitlines()[-20:]
                    raise RuntimeError(f"real Kafka's {name} has ended:\n" + "\n".join(log_tail))
            try:
                metadata = admin.list_topics(timeout=1)
            except Exception:  # noqa: BLE001 - not up yet: librdkafka reports it in many ways
                continue
            if len(metadata.brokers) == len(self._up - {"zookeeper"}) and metadata.controller_id >= 0:
                return
        raise TimeoutError(f"real Kafka did not start; see {self._root}")

    def kill(self, broker_id: int) -> None:
        """SIGKILL one broker and wait until it is gone."""
        self._up.discard(str(broker_id))
        process = self._processes[str(broker_id)]
        process.kill()
        process.wait()

    def stop(self, broker_id: int) -> float:
        """SIGTERM one broker; return the seconds until it was gone."""
        self._up.discard(str(broker_id))
        process = self._processes[str(broker_id)]
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        return time.monotonic() - began

    def start(self, broker_id: int) -> None:
        """Start a stopped broker again."""
        self._launch(str(broker_id), "kafka.Kafka", "512m")
        self._wait_registered()

    def pause(self, broker_id: int) -> None:
        """SIGSTOP one broker."""
        self._processes[str(broker_id)].send_signal(signal.SIGSTOP)

    def resume(self, broker_id: int) -> None:
        """SIGCONT one broker."""
        self._processes[str(broker_id)].send_signal(signal.SIGCONT)

    def pid(self, broker_id: int) -> int:
        """Return the process id of a running broker."""
        return self._processes[str(broker_id)].pid

    def close(self) -> None:
        """End every process that was started."""
        for process in self._processes.values():
            process.kill()
            process.wait()


@contextmanager
def running(kind: str, folder: Path, brokers: int = 3, properties: Mapping[str, str] | None = None) -> Iterator[Peer]:
    """Start `ours` or `kafka` in a folder and stop it whatever happens; `properties` are given to every broker."""
    start = Ours if kind == "ours" else RealKafka
    peer = start(folder / kind, brokers, properties or {})
    try:
        yield peer
    finally:
        peer.close()


def peers() -> list[str]:
    """Return what can be measured here: ours, and real Kafka where its jars are."""
    if any(KAFKA_LIBS.glob("kafka_2.13-*.jar")):
        return ["ours", "kafka"]
    sys.stderr.write(f"no jars of real Kafka in {KAFKA_LIBS}: measuring ours alone (`make kafka-libs` fetches them)\n")
    return ["ours"]

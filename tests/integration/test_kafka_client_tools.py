"""The tools that Kafka's users have at hand, Java's 3.9, against a cluster as `chaos cluster up` starts it."""

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

KAFKA_LIBS = Path(os.environ.get("KAFKA_LIBS", Path(__file__).parents[2] / ".kafka-libs"))

TIMEOUT_S = 120

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not any(KAFKA_LIBS.glob("kafka_2.13-*.jar")), reason="no jars of real Kafka: make kafka-libs"),
]


def run(command: list[str], sent: str = "") -> str:
    done = subprocess.run(command, input=sent, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The arguments that name a cluster that stays."""
    chaos = [sys.executable, "-m", "harness", "cluster"]
    folder = str(tmp_path_factory.mktemp("cluster") / "c")
    run([*chaos, "up", "--dir", folder])
    try:
        status: dict[str, Any] = json.loads(run([*chaos, "status", "--dir", folder, "--json"]))
        yield ["--bootstrap-server", status["bootstrap_servers"]]
    finally:
        run([*chaos, "down", "--dir", folder])


def tool(name: str, *arguments: str, sent: str = "") -> str:
    """Run one of Kafka's tools and return what it prints."""
    return run(["java", "-Xmx256m", "-cp", f"{KAFKA_LIBS}/*", name, *arguments], sent)


def until(holds: Callable[[str], bool], ask: Callable[[], str]) -> str:
    """Ask until the answer is as it should be, and return it: brokers hear of a change one after the other."""
    deadline = time.monotonic() + TIMEOUT_S
    while not holds(said := ask()):
        assert time.monotonic() < deadline, f"not in time; last saw: {said}"
    return said


def topics(*arguments: str) -> str:
    return tool("org.apache.kafka.tools.TopicCommand", *arguments)


def configs(*arguments: str) -> str:
    return tool("kafka.admin.ConfigCommand", *arguments)


def test_a_topic_is_made_written_measured_read_changed_and_deleted(servers: list[str]) -> None:
    name = f"topic-{uuid.uuid4().hex[:8]}"
    this = ("--topic", name)
    shape = ("--partitions", "1", "--replication-factor", "3")
    assert f"Created topic {name}." in topics(*servers, "--create", *this, *shape, "--config", "retention.ms=100000")

    sent = [f"value-{number}" for number in range(100)]
    tool("kafka.tools.ConsoleProducer", *servers, *this, sent="".join(f"{value}\n" for value in sent))
    reading = (*this, "--partition", "0", "--offset", "earliest", "--max-messages", "100", "--timeout-ms", "60000")
    assert tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *servers, *reading).splitlines() == sent

    load = ("--num-records", "2000", "--record-size", "100", "--throughput", "-1")
    properties = ("--producer-props", f"bootstrap.servers={servers[1]}")
    assert "2000 records sent" in tool("org.apache.kafka.tools.ProducerPerformance", *this, *load, *properties)

    one = ("--entity-type", "topics", "--entity-name", name)
    configs(*servers, "--alter", *one, "--add-config", "max.message.bytes=2000", "--delete-config", "retention.ms")
    described = configs(*servers, "--describe", *one)
    assert "max.message.bytes=2000" in described
    assert "retention.ms" not in described

    topics(*servers, "--alter", *this, "--partitions", "2")
    described = until(lambda said: "PartitionCount: 2" in said, lambda: topics(*servers, "--describe", *this))
    assert "ReplicationFactor: 3" in described
    topics(*servers, "--delete", *this)
    until(lambda said: name not in said.splitlines(), lambda: topics(*servers, "--list"))


def test_a_broker_is_configured_and_the_cluster_named(servers: list[str]) -> None:
    one = ("--entity-type", "brokers", "--entity-name", "0")
    configs(*servers, "--alter", *one, "--add-config", "log.retention.ms=123456")
    until(lambda said: "log.retention.ms=123456" in said, lambda: configs(*servers, "--describe", *one))
    assert "Cluster ID: " in tool("org.apache.kafka.tools.ClusterTool", "cluster-id", *servers)

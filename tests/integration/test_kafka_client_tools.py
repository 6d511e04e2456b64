"""The tools that Kafka's users have at hand, Java's 3.9, against a cluster as `chaos cluster up` starts it."""

import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.kafka_tools import kafka_tool, needs_kafka, takes_turns

TIMEOUT_S = 120

pytestmark = [pytest.mark.cluster, needs_kafka, takes_turns]


@pytest.fixture
def servers(cluster: dict[str, Any]) -> list[str]:
    """The arguments that name a cluster that stays."""
    return ["--bootstrap-server", cluster["bootstrap_servers"]]


def until(holds: Callable[[str], bool], ask: Callable[[], str]) -> str:
    """Ask until the answer is as it should be, and return it: brokers hear of a change one after the other."""
    deadline = time.monotonic() + TIMEOUT_S
    while not holds(seen := ask()):
        assert time.monotonic() < deadline, f"not in time; last saw: {seen}"
    return seen


def topics(*arguments: str) -> str:
    return kafka_tool("org.apache.kafka.tools.TopicCommand", *arguments)


def configs(*arguments: str) -> str:
    return kafka_tool("kafka.admin.ConfigCommand", *arguments)


def test_a_topic_is_made_written_measured_read_changed_and_deleted(servers: list[str]) -> None:
    name = f"topic-{uuid.uuid4().hex[:8]}"
    this = ("--topic", name)
    shape = ("--partitions", "1", "--replication-factor", "3")
    assert f"Created topic {name}." in topics(*servers, "--create", *this, *shape, "--config", "retention.ms=100000")

    sent = [f"value-{number}" for number in range(100)]
    kafka_tool("kafka.tools.ConsoleProducer", *servers, *this, sent="".join(f"{value}\n" for value in sent))
    reading = (*this, "--partition", "0", "--offset", "earliest", "--max-messages", "100", "--timeout-ms", "60000")
    assert kafka_tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *servers, *reading).splitlines() == sent

    load = ("--num-records", "2000", "--record-size", "100", "--throughput", "-1")
    properties = ("--producer-props", f"bootstrap.servers={servers[1]}")
    assert "2000 records sent" in kafka_tool("org.apache.kafka.tools.ProducerPerformance", *this, *load, *properties)

    one = ("--entity-type", "topics", "--entity-name", name)
    configs(*servers, "--alter", *one, "--add-config", "max.message.bytes=2000", "--delete-config", "retention.ms")
    described = configs(*servers, "--describe", *one)
    assert "max.message.bytes=2000" in described
    assert "retention.ms" not in described

    topics(*servers, "--alter", *this, "--partitions", "2")
    described = until(lambda output: "PartitionCount: 2" in output, lambda: topics(*servers, "--describe", *this))
    assert "ReplicationFactor: 3" in described
    topics(*servers, "--delete", *this)
    until(lambda output: name not in output.splitlines(), lambda: topics(*servers, "--list"))


def test_a_broker_is_configured_and_the_cluster_named(servers: list[str]) -> None:
    one = ("--entity-type", "brokers", "--entity-name", "0")
    configs(*servers, "--alter", *one, "--add-config", "log.retention.ms=123456")
    until(lambda output: "log.retention.ms=123456" in output, lambda: configs(*servers, "--describe", *one))
    assert "Cluster ID: " in kafka_tool("org.apache.kafka.tools.ClusterTool", "cluster-id", *servers)

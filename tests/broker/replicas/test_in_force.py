"""A broker's log says which configuration its replicas act on, once for each topic and change."""

import json
from collections.abc import AsyncIterator

import pytest

from harness.broker.wire.messages import DeleteTopicsRequest
from harness.events import ConfigurationInForce
from tests.broker.whole_cluster import WholeCluster

pytestmark = pytest.mark.fast


@pytest.fixture
async def cluster() -> AsyncIterator[WholeCluster]:
    """Broker 1 with a topic that keeps 50 bytes, and asks for 2 in sync."""
    async with WholeCluster() as cluster:
        await cluster.start(1)
        assert await cluster.create("t", [1], retention_bytes="50", min_insync_replicas="2") == 0
        await cluster.until_led("t", 1)
        yield cluster


def said(cluster: WholeCluster, topic: str = "t") -> list[dict[str, str]]:
    """Return what broker 1 has said of a topic; nothing where it hosts none any more."""
    lines = [line for line in cluster.of(1, ConfigurationInForce) if line.topic == topic]
    assert all(line.hosted == bool(line.properties) for line in lines)
    return [dict(each.split("=") for each in line.properties) for line in lines]


def set_in_zookeeper(cluster: WholeCluster, entity: str, number: int, **config: str) -> None:
    """Change a configuration, and notify brokers."""
    properties = {name.replace("_", "."): value for name, value in config.items()}
    cluster.zookeeper.put(f"/config/{entity}", json.dumps({"version": 1, "config": properties}).encode())
    change = json.dumps({"version": 2, "entity_path": entity}).encode()
    cluster.zookeeper.put(f"/config/changes/config_change_{number}", change)


async def test_a_replica_says_what_it_acts_on_when_it_is_hosted(cluster: WholeCluster) -> None:
    assert said(cluster) == [
        {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "delete.retention.ms": "86400000",
            "max.message.bytes": "1048588",
            "message.timestamp.type": "CreateTime",
            "min.compaction.lag.ms": "0",
            "min.insync.replicas": "2",
            "retention.bytes": "50",
            "retention.ms": "604800000",
            "segment.bytes": "1073741824",
        }
    ]


async def test_a_change_is_said_once_and_what_stays_is_not(cluster: WholeCluster) -> None:
    set_in_zookeeper(cluster, "topics/t", 1, retention_bytes="60", cleanup_policy="delete,compact")
    await cluster.until(lambda: len(said(cluster)) == 2, "a second line")
    set_in_zookeeper(cluster, "topics/t", 2, retention_bytes="60", cleanup_policy="delete,compact")
    set_in_zookeeper(cluster, "brokers/<default>", 3, min_insync_replicas="3")
    await cluster.until(lambda: len(said(cluster)) == 3, "a third line")
    shown = ("cleanup.policy", "retention.bytes", "min.insync.replicas")
    assert [tuple(line[name] for name in shown) for line in said(cluster)] == [
        ("delete", "50", "2"),
        ("compact,delete", "60", "1"),
        ("compact,delete", "60", "3"),
    ]


async def test_several_replicas_of_a_topic_say_it_once(cluster: WholeCluster) -> None:
    assert await cluster.create_anywhere("many", partitions=3, replication_factor=1) == 0
    await cluster.until_led("many", 1)
    assert len(said(cluster, "many")) == 1


async def test_the_last_replica_of_a_deleted_topic_says_so(cluster: WholeCluster) -> None:
    await cluster.ask(1, DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 3)
    await cluster.until(lambda: len(said(cluster)) == 2, "a second line")
    assert said(cluster)[-1] == {}


async def test_after_a_start_it_is_said_again(cluster: WholeCluster) -> None:
    await cluster.stop(1)
    await cluster.start(1)
    await cluster.until_led("t", 1)
    assert [line["retention.bytes"] for line in said(cluster)] == ["50", "50"]


@pytest.mark.parametrize(
    ("bug", "retention_bytes"),
    [
        pytest.param("loaded-log-without-properties", ["50", "-1"], id="a loaded log keeps what it was opened with"),
        pytest.param("", ["50", "50"], id="without a bug"),
    ],
)
async def test_a_loaded_log_says_what_it_acts_on_itself(bug: str, retention_bytes: list[str]) -> None:
    async with WholeCluster(planted_bugs=(bug,) if bug else ()) as cluster:
        await cluster.start(1)
        assert await cluster.create("t", [1], retention_bytes="50") == 0
        await cluster.until_led("t", 1)
        await cluster.stop(1)
        await cluster.start(1)
        await cluster.until_led("t", 1)
        assert [line["retention.bytes"] for line in said(cluster)] == retention_bytes


async def test_a_change_of_all_brokers_that_drops_what_topics_set_is_said() -> None:
    async with WholeCluster(planted_bugs=("broker-change-drops-topic-properties",)) as cluster:
        await cluster.start(1)
        assert await cluster.create("t", [1], retention_bytes="50") == 0
        await cluster.until_led("t", 1)
        set_in_zookeeper(cluster, "brokers/<default>", 1, log_retention_ms="9")
        await cluster.until(lambda: len(said(cluster)) == 2, "a second line")
        assert (said(cluster)[-1]["retention.bytes"], said(cluster)[-1]["retention.ms"]) == ("-1", "9")


async def test_a_topic_that_is_created_again_acts_on_its_new_configuration(cluster: WholeCluster) -> None:
    await cluster.ask(1, DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 3)
    await cluster.until(lambda: len(said(cluster)) == 2, "a second line")
    await cluster.until(lambda: "/config/topics/t" not in cluster.zookeeper.nodes, "the topic is gone")
    assert await cluster.create("t", [1], retention_bytes="70") == 0
    await cluster.until_led("t", 1)
    assert said(cluster)[-1]["retention.bytes"] == "70"

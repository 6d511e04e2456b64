"""The fixture that application teams use, on real brokers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_chaos.api import AsyncCluster, ClusterError, ScenarioError

pytestmark = pytest.mark.cluster

TESTS = """
from confluent_kafka import Producer

def send(cluster, topic):
    errors = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    producer.produce(topic, b"order", on_delivery=lambda error, _: errors.append(error))
    return producer, errors

def test_leader(kafka_cluster):
    topic = kafka_cluster.topic("orders")
    dead = kafka_cluster.kill_leader(topic, 0)
    assert kafka_cluster.leader(topic) not in (-1, dead)
    producer, errors = send(kafka_cluster, topic)
    producer.flush(60)
    assert errors == [None]

def test_all_are_back_and_names_are_apart(kafka_cluster):
    assert {broker.state for broker in kafka_cluster.status().brokers} == {"running"}
    assert kafka_cluster.topic("orders").endswith("-orders")

def test_held(kafka_cluster):
    topic = kafka_cluster.topic("held")
    with kafka_cluster.hold(kafka_cluster.leader(topic)):
        producer, errors = send(kafka_cluster, topic)
        assert producer.flush(1) == 1
        assert errors == []
    producer.flush(60)
    assert errors == [None]

def test_session_pause_and_fault(kafka_cluster):
    kafka_cluster.expire_session(1)
    kafka_cluster.pause(2)
    assert kafka_cluster.status().broker(2).state == "paused"
    kafka_cluster.resume(2)
    with kafka_cluster.fault("pause", target="1", duration_s=30) as effect:
        assert effect.verdict.name == "CONFIRMED"
    with kafka_cluster.fault("isolate", target="2") as effect:
        assert effect.verdict.name == "CONFIRMED"

def test_that_fails(kafka_cluster):
    kafka_cluster.topic("seen")
    raise AssertionError("on purpose")
"""


def test_one_cluster_serves_all_tests_and_a_failure_shows_what_its_brokers_did(tmp_path: Path) -> None:
    (tmp_path / "test_app.py").write_text(TESTS, encoding="utf-8")
    options = ["-q", "-p", "kafka_chaos.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:randomly"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ))
    assert "1 failed, 4 passed" in done.stdout, done.stdout[-4000:]
    section = done.stdout.partition("state changes of kafka_cluster")[2]
    assert "partition_state  topic=test_that_fails-5-seen" in section


async def test_a_cluster_says_what_is_wrong_with_what_it_is_asked(tmp_path: Path) -> None:
    async with AsyncCluster(brokers=1, folder=tmp_path / "cluster") as cluster:
        await cluster.create_topic("orders")
        with pytest.raises(ClusterError, match="there is a topic orders already"):
            await cluster.create_topic("orders")
        with pytest.raises(ClusterError, match="3 replicas do not fit on 1 brokers"):
            await cluster.create_topic("other", replication_factor=3)
        with pytest.raises(ClusterError, match="there is no partition gone-0"):
            await cluster.kill_leader("gone")
        with pytest.raises(ScenarioError, match=r"clock takes clock: start the cluster with needs=\['clock'\]"):
            async with cluster.fault("clock"):
                pass
        assert await cluster.leader("orders") == 0
        assert "become_leader" in {line["ev"] for line in await cluster.state_changes()}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        pytest.param({"system": "kafak"}, "unknown system 'kafak'", id="no such system"),
        pytest.param({"needs": ["wings"]}, "unknown capability 'wings'", id="no such capability"),
        pytest.param({"driver": "simulated"}, "keeps no cluster", id="a driver without a lasting cluster"),
    ],
)
async def test_what_cannot_be_started_is_refused(wanted: dict[str, object], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        async with AsyncCluster(**wanted):  # type: ignore[arg-type]
            pass

"""The fixture that application teams use, and the same from Python alone, on real brokers."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from harness.cluster.systems.system import system_named
from kafka_chaos.api import (
    AsyncCluster,
    ClusterError,
    FaultVerdict,
    ScenarioError,
    SystemVerdict,
    judge_async,
    run_async,
)
from kafka_chaos.recorder import Recorder
from kafka_chaos.recorder.confluent import Consumer, Producer

pytestmark = pytest.mark.cluster
Value = TypeVar("Value")

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


ON_KAFKA = """
import pytest
from confluent_kafka import Producer
from kafka_chaos.api import ClusterError

pytestmark = pytest.mark.kafka_cluster(system="{system}")

def test_broken_and_healed(kafka_cluster):
    topic = kafka_cluster.topic("orders")
    dead = kafka_cluster.kill_leader(topic)
    assert kafka_cluster.leader(topic) not in (-1, dead)

def test_links(kafka_cluster):
    assert {{broker.state for broker in kafka_cluster.status().brokers}} == {{"running"}}
    with kafka_cluster.hold(1), kafka_cluster.fault("isolate", target="2") as effect:
        assert effect.verdict.name == "CONFIRMED"

def test_session(kafka_cluster):
    if {has_zookeeper}:
        kafka_cluster.expire_session(1)
    else:
        with pytest.raises(ClusterError, match="has no ZooKeeper, and so no sessions"):
            kafka_cluster.expire_session(1)
        with pytest.raises(ClusterError, match="ZooKeeper"), kafka_cluster.fault("expire-session"):
            pass

@pytest.fixture
def orders(kafka_cluster):
    topic = kafka_cluster.topic("orders")
    producer = Producer({{"bootstrap.servers": kafka_cluster.bootstrap_servers}})
    producer.produce(topic, b"order")
    assert producer.flush(60) == 0, "a leader that acknowledges has logged that it leads"
    raise RuntimeError("on purpose")

def test_whose_fixture_fails(orders):
    pass
"""


def pytest_in(folder: Path, tests: str) -> str:
    """Return what pytest says of a file of tests."""
    (folder / "test_app.py").write_text(tests, encoding="utf-8")
    options = ["-q", "-p", "kafka_chaos.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:randomly"]
    command = [sys.executable, "-m", "pytest", *options, str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=dict(os.environ))
    return done.stdout


@pytest.mark.rotating(1)
@pytest.mark.parametrize("system", ["kafka:3.9.1", "kafka:4.4.0"])
def test_the_original_is_disturbed_in_the_same_way(system: str, tmp_path: Path) -> None:
    kafka = system_named(system)
    if reason := kafka.lacks():
        pytest.skip(reason)
    shown = pytest_in(tmp_path, ON_KAFKA.format(system=system, has_zookeeper=kafka.zookeeper))
    assert "3 passed, 1 error" in shown, shown[-4000:]
    section = shown.partition("state changes of kafka_cluster")[2]
    assert "become_leader  topic=test_whose_fixture_fails-4-orders" in section


MARKED = """
import pytest

@pytest.mark.kafka_cluster("kafka:4.4.0")
def test_value_without_name(kafka_cluster): ...

@pytest.mark.kafka_cluster(broker=3)
def test_name_that_it_does_not_take(kafka_cluster): ...

@pytest.mark.kafka_cluster(system="kafak")
def test_system(kafka_cluster): ...
"""


def test_a_mark_that_cannot_be_met_is_one_sentence_and_no_traceback(tmp_path: Path) -> None:
    shown = pytest_in(tmp_path, MARKED)
    assert "3 errors" in shown, shown
    takes = "the mark kafka_cluster takes system=, brokers=, properties=, needs=, not"
    for sentence in (f"{takes} 'kafka:4.4.0'", f"{takes} broker", "no cluster: unknown system 'kafak'"):
        assert f"\n{sentence}" in shown, "no line of the harness stands before it"


def test_one_cluster_serves_all_tests_and_a_failure_shows_what_its_brokers_did(tmp_path: Path) -> None:
    shown = pytest_in(tmp_path, TESTS)
    assert "1 failed, 4 passed" in shown, shown[-4000:]
    section = shown.partition("state changes of kafka_cluster")[2]
    assert "become_leader  topic=test_that_fails-5-seen" in section


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


async def test_a_cluster_is_disturbed_recorded_and_judged_without_blocking_the_loop(tmp_path: Path) -> None:
    async with AsyncCluster(brokers=3) as cluster:
        await cluster.create_topic("orders")
        servers = {"bootstrap.servers": cluster.bootstrap_servers}

        def send(recorder: Recorder, number: int) -> None:
            producer = Producer({**servers, "acks": "all", "enable.idempotence": True}, recorder=recorder)
            producer.produce("orders", f"order {number}".encode())
            producer.flush(60)
            producer.close()

        def read(recorder: Recorder) -> None:
            consumer = Consumer({**servers, "group.id": "a", "auto.offset.reset": "earliest"}, recorder=recorder)
            consumer.subscribe(["orders"])
            consumer.read_to_the_end()
            consumer.close()

        with Recorder(tmp_path / "history") as recorder:
            await asyncio.to_thread(send, recorder, 1)
            await cluster.start(await cluster.kill_leader("orders"))
            async with cluster.fault("isolate", target="leader(orders,0)", duration_s=30) as effect:
                await asyncio.to_thread(send, recorder, 2)
            await cluster.heal()
            await asyncio.to_thread(send, recorder, 3)
            await asyncio.to_thread(read, recorder)
    assert effect.verdict is FaultVerdict.CONFIRMED
    result, ticks = await beside_ticks(judge_async(tmp_path / "history", settings={"min_insync_replicas": 1}))
    answers = {each.check: each.verdict for each in result.checks}
    assert answers["lost-write"] is SystemVerdict.PASS, result.checks
    assert ticks > 1


async def test_a_scenario_is_carried_out_without_blocking_the_loop(tmp_path: Path) -> None:
    outcome, ticks = await beside_ticks(run_async("smoke", seed=7, runs=tmp_path))
    assert outcome.result.verdicts.system is SystemVerdict.PASS
    assert ticks > 1


async def beside_ticks(work: Coroutine[Any, Any, Value]) -> tuple[Value, int]:
    """Return what work comes to, and how often the loop turned meanwhile."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    beside = asyncio.create_task(tick())
    try:
        return await work, ticks
    finally:
        beside.cancel()

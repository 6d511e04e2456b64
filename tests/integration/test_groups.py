"""Third-party members of groups, against a cluster as `chaos cluster up` starts it."""

import asyncio
import json
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer
from kafka import TopicPartition as Place

from harness.kafka.placement import partition_of
from harness.values import OFFSETS_TOPIC
from tests.integration.conftest import chaos_cluster
from tests.kafka_tools import kafka_tool, needs_kafka, payloads, takes_turns

pytestmark = pytest.mark.cluster

KCAT = shutil.which("kcat")
PARTITIONS, RECORDS = 4, 40
PATIENCE_S = 120
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture
def topic(cluster: dict[str, Any]) -> str:
    """A fresh topic with some records in each of its partitions."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    servers = {"bootstrap.servers": cluster["bootstrap_servers"]}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic(name, PARTITIONS, 3)])[name].result(120)
    producer = Producer({**servers, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(name, f"value-{number}", partition=number % PARTITIONS)
    assert producer.flush(120) == 0
    return name


@dataclass
class Member:
    """A consumer that is polled during every wait."""

    consumer: Consumer
    read: list[str] = field(default_factory=list)
    assigned: set[int] = field(default_factory=set)

    def poll(self) -> None:
        message = self.consumer.poll(0.05)
        if message is not None and message.error() is None:
            self.read.append((message.value() or b"").decode())
        self.assigned = {each.partition for each in self.consumer.assignment()}


@contextmanager
def member(servers: str, topic: str, group: str, **settings: Any) -> Iterator[Member]:
    """A member that subscribes to the topic until the end of the block, and leaves then."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            **settings,
        }
    )
    consumer.subscribe([topic])
    try:
        yield Member(consumer)
    finally:
        consumer.close()


def until(holds: Callable[[], bool], *members: Member) -> None:
    """Poll members until something holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, [(each.assigned, len(each.read)) for each in members]
        for each in members:
            each.poll()


EVERYTHING = set(range(PARTITIONS))


def share(first: Member, second: Member) -> bool:
    """Return whether two members have half of all partitions each, and together all."""
    halves = len(first.assigned) == len(second.assigned) == PARTITIONS // 2
    return halves and first.assigned | second.assigned == EVERYTHING


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_two_members_share_a_topic_and_one_takes_over_when_the_other_leaves(
    cluster: dict[str, Any], topic: str, assignor: str
) -> None:
    settings = {"partition.assignment.strategy": assignor}
    with member(cluster["bootstrap_servers"], topic, topic, **settings) as first:
        until(lambda: first.assigned == EVERYTHING and len(first.read) == RECORDS, first)
        first.consumer.commit(asynchronous=False)
        with member(cluster["bootstrap_servers"], topic, topic, **settings) as second:
            until(lambda: share(first, second), first, second)
        until(lambda: first.assigned == EVERYTHING, first)
        assert sorted(first.read) == sorted(f"value-{number}" for number in range(RECORDS))
        assert second.read == []


def test_a_static_member_that_comes_back_keeps_its_partitions_and_its_double_is_fenced(
    cluster: dict[str, Any], topic: str
) -> None:
    servers, static = cluster["bootstrap_servers"], {"group.instance.id": "one"}
    with member(servers, topic, topic) as other, member(servers, topic, topic, **static) as before:
        until(lambda: share(before, other), before, other)
        with member(servers, topic, topic, **static) as after:
            until(lambda: len(after.assigned) == PARTITIONS // 2, after, other)
            assert after.assigned == before.assigned
            position = TopicPartition(topic, min(before.assigned), 1)
            with pytest.raises(KafkaException) as fenced:
                before.consumer.commit(offsets=[position], asynchronous=False)
            assert fenced.value.args[0].code() in (KafkaError.FENCED_INSTANCE_ID, KafkaError._FATAL)


def test_a_group_goes_on_when_its_coordinator_is_killed(cluster: dict[str, Any], topic: str) -> None:
    servers = cluster["bootstrap_servers"]
    with member(servers, topic, topic) as first, member(servers, topic, topic) as second:
        until(lambda: share(first, second), first, second)
        # what the first one read before the second one came, and had not committed, is read twice
        until(lambda: len({*first.read, *second.read}) == RECORDS, first, second)
        first.consumer.commit(asynchronous=False)
        admin = AdminClient({"bootstrap.servers": servers})
        shards = admin.list_topics(OFFSETS_TOPIC, timeout=120).topics[OFFSETS_TOPIC].partitions
        coordinator = shards[partition_of(topic, len(shards))].leader
        chaos_cluster("kill", str(coordinator), "--dir", cluster["root"])
        try:
            producer = Producer({"bootstrap.servers": servers, "acks": "all"})
            for number in range(RECORDS):
                producer.produce(topic, f"later-{number}", partition=number % PARTITIONS)
            assert producer.flush(120) == 0
            later = {f"later-{number}" for number in range(RECORDS)}
            until(lambda: later <= {*first.read, *second.read} and share(first, second), first, second)
            position = TopicPartition(topic, min(first.assigned), 7)
            first.consumer.commit(offsets=[position], asynchronous=False)
            assert [each.offset for each in second.consumer.committed([position], timeout=120)] == [7]
        finally:
            chaos_cluster("start", str(coordinator), "--dir", cluster["root"])
            until(lambda: len(admin.list_topics(timeout=120).brokers) == len(cluster["brokers"]), first, second)


@pytest.mark.skipif(KCAT is None, reason="no kcat here (Debian package kcat): that client is not tried")
def test_kcat_reads_as_a_member_of_a_group(cluster: dict[str, Any], topic: str) -> None:
    kcat = [str(KCAT), "-b", cluster["bootstrap_servers"], "-G", topic, "-c", str(RECORDS), "-q"]
    earliest = ["-X", "auto.offset.reset=earliest", topic]
    read = subprocess.run([*kcat, *earliest], capture_output=True, text=True, timeout=300, check=True)
    assert sorted(read.stdout.splitlines()) == sorted(f"value-{number}" for number in range(RECORDS))


async def test_aiokafka_subscribes(cluster: dict[str, Any], topic: str) -> None:
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=cluster["bootstrap_servers"], group_id=topic, auto_offset_reset="earliest"
    )
    async with asyncio.timeout(PATIENCE_S), consumer:
        read = [((await consumer.getone()).value or b"").decode() for _ in range(RECORDS)]
        await consumer.commit()
    assert sorted(read) == sorted(f"value-{number}" for number in range(RECORDS))


async def test_two_members_of_aiokafka_share_a_topic_and_one_takes_over_when_the_other_leaves(
    cluster: dict[str, Any], topic: str
) -> None:
    def subscribed() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            topic,
            bootstrap_servers=cluster["bootstrap_servers"],
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
        )

    def of(consumer: AIOKafkaConsumer) -> set[int]:
        return {each.partition for each in consumer.assignment()}

    async with asyncio.timeout(PATIENCE_S), subscribed() as first:
        read = [((await first.getone()).value or b"").decode() for _ in range(RECORDS)]
        await first.commit()
        async with subscribed() as second:
            while not len(of(first)) == len(of(second)) == PARTITIONS // 2:
                assert not await first.getmany(timeout_ms=100)
                assert not await second.getmany(timeout_ms=100)
            assert of(first) | of(second) == EVERYTHING
        while of(first) != EVERYTHING:
            assert not await first.getmany(timeout_ms=100)
    assert sorted(read) == sorted(f"value-{number}" for number in range(RECORDS))


def test_kafka_python_subscribes(cluster: dict[str, Any], topic: str) -> None:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=cluster["bootstrap_servers"],
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=PATIENCE_S * 1000,
    )
    try:
        read = [message.value.decode() for message in islice(consumer, RECORDS)]
        consumer.commit()
        committed = [consumer.committed(Place(topic, partition)) for partition in range(PARTITIONS)]
    finally:
        consumer.close()
    assert sorted(read) == sorted(f"value-{number}" for number in range(RECORDS))
    assert committed == [RECORDS // PARTITIONS] * PARTITIONS


@needs_kafka
@takes_turns
@pytest.mark.parametrize("assignor", ["RangeAssignor", "CooperativeStickyAssignor"])
def test_kafkas_verifiable_consumer_reads_and_commits(cluster: dict[str, Any], topic: str, assignor: str) -> None:
    wanted = ("--topic", topic, "--group-id", topic, "--max-messages", str(RECORDS), "--reset-policy", "earliest")
    strategy = ("--assignment-strategy", f"org.apache.kafka.clients.consumer.{assignor}")
    servers = ("--bootstrap-server", cluster["bootstrap_servers"])
    output = kafka_tool("org.apache.kafka.tools.VerifiableConsumer", *servers, *wanted, *strategy)
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assigned = {
        each["partition"] for line in lines if line["name"] == "partitions_assigned" for each in line["partitions"]
    }
    assert assigned == EVERYTHING
    assert sum(line["count"] for line in lines if line["name"] == "records_consumed") == RECORDS
    committed = [line for line in lines if line["name"] == "offsets_committed"]
    assert committed
    assert all(line["success"] for line in committed)
    assert lines[-1]["name"] == "shutdown_complete"


@needs_kafka
@takes_turns
def test_kafkas_own_tools_consume_describe_reset_and_delete_a_group(cluster: dict[str, Any], topic: str) -> None:
    servers = ("--bootstrap-server", cluster["bootstrap_servers"])
    reading = ("--topic", topic, "--group", topic, "--from-beginning", "--max-messages", str(RECORDS))
    read = kafka_tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *servers, *reading, "--timeout-ms", "60000")
    assert sorted(read.splitlines()) == sorted(f"value-{number}" for number in range(RECORDS))
    this = (*servers, "--group", topic)
    assert topic in kafka_tool(GROUPS, *servers, "--list", "--state", "Empty")
    described = kafka_tool(GROUPS, *this, "--describe")
    assert [line.split()[3:6] for line in described.splitlines() if line.startswith(topic)] == [["10", "10", "0"]] * 4
    with member(cluster["bootstrap_servers"], topic, topic) as one:
        until(lambda: one.assigned == EVERYTHING, one)
        assert "rdkafka" in kafka_tool(GROUPS, *this, "--describe", "--members", "--verbose")
        assert "Stable" in kafka_tool(GROUPS, *this, "--describe", "--state")
    reset = kafka_tool(GROUPS, *this, "--reset-offsets", "--to-earliest", "--topic", topic, "--execute")
    assert " ".join(reset.split()).count(f"{topic} {topic} ") == PARTITIONS
    described = kafka_tool(GROUPS, *this, "--describe")
    assert [line.split()[3:6] for line in described.splitlines() if line.startswith(topic)] == [["0", "10", "10"]] * 4
    kafka_tool(GROUPS, *this, "--delete-offsets", "--topic", topic)
    with member(cluster["bootstrap_servers"], topic, topic) as one:
        until(lambda: one.assigned == EVERYTHING, one)
    assert "successful" in kafka_tool(GROUPS, *this, "--delete")
    assert topic not in kafka_tool(GROUPS, *servers, "--list")


@needs_kafka
@takes_turns
def test_kafka_reads_what_is_stored_of_a_group(cluster: dict[str, Any], topic: str) -> None:
    with member(cluster["bootstrap_servers"], topic, topic, **{"group.instance.id": "one"}) as one:
        until(lambda: one.assigned == EVERYTHING, one)
        admin = AdminClient({"bootstrap.servers": cluster["bootstrap_servers"]})
        shards = admin.list_topics(OFFSETS_TOPIC, timeout=120).topics[OFFSETS_TOPIC].partitions
        shard = f"{OFFSETS_TOPIC}-{partition_of(topic, len(shards))}"
        segment = next(Path(cluster["brokers"][0]["log_dir"], shard).glob("*.log"))
        dumped = kafka_tool("kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", str(segment))
    about_it = [line for line in dumped.splitlines() if f'"group":"{topic}"' in line]
    stored = json.loads(payloads(about_it[-1])[0])
    assert stored["version"] == "3"
    group, (only,) = stored["data"], stored["data"]["members"]
    assert (group["protocolType"], group["generation"], group["protocol"]) == ("consumer", 1, "range")
    assert (group["leader"], only["groupInstanceId"], only["sessionTimeout"]) == (only["memberId"], "one", 6000)

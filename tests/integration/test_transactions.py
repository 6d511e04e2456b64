"""Third-party transactional producers, against a cluster as `chaos cluster up` starts it."""

import asyncio
import json
import re
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer

from harness.kafka.placement import partition_of
from harness.values import TRANSACTIONS_TOPIC
from tests.integration.conftest import chaos_cluster
from tests.kafka_tools import dumps, kafka_tool, needs_kafka, takes_turns

pytestmark = pytest.mark.cluster

PARTITIONS, RECORDS, PATIENCE_S = 3, 10, 120
TOOLS = "org.apache.kafka.tools"


@pytest.fixture
def topic(cluster: dict[str, Any]) -> str:
    """A fresh topic."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster["bootstrap_servers"]})
    admin.create_topics([NewTopic(name, PARTITIONS, 3)])[name].result(PATIENCE_S)
    return name


def transactional(cluster: dict[str, Any], name: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": cluster["bootstrap_servers"],
            "transactional.id": name,
            "transaction.timeout.ms": 600_000,  # longer than five JVMs take on a busy machine
        }
    )
    producer.init_transactions(PATIENCE_S)
    return producer


def produce(producer: Producer, topic: str, prefix: str) -> list[str]:
    values = [f"{prefix}-{number}" for number in range(RECORDS)]
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    return values


def read(cluster: dict[str, Any], topic: str, *, committed: bool = True) -> list[str]:
    """Return everything that a consumer of this isolation level gets, sorted."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster["bootstrap_servers"],
            "group.id": uuid.uuid4().hex,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    values: list[str] = []
    ended: set[int | None] = set()
    try:
        while len(ended) < PARTITIONS:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"{sorted(values)} and no end"
            if message.error() is None:
                values.append((message.value() or b"").decode())
            else:
                ended.add(message.partition())
    finally:
        consumer.close()
    return sorted(values)


def all_read(cluster: dict[str, Any], topic: str, count: int) -> list[str]:
    """Return what is committed, once it is so much: a commit is answered before its markers are written."""
    deadline = time.monotonic() + PATIENCE_S
    while len(values := read(cluster, topic)) < count:
        assert time.monotonic() < deadline, values
    return values


def position(cluster: dict[str, Any], group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": cluster["bootstrap_servers"], "group.id": group})
    try:
        (known,) = consumer.committed([TopicPartition(topic, 0)], PATIENCE_S)
        return int(known.offset)
    finally:
        consumer.close()


def test_librdkafka_commits_and_aborts_records_and_offsets(cluster: dict[str, Any], topic: str) -> None:
    producer = transactional(cluster, topic)
    consumer = Consumer({"bootstrap.servers": cluster["bootstrap_servers"], "group.id": topic})
    expected = []
    for number, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        values = produce(producer, topic, f"{number}")
        assert producer.flush(PATIENCE_S) == 0  # an abort would drop what is not sent yet
        place = TopicPartition(topic, 0, 100 + number)
        producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), PATIENCE_S)
        if commit:
            producer.commit_transaction(PATIENCE_S)
            expected += values
        else:
            producer.abort_transaction(PATIENCE_S)
        assert position(cluster, topic, topic) == (100 + number if commit else 100)
    consumer.close()
    assert all_read(cluster, topic, len(expected)) == sorted(expected)
    assert len(read(cluster, topic, committed=False)) == 3 * RECORDS
    (listed,) = [
        each
        for each in json.loads(chaos_cluster("transactions", "--dir", cluster["root"], "--json"))
        if each["transactional_id"] == topic
    ]
    assert (listed["state"], listed["partitions"]) == ("CompleteCommit", [])
    lines = chaos_cluster("transactions", "--dir", cluster["root"]).splitlines()
    assert any(line.startswith(f"{topic}  CompleteCommit  coordinator {listed['coordinator']}") for line in lines)


def test_a_second_producer_fences_the_first(cluster: dict[str, Any], topic: str) -> None:
    first = transactional(cluster, topic)
    first.begin_transaction()
    produce(first, topic, "lost")
    first.flush(PATIENCE_S)
    second = transactional(cluster, topic)
    second.begin_transaction()
    expected = produce(second, topic, "kept")
    second.commit_transaction(PATIENCE_S)
    with pytest.raises(KafkaException) as fenced:
        first.commit_transaction(PATIENCE_S)
    assert fenced.value.args[0].fatal()
    assert all_read(cluster, topic, len(expected)) == sorted(expected)


def test_the_kill_of_a_coordinator_loses_and_tears_nothing(cluster: dict[str, Any], topic: str) -> None:
    producer = transactional(cluster, topic)
    expected = []
    admin = AdminClient({"bootstrap.servers": cluster["bootstrap_servers"]})
    for number in range(4):
        producer.begin_transaction()
        values = produce(producer, topic, f"{number}")
        producer.flush(PATIENCE_S)
        partitions = admin.list_topics(TRANSACTIONS_TOPIC, timeout=PATIENCE_S).topics[TRANSACTIONS_TOPIC].partitions
        coordinator = partitions[partition_of(topic, len(partitions))].leader
        if number % 2:
            chaos_cluster("kill", str(coordinator), "--dir", cluster["root"])
            _retried(lambda: producer.commit_transaction(PATIENCE_S))
            chaos_cluster("start", str(coordinator), "--dir", cluster["root"])
        else:
            producer.commit_transaction(PATIENCE_S)
        expected += values
    assert all_read(cluster, topic, len(expected)) == sorted(expected)


def _retried(work: Callable[[], object]) -> None:
    """Do something again for as long as the client says that it may succeed."""
    for _ in range(10):
        try:
            work()
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return
    pytest.fail("not within ten tries")


async def _with_aiokafka(servers: str, topic: str) -> list[str]:
    async with asyncio.timeout(PATIENCE_S):
        producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=f"aio-{topic}")
        await producer.start()
        try:
            async with producer.transaction():
                for number in range(RECORDS):
                    await producer.send(topic, f"aio-{number}".encode(), partition=number % PARTITIONS)
                await producer.send_offsets_to_transaction({AioPartition(topic, 0): 55}, topic)
            await producer.begin_transaction()
            await producer.send(topic, b"lost", partition=0)
            await producer.abort_transaction()
        finally:
            await producer.stop()
        places = [AioPartition(topic, number) for number in range(PARTITIONS)]
        consumer = AIOKafkaConsumer(
            bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            consumer.assign(places)
            values: list[str] = []
            while len(values) < RECORDS:
                values += [(each.value or b"").decode() for each in [await consumer.getone()]]
        finally:
            await consumer.stop()
        return values


def test_aiokafka_commits_and_aborts(cluster: dict[str, Any], topic: str) -> None:
    values = asyncio.run(_with_aiokafka(cluster["bootstrap_servers"], topic))
    assert sorted(values) == sorted(f"aio-{number}" for number in range(RECORDS))
    assert position(cluster, topic, topic) == 55


def test_kafka_python_commits_and_aborts(cluster: dict[str, Any], topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster["bootstrap_servers"], transactional_id=f"py-{topic}")
    producer.init_transactions()
    for commit in (True, False):
        producer.begin_transaction()
        for number in range(RECORDS):
            producer.send(topic, f"{commit}-{number}".encode(), partition=number % PARTITIONS)
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()
    assert read(cluster, topic) == sorted(f"True-{number}" for number in range(RECORDS))


@needs_kafka
def test_kafkas_own_producer_and_tools(cluster: dict[str, Any], topic: str) -> None:
    servers = cluster["bootstrap_servers"]
    options = ["--topic", topic, "--num-records", "100", "--record-size", "10", "--throughput", "-1"]
    wanted = ["--transactional-id", topic, "--transaction-duration-ms", "100", "--producer-props"]
    answer = kafka_tool(f"{TOOLS}.ProducerPerformance", *options, *wanted, f"bootstrap.servers={servers}")
    assert "100 records sent" in answer
    listed = kafka_tool(f"{TOOLS}.TransactionsCommand", "--bootstrap-server", servers, "list")
    assert any(line.split()[0] == topic and line.split()[-1] == "CompleteCommit" for line in listed.splitlines())
    described = kafka_tool(
        f"{TOOLS}.TransactionsCommand", "--bootstrap-server", servers, "describe", "--transactional-id", topic
    )
    assert "CompleteCommit" in described
    assert len(all_read(cluster, topic, 100)) == 100


@needs_kafka
@takes_turns
def test_kafkas_tools_find_describe_abort_and_decode(cluster: dict[str, Any], topic: str) -> None:
    """`kafka-transactions.sh` on an open transaction, whose records in partition 0 an administrator then aborts."""
    servers = cluster["bootstrap_servers"]

    def transactions(*arguments: str) -> list[str]:
        return kafka_tool(f"{TOOLS}.TransactionsCommand", "--bootstrap-server", servers, *arguments).splitlines()

    producer = transactional(cluster, topic)
    producer.begin_transaction()
    produce(producer, topic, "open")
    producer.flush(PATIENCE_S)
    open_ = transactions("describe", "--transactional-id", topic)
    assert all(f"{topic}-{number}" in open_[-1] for number in range(PARTITIONS))
    assert "Ongoing" in open_[-1]
    partition = ("--topic", topic, "--partition", "0")
    (state,) = transactions("describe-producers", *partition)[1:]
    assert state.split()[-1] == "0"
    admin = AdminClient({"bootstrap.servers": servers})
    leader = admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions[0].leader
    hanging = transactions("find-hanging", "--broker-id", str(leader), "--max-transaction-timeout", "0")
    assert not [line for line in hanging if line.startswith(topic)]
    transactions("abort", *partition, "--start-offset", "0")
    (state,) = transactions("describe-producers", *partition)[1:]
    assert state.split()[-1] == "None"
    producer.abort_transaction(PATIENCE_S)
    assert read(cluster, topic) == []

    folders = [Path(broker["log_dir"]) for broker in cluster["brokers"]]
    segments = [file for folder in folders for file in folder.glob(f"{TRANSACTIONS_TOPIC}-*/*.log")]
    written = [file for file in segments if file.stat().st_size]
    replicas = [
        [line for line in lines.splitlines() if topic in line]
        for lines in dumps(written, "--transaction-log-decoder").values()
    ]
    stored = [states for states in replicas if states]
    assert len(stored) == 3
    for states in stored:
        in_order = [re.findall(r"state[=:](\w+)", line)[-1] for line in states if "state" in line]
        assert in_order == ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"]

"""Third-party clients, against a cluster as `chaos cluster up` starts it."""

import asyncio
import json
import shutil
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, NewTopic

from harness.broker.log.batch import iter_batches
from harness.cluster.systems.kafka.jars import class_path, lacking
from harness.cluster.systems.kafka.releases import RELEASES
from tests.kafka_tools import dumps, kafka_tool, needs_kafka, payloads, takes_turns

pytestmark = pytest.mark.cluster

KCAT = shutil.which("kcat")
TOOLS = "org.apache.kafka.tools"
REASSIGN = f"{TOOLS}.reassign.ReassignPartitionsCommand"


@pytest.fixture
def topic(cluster: dict[str, Any]) -> str:
    """A fresh topic with two partitions and three replicas each."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster["bootstrap_servers"]})
    admin.create_topics([NewTopic(name, num_partitions=2, replication_factor=3)])[name].result(120)
    return name


@pytest.mark.skipif(KCAT is None, reason="no kcat here (Debian package kcat): that client is not tried")
def test_kcat_writes_and_reads(cluster: dict[str, Any], topic: str) -> None:
    kcat = [str(KCAT), "-b", cluster["bootstrap_servers"], "-t", topic]
    sent = "".join(f"value-{number}\n" for number in range(500))
    subprocess.run([*kcat, "-P", "-p", "1", "-X", "acks=all"], input=sent, text=True, timeout=300, check=True)
    read = subprocess.run([*kcat, "-C", "-p", "1", "-e", "-q"], capture_output=True, text=True, timeout=300, check=True)
    assert read.stdout == sent


def test_confluent_kafka_writes_reads_and_commits(cluster: dict[str, Any], topic: str) -> None:
    servers = cluster["bootstrap_servers"]
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "compression.type": "lz4"})
    for number in range(500):
        producer.produce(topic, f"value-{number}", partition=0)
    assert producer.flush(120) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, "enable.auto.commit": False})
    try:
        consumer.assign([Position(topic, 0, 0)])
        read = [(message.value() or b"").decode() for message in consumer.consume(500, timeout=120)]
        assert read == [f"value-{number}" for number in range(500)]
        consumer.commit(offsets=[Position(topic, 0, 321)], asynchronous=False)
        assert [position.offset for position in consumer.committed([Position(topic, 0)], timeout=120)] == [321]
    finally:
        consumer.close()


def test_confluent_kafka_writes_with_idempotence(cluster: dict[str, Any], topic: str) -> None:
    servers = cluster["bootstrap_servers"]
    delivered: list[int | None] = []
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 0})
    for number in range(500):
        producer.produce(
            topic, f"value-{number}", partition=0, on_delivery=lambda error, message: delivered.append(message.offset())
        )
        producer.poll(0)
    assert producer.flush(120) == 0
    assert delivered == list(range(500))


@needs_kafka
def test_kafkas_console_producer_writes_with_idempotence_as_it_does_by_default(
    cluster: dict[str, Any], topic: str
) -> None:
    sent = "".join(f"value-{number}\n" for number in range(200))
    servers = ("--bootstrap-server", cluster["bootstrap_servers"])
    kafka_tool("kafka.tools.ConsoleProducer", *servers, "--topic", topic, sent=sent)
    consumer = Consumer({"bootstrap.servers": cluster["bootstrap_servers"], "group.id": topic})
    try:
        consumer.assign([Position(topic, partition, 0) for partition in range(2)])
        read = [(message.value() or b"").decode() for message in consumer.consume(200, timeout=120)]
    finally:
        consumer.close()
    assert sorted(read) == sorted(sent.splitlines())
    segments = [Path(cluster["brokers"][0]["log_dir"], f"{topic}-{n}", f"{0:020d}.log") for n in range(2)]
    written = [header for segment in segments for header, _ in iter_batches(segment.read_bytes())]
    assert written
    assert all(header.producer_id >= 0 and header.base_sequence >= 0 for header in written)


async def test_aiokafka_writes_and_reads_an_assigned_partition(cluster: dict[str, Any], topic: str) -> None:
    servers = cluster["bootstrap_servers"]
    async with AIOKafkaProducer(bootstrap_servers=servers, acks="all") as producer:
        for number in range(500):
            await producer.send(topic, f"value-{number}".encode(), partition=0)
        await producer.flush()
    consumer = AIOKafkaConsumer(bootstrap_servers=servers)
    consumer.assign([TopicPartition(topic, 0)])
    async with consumer, asyncio.timeout(120):
        await consumer.seek_to_beginning()
        read = [((await consumer.getone()).value or b"").decode() for _ in range(500)]
    assert read == [f"value-{number}" for number in range(500)]


@needs_kafka
def test_kafkas_own_tool_reads_a_segment_of_a_live_broker(cluster: dict[str, Any], topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster["bootstrap_servers"], "acks": "all"})
    for number in range(300):
        producer.produce(topic, f"value-{number}", partition=0)
    assert producer.flush(120) == 0
    dumped = dumps(Path(broker["log_dir"], f"{topic}-0", f"{0:020d}.log") for broker in cluster["brokers"])
    assert len(dumped) == 3
    for dump in dumped.values():
        assert payloads(dump) == [f"value-{number}" for number in range(300)]
        assert "isvalid: false" not in dump


@needs_kafka
@takes_turns
def test_kafkas_own_tools_reassign_and_elect(cluster: dict[str, Any], tmp_path: Path) -> None:
    servers = ("--bootstrap-server", cluster["bootstrap_servers"])
    name = f"topic-{uuid.uuid4().hex[:8]}"
    kafka_tool(f"{TOOLS}.TopicCommand", *servers, "--create", "--topic", name, "--replica-assignment", "0:1")
    wanted = tmp_path / "wanted.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": [2, 0]}]}))
    arguments = (*servers, "--reassignment-json-file", str(wanted))
    begun = kafka_tool(REASSIGN, *arguments, "--execute")
    assert f"Successfully started partition reassignment for {name}-0" in begun
    deadline = time.monotonic() + 300
    while "is completed" not in (seen := kafka_tool(REASSIGN, *arguments, "--verify", "--preserve-throttles")):
        assert time.monotonic() < deadline, seen
    assert "No partition reassignments found." in kafka_tool(REASSIGN, *servers, "--list")
    election = ("--election-type", "PREFERRED", "--topic", name, "--partition", "0")
    assert "Successfully completed leader election" in kafka_tool(f"{TOOLS}.LeaderElectionCommand", *servers, *election)
    assert "Valid replica already elected" in kafka_tool(f"{TOOLS}.LeaderElectionCommand", *servers, *election)


OLD = RELEASES["0.10.2.2"]
LOG4J = """log4j.rootLogger=WARN, c
log4j.appender.c=org.apache.log4j.ConsoleAppender
log4j.appender.c.layout=org.apache.log4j.PatternLayout
log4j.appender.c.layout.ConversionPattern=%c %m%n
"""


@pytest.mark.skipif(bool(lacking(OLD)), reason=lacking(OLD))
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param(
            ("kafka.tools.ConsoleProducer", "--broker-list", "SERVERS", "--request-required-acks", "1"),
            "UnsupportedVersionException: The version of API is not supported.",
            id="a producer fails at once: its version is not supported",
        ),
        pytest.param(
            ("kafka.tools.ConsoleConsumer", "--new-consumer", "--bootstrap-server", "SERVERS", "--from-beginning"),
            "Unexpected error code 35 while fetching data",
            id="a consumer fails at once, with the number of the error",
        ),
    ],
)
def test_the_java_client_0_10_is_refused_with_an_error(
    cluster: dict[str, Any], topic: str, tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    (tmp_path / "log4j.properties").write_text(LOG4J)
    java = ["java", f"-Dlog4j.configuration=file:{tmp_path}/log4j.properties", "-cp", class_path(OLD)]
    words = [cluster["bootstrap_servers"] if word == "SERVERS" else word for word in arguments]
    done = subprocess.run(
        [*java, *words, "--topic", topic],
        input="one\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert error in done.stdout

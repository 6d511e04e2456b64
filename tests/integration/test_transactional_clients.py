"""Transactional clients of other projects: each case on this broker, and on Kafka 3.9.1, which must come to the same.

Clients in Go, JavaScript and Java are fetched and compiled, so no day draws these tests: a night takes them, and naming
the module runs it. CI has librdkafka and aiokafka in `test_transactions`.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from harness.kafka.placement import partition_of
from harness.values import TRANSACTIONS_TOPIC
from tests.integration.transactional_peers import PARTITIONS, peer, topic
from tests.kafka_tools import JAVA, LIBS, has_kafka, kafka_tool
from tools.peers import Peer, create_topic

__all__ = ["peer", "topic"]

pytestmark = [pytest.mark.cluster, pytest.mark.rotating(0)]

HERE = Path(__file__).parent
PATIENCE_S = 120
RECORDS = 600
"""Of which a copier copies every second ten: the others are aborted."""


# --- the programs ---


def _fetched(command: Sequence[str], folder: Path, what: str, **environment: str) -> None:
    """Run a command that fetches and builds; a test is skipped where a registry cannot be reached."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what} cannot be fetched")
    if done.returncode:
        pytest.skip(f"{what} cannot be fetched: {done.stderr.strip()[-300:]}")


def _needed(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program} here")
    return found


class Programs:
    """The programs, each made when it is asked for first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def go(self, name: str) -> list[str]:
        """Return the command of a client in Go."""
        if not (made := self.folder / name).exists():
            command = [_needed("go"), "build", "-mod=readonly", "-o", str(made), f"./{name}"]
            _fetched(command, HERE / "go_clients", "clients in Go", GOTOOLCHAIN="local")
        return [str(made)]

    def kafkajs(self) -> list[str]:
        """Return the command of kafkajs."""
        folder = self.folder / "node"
        if not folder.exists():
            node = _needed("npm")
            shutil.copytree(HERE / "node_clients", folder)
            _fetched([node, "ci", "--no-audit", "--no-fund"], folder, "kafkajs")
        return [_needed("node"), str(folder / "kafkajs.js")]

    def jars(self) -> Path:
        """Return a folder with the jars of Streams and of Connect's connectors for files."""
        folder = self.folder / "jars"
        if not folder.exists():
            goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
            pom = str(HERE / "java_clients" / "pom.xml")
            _fetched([_needed("mvn"), "-q", "-B", "-f", pom, *goal], self.folder, "Kafka Streams")
        return folder

    def java(self, name: str) -> list[str]:
        """Return the command of a program in Java."""
        if not has_kafka():
            pytest.skip("no jars of real Kafka: make kafka-libs")
        jars = f"{LIBS}/*" if name == "Transactions" else f"{LIBS}/*:{self.jars()}/*"
        classes = self.folder / "classes"
        if not (classes / f"{name}.class").exists():
            source = str(HERE / "java_clients" / f"{name}.java")
            subprocess.run([_needed("javac"), "-cp", jars, "-d", str(classes), source], timeout=300, check=True)
        return [*JAVA[:-1], f"{classes}:{jars}", name]

    def python(self, name: str) -> list[str]:
        """Return the command of a client in Python."""
        return [sys.executable, "-m", f"tests.integration.python_clients.{name}"]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """The programs."""
    return Programs(tmp_path_factory.mktemp("programs"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client of another project."""

    command: Callable[[Programs], list[str]]
    fenced: str
    """What it says when another producer has its id, or when it commits what the coordinator has aborted."""
    fences_members: bool = True
    """Whether it names its generation and member with offsets (KIP-447); otherwise a copier needs its id for itself."""
    outlives: bool = True
    """Whether it goes on when a broker is gone: the sender of kafka-python 3.0.12 then turns in
    `RecordAccumulator.drain_batches_for_one_node` for ever, with either broker."""


FRANZ = Client(command=lambda programs: programs.go("franz"), fenced="PRODUCER_FENCED")
SARAMA = Client(
    command=lambda programs: programs.go("sarama"), fenced="Unknown error, how did this happen? Error code = 90"
)
KAFKAJS = Client(command=Programs.kafkajs, fenced="INVALID_PRODUCER_EPOCH", fences_members=False)
JAVA_CLIENT = Client(command=lambda programs: programs.java("Transactions"), fenced="ProducerFencedException")
LIBRDKAFKA = Client(command=lambda programs: programs.python("librdkafka"), fenced="_FENCED")
AIOKAFKA = Client(command=lambda programs: programs.python("aio"), fenced="ProducerFenced", fences_members=False)
KAFKA_PYTHON = Client(
    command=lambda programs: programs.python("kafka_python"), fenced="ProducerFencedError", outlives=False
)

EVERY = [
    pytest.param(FRANZ, id="franz-go"),
    pytest.param(SARAMA, id="sarama"),
    pytest.param(KAFKAJS, id="kafkajs"),
    pytest.param(JAVA_CLIENT, id="Kafka's client"),
    pytest.param(LIBRDKAFKA, id="librdkafka"),
    pytest.param(AIOKAFKA, id="aiokafka"),
    pytest.param(KAFKA_PYTHON, id="kafka-python"),
]


@dataclass
class Running:
    """A program that runs, and what it has written."""

    process: subprocess.Popen[str]
    lines: list[dict[str, object]] = field(default_factory=list)

    def listen(self) -> None:
        """Take in what it writes, until it ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                self.lines.append(json.loads(line))

    def says(self, name: str) -> list[object]:
        """Return every value that it has written under a name."""
        return [line[name] for line in list(self.lines) if name in line]


@contextmanager
def started(words: Sequence[str], **environment: str) -> Iterator[Running]:
    """A program until the end of the block, at which it is killed."""
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as process:
        program = Running(process)
        listener = threading.Thread(target=program.listen)
        listener.start()
        try:
            yield program
        finally:
            process.kill()
            listener.join()


def does(words: Sequence[str]) -> list[dict[str, object]]:
    """Return what a program writes until it ends."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr[-3000:])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def until(holds: Callable[[], bool], *running: Running) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, [(each.process.poll(), each.lines[-20:]) for each in running]
        time.sleep(0.1)


# --- what is in a topic ---


def read(peer: Peer, topic: str, isolation: str = "read_committed") -> list[str]:
    """Return all values that a consumer of this isolation level gets, sorted, with their keys where they have any."""
    settings = {"bootstrap.servers": peer.bootstrap_servers, "group.id": uuid.uuid4().hex, "log_level": 0}
    consumer = Consumer(settings | {"isolation.level": isolation, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    values: list[str] = []
    ended: set[int | None] = set()
    deadline = time.monotonic() + PATIENCE_S
    try:
        while len(ended) < PARTITIONS:
            assert time.monotonic() < deadline, f"{len(values)} values and no end"
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                key = (message.key() or b"").decode()
                values.append(
                    f"{key}={(message.value() or b'').decode()}" if key else (message.value() or b"").decode()
                )
            elif message is not None:
                ended.add(message.partition())
    finally:
        consumer.close()
    return sorted(values)


def numbers(*ranges: range) -> list[str]:
    """Return the values of these numbers, sorted."""
    return sorted(str(number) for each in ranges for number in each)


def stable_ends(peer: Peer, topic: str) -> list[int]:
    """Return the last stable offset of each partition."""
    settings = {"bootstrap.servers": peer.bootstrap_servers, "group.id": "ends", "log_level": 0}
    consumer = Consumer(settings | {"isolation.level": "read_committed"})
    try:
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return [consumer.get_watermark_offsets(place, 30)[1] for place in places]
    finally:
        consumer.close()


def coordinator(peer: Peer, transactional_id: str) -> int:
    """Return the broker that coordinates a transactional id."""
    admin = AdminClient({"bootstrap.servers": peer.bootstrap_servers, "log_level": 0})
    partitions = admin.list_topics(TRANSACTIONS_TOPIC, timeout=30).topics[TRANSACTIONS_TOPIC].partitions
    return int(partitions[partition_of(transactional_id, len(partitions))].leader)


def fill(peer: Peer, topic: str) -> list[str]:
    """Write transactions of ten records, of which every second is aborted; return what is committed."""
    settings = {"bootstrap.servers": peer.bootstrap_servers, "transactional.id": f"fills-{topic}", "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(PATIENCE_S)
    for first in range(0, RECORDS, 10):
        producer.begin_transaction()
        for value in range(first, first + 10):
            producer.produce(topic, str(value), partition=value % PARTITIONS)
        producer.flush(PATIENCE_S)  # librdkafka would abort what no AddPartitionsToTxn has begun yet
        (producer.abort_transaction if first % 20 else producer.commit_transaction)(PATIENCE_S)
    return numbers(*(range(first, first + 10) for first in range(0, RECORDS, 20)))


# --- the cases ---


@pytest.mark.parametrize("client", EVERY)
def test_it_commits_and_aborts(peer: Peer, topic: str, programs: Programs, client: Client) -> None:
    assert does([*client.command(programs), peer.bootstrap_servers, "session", topic, topic]) == [{"error": ""}]
    until(lambda: len(read(peer, topic)) >= 20)  # a commit is answered before its markers are written
    assert read(peer, topic) == numbers(range(10), range(20, 30))
    assert read(peer, topic, "read_uncommitted") == numbers(range(30))


@pytest.mark.parametrize("client", EVERY)
def test_a_second_producer_fences_it(peer: Peer, topic: str, programs: Programs, client: Client) -> None:
    told = does([*client.command(programs), peer.bootstrap_servers, "fence", topic, topic])
    assert told == [{"error": client.fenced}]
    until(lambda: len(read(peer, topic)) >= 10)
    assert read(peer, topic) == numbers(range(10, 20))


@pytest.mark.parametrize("client", EVERY)
def test_it_commits_after_the_time_out(peer: Peer, topic: str, programs: Programs, client: Client) -> None:
    words = [*client.command(programs), peer.bootstrap_servers, "late", topic, topic]
    with started(words) as program:
        until(lambda: bool(program.says("written")), program)
        until(lambda: stable_ends(peer, topic) == [5, 4, 4], program)
        assert program.process.stdin is not None
        program.process.stdin.write("\n")
        program.process.stdin.flush()
        until(lambda: bool(program.says("error")), program)
        assert program.says("error") == [client.fenced]
    assert read(peer, topic) == []


@pytest.mark.parametrize("client", EVERY)
def test_what_a_killed_copier_began_is_copied_once_by_the_next_of_its_id(
    peer: Peer, topic: str, programs: Programs, client: Client
) -> None:
    copied = f"{topic}-copied"
    create_topic(peer, copied, PARTITIONS)
    expected = fill(peer, topic)
    words = [*client.command(programs), peer.bootstrap_servers, "copy", topic, copied, topic, topic]
    with started(words) as first:
        until(lambda: bool(first.says("copied")), first)
    with started(words) as second:
        until(lambda: len(read(peer, copied)) >= len(expected), first, second)
    assert read(peer, copied) == expected


@pytest.mark.parametrize("client", [each for each in EVERY if each.values[0].fences_members])  # type: ignore[union-attr]
def test_of_two_copiers_in_a_group_one_is_killed(peer: Peer, topic: str, programs: Programs, client: Client) -> None:
    copied = f"{topic}-copied"
    create_topic(peer, copied, PARTITIONS)
    expected = fill(peer, topic)
    words = [*client.command(programs), peer.bootstrap_servers, "copy", topic, copied, topic]
    with started([*words, f"{topic}-1"]) as first:
        with started([*words, f"{topic}-2"]) as second:
            until(lambda: bool(first.says("copied") or second.says("copied")), first, second)
        until(lambda: len(read(peer, copied)) >= len(expected), first, second)
    assert read(peer, copied) == expected


@pytest.mark.parametrize("client", [each for each in EVERY if each.values[0].outlives])  # type: ignore[union-attr]
def test_a_copier_outlives_its_coordinator(peer: Peer, topic: str, programs: Programs, client: Client) -> None:
    copied = f"{topic}-copied"
    create_topic(peer, copied, PARTITIONS)
    expected = fill(peer, topic)
    words = [*client.command(programs), peer.bootstrap_servers, "copy", topic, copied, topic, topic]
    with started(words) as copier:
        until(lambda: bool(copier.says("copied")), copier)
        killed = coordinator(peer, topic)
        peer.kill(killed)
        try:
            until(lambda: len(read(peer, copied)) >= len(expected), copier)
        finally:
            peer.start(killed)
    assert read(peer, copied) == expected


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="it assigns a partition to itself"),
        pytest.param(("--group-mode",), id="it is a member of a group"),
        pytest.param(("--group-mode", "--use-group-metadata"), id="it names its generation"),
        pytest.param(("--enable-random-aborts",), id="it aborts at random"),
    ],
)
def test_kafkas_own_copier(peer: Peer, topic: str, options: tuple[str, ...]) -> None:
    """`TransactionalMessageCopier`, of Kafka's system tests: it ends when it has copied as many records as offsets.

    So there are no transactions in what it copies.
    """
    copied = f"{topic}-copied"
    create_topic(peer, copied, PARTITIONS)
    producer = Producer({"bootstrap.servers": peer.bootstrap_servers, "enable.idempotence": True, "log_level": 0})
    for value in range(RECORDS):
        producer.produce(topic, str(value), partition=value % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0
    place = ("--input-topic", topic, "--input-partition", "0", "--output-topic", copied)
    names = ("--transactional-id", topic, "--consumer-group", topic)
    size = ("--transaction-size", "37", "--transaction-timeout", "10000")
    servers = ("--broker-list", peer.bootstrap_servers)
    kafka_tool("org.apache.kafka.tools.TransactionalMessageCopier", *servers, *place, *names, *size, *options)
    expected = numbers(range(0, RECORDS, 1 if "--group-mode" in options else PARTITIONS))
    until(lambda: len(read(peer, copied)) >= len(expected))
    assert read(peer, copied) == expected


WORDS = ("to", "be", "or", "not", "to", "be")


def test_streams_count_words_exactly_once_though_coordinators_die(
    peer: Peer, topic: str, programs: Programs, tmp_path: Path
) -> None:
    """A word count with exactly_once_v2: the last count of each word is how often it was written."""
    counts = f"{topic}-counts"
    create_topic(peer, counts, PARTITIONS)
    producer = Producer({"bootstrap.servers": peer.bootstrap_servers, "enable.idempotence": True, "log_level": 0})

    def write(lines: int) -> None:
        for number in range(lines):
            producer.produce(topic, " ".join(WORDS), partition=number % PARTITIONS)
        assert producer.flush(PATIENCE_S) == 0

    def last() -> dict[str, int]:
        found: dict[str, int] = {}
        for each in read(peer, counts):
            word, _, count = each.partition("=")
            found[word] = max(found.get(word, 0), int(count))
        return found

    def expected(lines: int) -> dict[str, int]:
        return {word: lines * WORDS.count(word) for word in WORDS}

    words = [*programs.java("WordCount"), peer.bootstrap_servers, topic, topic, counts, str(tmp_path)]
    with started(words) as application:
        write(100)
        until(lambda: last() == expected(100), application)
        for round_ in range(2):
            killed = coordinator(peer, f"{topic}-{round_}") if round_ else _busiest(peer, topic)
            write(100)
            peer.kill(killed)
            try:
                write(100)
                until(lambda lines=100 + 200 * (round_ + 1): last() == expected(lines), application)  # type: ignore[misc]
            finally:
                peer.start(killed)
    assert last() == expected(500)
    seen = [each.partition("=")[2] for each in read(peer, counts) if each.startswith("not=")]
    assert len(seen) == len(set(seen)), "a count was committed twice"


def _busiest(peer: Peer, application: str) -> int:
    """Return the coordinator of one of an application's transactional ids."""
    listed = kafka_tool(
        "org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", peer.bootstrap_servers, "list"
    )
    names = [line.split() for line in listed.splitlines() if line.startswith(application)]
    return int(names[0][1])


LINES = 60
"""In one transaction: `transaction.boundary=poll`, and what the file has is polled at once."""


def test_connect_writes_each_line_of_a_file_once_though_its_worker_is_killed(
    peer: Peer, topic: str, programs: Programs, tmp_path: Path
) -> None:
    """`exactly.once.source.support=enabled`: a source's records and offsets are in one transaction."""
    lines = tmp_path / "lines.txt"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    worker = {
        "bootstrap.servers": peer.bootstrap_servers,
        "group.id": f"{topic}-connect",
        "listeners": f"http://127.0.0.1:{port}",
        "plugin.path": str(programs.jars()),
        "exactly.once.source.support": "enabled",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "config.storage.topic": f"{topic}-configs",
        "offset.storage.topic": f"{topic}-offsets",
        "offset.storage.partitions": "3",
        "status.storage.topic": f"{topic}-status",
        "status.storage.partitions": "1",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
    }
    properties = tmp_path / "worker.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in worker.items()))
    words = [*JAVA[:-1], f"{LIBS}/*:{programs.jars()}/*", "org.apache.kafka.connect.cli.ConnectDistributed"]
    source = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "file": str(lines),
        "topic": topic,
        "tasks.max": "1",
        "exactly.once.support": "required",
        "transaction.boundary": "poll",
    }

    def configured() -> bool:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/connectors/{topic}/config",
            json.dumps(source).encode(),
            {"Content-Type": "application/json"},
            method="PUT",
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return bool(answer.status < 300)
        except OSError:  # it starts, or elects its leader
            return False

    def taken(number: int, worker: Running) -> None:
        until(lambda: len(read(peer, topic)) >= number * LINES, worker)

    lines.touch()
    with started([*words, str(properties)]) as first:
        until(configured, first)
        for number in range(5):
            _append(lines, range(number * LINES, (number + 1) * LINES))
            taken(number + 1, first)
        _append(lines, range(5 * LINES, 6 * LINES))
    with started([*words, str(properties)]) as second:
        taken(6, second)
        _append(lines, range(6 * LINES, 7 * LINES))
        taken(7, second)
    assert read(peer, topic) == numbers(range(7 * LINES))


def _append(file: Path, values: range) -> None:
    """Add lines to a file."""
    with file.open("a") as open_file:
        open_file.writelines(f"{value}\n" for value in values)

"""What a recorder writes is whole, fits the format of operations, and says no more than is certain."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import aiokafka
import kafka
import pytest
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from harness.ingest.formats import formats
from harness.system.chain import read_chain
from kafka_chaos.recorder import Recorder
from kafka_chaos.recorder.aio import Consumer as AsyncConsumer
from kafka_chaos.recorder.aio import Producer as AsyncProducer
from kafka_chaos.recorder.confluent import Producer
from kafka_chaos.recorder.kafka_python import Consumer as SyncConsumer
from kafka_chaos.recorder.recording import Lines, Reading, id_of, topic_settings, value_id


def recorded(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of each file, which are whole and in a chain, without the last one."""
    history = {}
    for path in sorted(folder.glob("*.jsonl")):
        raw = path.read_bytes().splitlines(keepends=True)
        reading = read_chain(raw)
        assert (reading.breaks, reading.ended) == (0, True)
        history[path.stem] = [json.loads(line) for line in raw[:-1]]
    return history


def test_every_kind_of_line_has_what_the_format_asks_for(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, name="app", settings={"power_loss": False})
    lines = recorder.lines("client")
    start = lines.send_begins('or"ders', -1, "k", "ü", -1)
    lines.send_ends(start, "ok", 2, 7)
    lines.polled(5, "subscribe", [('or"ders', 2, 7, "ü")])
    lines.end_offset('or"ders', 2, 6, 8)
    lines.commit_ends(lines.commit_begins('gr"oup', 'or"ders', 2, 8), "ok")
    lines.committed('gr"oup', 'or"ders', 2, 9, 8)
    lines.close()
    (of_client,) = recorded(tmp_path).values()
    required = {line.name: set(line.required) for line in formats()["operations"].lines}
    assert all(required[line["kind"]] <= line.keys() for line in of_client)
    assert {line["process"] for line in of_client} == {"app-client-0"}
    said = {(line["kind"], line["type"]): line for line in of_client}
    assert said["setting", "invoke"]["value"] == "false"
    assert (said["send", "invoke"]["topic"], said["send", "ok"]["offset"]) == ('or"ders', 7)
    assert said["poll", "ok"]["records"] == [{"topic": 'or"ders', "partition": 2, "offset": 7, "value": "ü"}]
    assert said["end_offset", "ok"]["offset"] == 8
    assert {said[kind, "ok"]["group"] for kind in ("commit", "fetch_committed")} == {'gr"oup'}
    assert {said[kind, "ok"]["offset"] for kind in ("commit", "fetch_committed")} == {8}
    begins = sorted(line["index"] for line in of_client if line["type"] == "invoke")
    assert begins == [*range(len(begins))]


def test_threads_may_share_a_client(tmp_path: Path) -> None:
    lines = Recorder(tmp_path).lines("client")

    def send(number: int) -> None:
        lines.send_ends(lines.send_begins("orders", 0, None, f"v{number}", -1), "ok", 0, number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(400)))
    lines.close()
    (of_client,) = recorded(tmp_path).values()
    assert sorted(line["index"] for line in of_client if line["type"] == "ok") == [*range(400)]


def test_a_reader_that_seeks_is_another_process_that_counts_anew(tmp_path: Path) -> None:
    lines = Recorder(tmp_path, name="app").lines("client")
    for offset in (5, 1):
        lines.polled(0, "assign", [("orders", 0, offset, "v")])
        lines.moved()
    lines.close()
    (of_client,) = recorded(tmp_path).values()
    assert [(line["process"], line["index"]) for line in of_client[::2]] == [("app-client-0", 0), ("app-client-0.2", 0)]


def test_a_transaction_has_its_steps_and_its_sends(tmp_path: Path) -> None:
    config = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "transactional.id": "t"}
    with Recorder(tmp_path) as recorder:
        lines = Producer(config, recorder=recorder)._lines
        with lines.transacting("init_transactions"):
            pass
        with lines.transacting("begin_transaction"):
            pass
        lines.send_ends(lines.send_begins("orders", 0, None, "v", -1), "ok", 0, 7)
        with pytest.raises(KeyError), lines.transacting("commit_transaction"):
            raise KeyError("fenced")
        with lines.transacting("abort_transaction"):
            pass
        with lines.transacting("begin_transaction"):
            pass
    (of_client,) = recorded(tmp_path).values()
    required = {line.name: set(line.required) for line in formats()["operations"].lines}
    assert all(required[line["kind"]] <= line.keys() for line in of_client)
    ends = [line for line in of_client if line["type"] != "invoke"]
    begins = [line["index"] for line in ends if line["kind"] == "begin_transaction"]
    assert [(end["kind"], end["type"], end.get("transaction")) for end in ends] == [
        ("init_transactions", "ok", None),
        ("begin_transaction", "ok", begins[0]),
        ("send", "ok", begins[0]),
        ("commit_transaction", "info", begins[0]),
        ("abort_transaction", "ok", begins[0]),
        ("begin_transaction", "ok", begins[1]),
    ]
    assert {end["transactional_id"] for end in ends} == {"t"}


def test_a_poll_says_the_isolation_level(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        lines = recorder.lines("consumer")
        for level in ("", "read_committed"):
            lines.isolation = level
            lines.polled(1, "assign", [("orders", 0, 0, "v")])
        lines.close()
    (of_client,) = recorded(tmp_path).values()
    assert [line.get("isolation") for line in of_client if line["type"] == "ok"] == [None, "read_committed"]


def test_a_producer_that_is_closed_first_has_a_whole_file(tmp_path: Path) -> None:
    config = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    with Recorder(tmp_path) as recorder:
        assert Producer(config, recorder=recorder).close()
        with Producer(config, recorder=recorder):
            pass
    assert [len(lines) for lines in recorded(tmp_path).values()] == [2, 2]


def test_all_clients_finish_although_one_cannot(tmp_path: Path) -> None:
    class Broken:
        def finish_recording(self) -> None:
            raise RuntimeError("the client is gone")

    recorder = Recorder(tmp_path)
    recorder.follow(Broken())
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, recorder=recorder)
    with pytest.raises(RuntimeError, match="the client is gone"):
        recorder.close()
    assert producer._lines.closed
    recorder.close()


def test_batches_are_refused_as_their_records_would_not_be_recorded(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, recorder=recorder)
        with pytest.raises(NotImplementedError, match=r"produce_batch is not recorded: call produce"):
            producer.produce_batch("orders", [{"value": "v"}])
        with pytest.raises(NotImplementedError, match=r"send_batch is not recorded: call send"):
            asyncio.run(AsyncProducer.send_batch(Mock(), "batch", "orders", partition=0))


def test_nothing_is_written_after_the_end(tmp_path: Path) -> None:
    lines = Recorder(tmp_path).lines("client")
    start = lines.send_begins("orders", 0, None, "v", -1)
    lines.close()
    lines.send_ends(start, "ok", 0, 1)
    lines.close()
    assert [len(lines) for lines in recorded(tmp_path).values()] == [1]


KILLED = """
import os, signal, sys
from pathlib import Path
from kafka_chaos.recorder.recording import Lines
lines = Lines(Path(sys.argv[1]), "killed")
lines.send_ends(lines.send_begins("orders", 0, None, "a", -1), "ok", 0, 0)
lines.send_begins("orders", 0, None, "b", -1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_was_about_to_send_is_in_its_file(tmp_path: Path) -> None:
    path = os.pathsep.join(sys.path)
    subprocess.run([sys.executable, "-c", KILLED, tmp_path], env={**os.environ, "PYTHONPATH": path}, check=False)
    raw = (tmp_path / "killed.jsonl").read_bytes().splitlines(keepends=True)
    assert [(line["value"], line["type"]) for line in map(json.loads, raw)] == [
        ("a", "invoke"),
        ("a", "ok"),
        ("b", "invoke"),
    ]
    reading = read_chain(raw)
    assert (reading.breaks, reading.ended) == (0, False)


@pytest.mark.parametrize(
    ("value", "identity"),
    [
        pytest.param(b"order-1", "order-1", id="a text is its own id"),
        pytest.param("order-1", "order-1", id="with or without a serializer"),
        pytest.param(b"\xff\x00", sha256(b"\xff\x00").hexdigest(), id="no UTF-8"),
        pytest.param("x" * 201, sha256(b"x" * 201).hexdigest(), id="a long text"),
        pytest.param(None, "", id="a tombstone"),
    ],
)
def test_the_id_of_a_value(value: object, identity: str) -> None:
    assert value_id(value) == identity
    assert id_of(value, [("kafka-chaos-id", b"stamp"), ("other", b"x")]) == "stamp"


KEPT: dict[str, object] = {"deleting_topics": "none"}


@pytest.mark.parametrize(
    ("begun", "starts", "settings"),
    [
        pytest.param({("t", 0): True}, {("t", 0): 0}, KEPT | {"read_from_start": True}, id="from the start of the log"),
        pytest.param(
            {("t", 0): True},
            {("t", 0): 3},
            {"deleting_topics": "t", "read_from_start": False},
            id="records were deleted before it",
        ),
        pytest.param(
            {("t", 0): True, ("t", 1): False}, {("t", 0): 0, ("t", 1): 0}, KEPT | {"read_from_start": False}, id="one"
        ),
        pytest.param({("t", 0): True}, {}, {"read_from_start": False}, id="the log's start is not known"),
        pytest.param({}, {}, {}, id="nothing was read"),
    ],
)
def test_what_is_said_of_where_readers_began(
    begun: dict[tuple[str, int], bool], starts: dict[tuple[str, int], int], settings: dict[str, object]
) -> None:
    reading = Reading()
    reading.partitions |= begun
    assert reading.settings(starts) == settings


@pytest.mark.parametrize(
    ("seeks", "from_start"),
    [
        pytest.param([True], True, id="to the start before anything was read"),
        pytest.param([False, True], False, id="ahead, and back to the start"),
        pytest.param([True, False], False, id="to the start, and ahead"),
    ],
)
def test_a_reader_that_seeks_ahead_does_not_read_from_the_start(seeks: list[bool], from_start: bool) -> None:
    reading = Reading()
    for at_start in seeks:
        reading.sought("t", 0, at_start=at_start)
    assert reading.settings({("t", 0): 0}) == KEPT | {"read_from_start": from_start}


def test_settings_of_topics_are_those_of_the_most_lenient_one() -> None:
    strict = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
    lenient = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    assert topic_settings([strict, lenient]) == {"min_insync_replicas": 1, "unclean_leader_election": True}
    assert topic_settings([strict, {}]) == {}
    assert topic_settings([]) == {}


def test_two_clients_never_share_a_file(tmp_path: Path) -> None:
    Lines(tmp_path, "client").close()
    with pytest.raises(FileExistsError):
        Lines(tmp_path, "client")


COMMITTED = OffsetAndMetadata(8, "", -1)
PLACE = kafka.TopicPartition("orders", 2)


def of_kafka_python(recorder: Recorder, answer: Exception | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit by kafka-python, whose library answers so, and read back."""
    consumer = SyncConsumer.__new__(SyncConsumer)
    lines = recorder.lines("consumer")
    vars(consumer).update(_lines=lines, _commits=True, _group="g", _committed=set())
    monkeypatch.setattr(kafka.KafkaConsumer, "commit", Mock(side_effect=answer))
    monkeypatch.setattr(kafka.KafkaConsumer, "committed", lambda *_: 8)
    with nullcontext() if answer is None else pytest.raises(type(answer)):
        consumer.commit({PLACE: COMMITTED})
    assert consumer.committed(PLACE) == 8
    lines.close()


def of_aiokafka(recorder: Recorder, answer: Exception | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit by aiokafka, whose library answers so, and read back."""
    consumer = AsyncConsumer.__new__(AsyncConsumer)
    lines, connection = recorder.lines("consumer"), {"group_id": "g"}
    vars(consumer).update(_lines=lines, _commits=True, _connection=connection, _committed=set(), _closed=True)
    monkeypatch.setattr(aiokafka.AIOKafkaConsumer, "commit", AsyncMock(side_effect=answer))
    monkeypatch.setattr(aiokafka.AIOKafkaConsumer, "committed", AsyncMock(return_value=8))

    async def commit() -> None:
        with nullcontext() if answer is None else pytest.raises(type(answer)):
            await consumer.commit({aiokafka.TopicPartition("orders", 2): 8})
        assert await consumer.committed(aiokafka.TopicPartition("orders", 2)) == 8

    asyncio.run(commit())
    lines.close()


@pytest.mark.parametrize("commit", [of_kafka_python, of_aiokafka])
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(None, "ok", id="it is acknowledged"),
        pytest.param(KafkaError("no answer"), "info", id="what became of it is unknown"),
    ],
)
def test_a_commit_is_recorded_with_its_end_and_read_back(
    commit: Callable[[Recorder, Exception | None, pytest.MonkeyPatch], None],
    answer: Exception | None,
    outcome: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit(Recorder(tmp_path), answer, monkeypatch)
    (lines,) = recorded(tmp_path).values()
    told = [(line["kind"], line["type"], line.get("offset"), line["group"]) for line in lines]
    read_back = [("fetch_committed", "invoke", None, "g"), ("fetch_committed", "ok", 8, "g")]
    assert told == [("commit", "invoke", 8, "g"), ("commit", outcome, 8, "g"), *read_back]

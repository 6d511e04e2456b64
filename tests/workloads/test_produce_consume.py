import json
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from pydantic import ValidationError

from harness.client_rules.reading import AGAIN, Reading
from harness.client_rules.steps import Restart, carry_out
from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter, OpKind, now_ns
from harness.store.recording import Recorder
from harness.values import value_id
from kafka_chaos.workloads.clients.group_member import GroupMember
from kafka_chaos.workloads.clients.producer import Sender, configuration
from kafka_chaos.workloads.produce_consume import Parameters, ProduceConsume

TOPICS = {"orders": 2, "audit": 1}


def clients(**parameters: object) -> list[ClientPlan]:
    return ProduceConsume().clients(
        Parameters.model_validate(parameters), bootstrap_servers="127.0.0.1:1", topics=TOPICS, seed=1
    )


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        pytest.param({"acks": 1}, "acks must be all", id="acks 1"),
        pytest.param({"acks": ["all", 1]}, "acks must be all", id="acks 1 for some"),
        pytest.param({"max_in_flight": 6}, "max_in_flight may be 5 at most", id="more in flight than are remembered"),
        pytest.param({"retries": 0}, "retries must be 1 at least", id="no retries"),
    ],
)
def test_idempotence_has_terms(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Parameters.model_validate({"idempotence": True, **parameters})
    Parameters.model_validate(parameters)


def test_a_producer_is_idempotent_when_it_is_told_so() -> None:
    (numbered,) = clients(producers=1, consumers=0, idempotence=True)
    (plain,) = clients(producers=1, consumers=0)
    assert configuration(numbered)["enable.idempotence"] is True
    assert configuration(plain)["enable.idempotence"] is False
    Producer(configuration(numbered))  # librdkafka takes the terms together


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_producers_are_stopped_before_consumers_so_that_the_end_stands_still() -> None:
    planned = clients(producers=2, consumers=2, committers=1)
    assert [(plan.process, plan.role, plan.stop_order) for plan in planned] == [
        ("producer-1", "producer", 0),
        ("producer-2", "producer", 0),
        ("consumer-1", "consumer", 1),
        ("consumer-2", "consumer", 1),
        ("committer-1", "committer", 1),
    ]
    assert len({plan.seed for plan in planned}) == 5


@pytest.mark.parametrize(
    ("acks", "of_producers"),
    [
        pytest.param("all", [-1, -1, -1], id="all for everyone"),
        pytest.param(0, [0, 0, 0], id="none for everyone"),
        pytest.param([1, "all"], [1, -1, 1], id="in turn"),
    ],
)
def test_each_producer_has_one_acks_level(acks: object, of_producers: list[int]) -> None:
    planned = clients(producers=3, consumers=0, acks=acks)
    assert [plan.parameters["acks"] for plan in planned] == of_producers


def test_the_producer_is_plain_and_gives_up_soon() -> None:
    settings = configuration(clients(message_timeout_ms=1500, request_timeout_ms=9000)[0])
    assert settings["enable.idempotence"] is False
    assert settings["message.timeout.ms"] == settings["request.timeout.ms"] == 1500


class FakeMessage:
    def __init__(self, topic: str, partition: int, offset: int, value: bytes, error: KafkaError | None = None) -> None:
        self._values = (topic, partition, offset, value, error)

    def topic(self) -> str:
        return self._values[0]

    def partition(self) -> int:
        return self._values[1]

    def offset(self) -> int:
        return self._values[2]

    def headers(self) -> None:
        """There are none."""

    def value(self) -> bytes:
        return self._values[3]

    def error(self) -> KafkaError | None:
        return self._values[4]

    def leader_epoch(self) -> int | None:
        return 3


class FakeProducer:
    """Hands every record to the test, which decides what becomes of it."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.refusal: Exception | None = None
        self.report: Exception | None = None
        self.purged = False

    def poll(self, _timeout_s: float) -> None:
        if self.report is not None:
            raise self.report

    def purge(self) -> None:
        self.purged = True

    def flush(self, _timeout_s: float) -> int:
        if self.purged:
            for number in range(len(self.sent)):
                self.deliver(number, KafkaError(KafkaError._PURGE_INFLIGHT))
        return 0

    def produce(self, topic: str, **record: Any) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.sent.append({"topic": topic, **record})

    def deliver(self, number: int, error: KafkaError | None, offset: int = -1001) -> None:
        record = self.sent[number]
        record["on_delivery"](error, FakeMessage(record["topic"], record["partition"], offset, b""))


class TestSender:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "producer-1.jsonl"

    @pytest.fixture
    def producer(self) -> FakeProducer:
        return FakeProducer()

    def sender(self, path: Path, producer: FakeProducer, **parameters: object) -> Sender:
        plan = clients(**parameters)[0]
        return Sender(plan, Recorder(plan.process, JsonlWriter(path).write, now_ns), lambda: cast("Producer", producer))

    @pytest.mark.parametrize("fatal", [True, False])
    def test_after_a_fatal_error_alone_another_producer_goes_on(self, fatal: bool, path: Path) -> None:
        made = [FakeProducer(), FakeProducer()]
        first, second = made
        plan = clients()[0]
        following = iter(made)
        sender = Sender(
            plan,
            Recorder(plan.process, JsonlWriter(path).write, now_ns),
            lambda: cast("Producer", next(following)),
        )
        sender.send()
        first.report = KafkaException(KafkaError(KafkaError._INCONSISTENT, "unable to reconstruct", fatal))
        with nullcontext() if fatal else pytest.raises(KafkaException):
            sender.poll(0)
        sender.send()
        assert (len(first.sent), len(second.sent)) == ((1, 1) if fatal else (2, 0))
        ends = [line["error"].partition(":")[0] for line in lines(path) if line["type"] == "info"]
        assert ends == (["_PURGE_INFLIGHT"] if fatal else []), "whether it was written is unknown"

    def test_the_invoke_is_on_file_before_the_record_is_handed_over(
        self, path: Path, producer: FakeProducer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def produce(_topic: str, **_record: Any) -> None:
            assert [line["type"] for line in lines(path)] == ["invoke"]

        monkeypatch.setattr(producer, "produce", produce)
        self.sender(path, producer).send()

    def test_invoke_and_end_share_an_index_and_values_are_unique(self, path: Path, producer: FakeProducer) -> None:
        sender = self.sender(path, producer)
        for _ in range(3):
            sender.send()
        producer.deliver(1, None, offset=7)
        producer.deliver(0, KafkaError(KafkaError._MSG_TIMED_OUT))
        written = lines(path)
        assert [(line["index"], line["type"], line["value"]) for line in written] == [
            (0, "invoke", "producer-1-1"),
            (1, "invoke", "producer-1-2"),
            (2, "invoke", "producer-1-3"),
            (1, "ok", "producer-1-2"),
            (0, "info", "producer-1-1"),
        ]
        assert written[3]["offset"] == 7
        assert written[4]["error"].startswith("_MSG_TIMED_OUT")
        assert {line["acks"] for line in written} == {-1}

    def test_a_key_always_goes_to_the_same_partition_and_all_partitions_get_some(
        self, path: Path, producer: FakeProducer
    ) -> None:
        sender = self.sender(path, producer)
        for _ in range(200):
            sender.send()
        places = {(record["key"], record["topic"], record["partition"]) for record in producer.sent}
        assert len(places) == len({key for key, _, _ in places}) == 24
        assert {place[1:] for place in places} == {("orders", 0), ("orders", 1), ("audit", 0)}

    @pytest.mark.parametrize(
        ("refusal", "error"),
        [
            pytest.param(BufferError("Local: Queue full"), "queue full", id="the queue is full"),
            pytest.param(KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)), "MSG_SIZE", id="too large"),
        ],
    )
    def test_a_record_that_never_left_is_a_fail(
        self, path: Path, producer: FakeProducer, refusal: Exception, error: str
    ) -> None:
        producer.refusal = refusal
        self.sender(path, producer).send()
        assert lines(path)[-1]["type"] == "fail"
        assert error in lines(path)[-1]["error"]

    def test_a_send_that_asked_for_no_answer_has_no_offset(self, path: Path, producer: FakeProducer) -> None:
        self.sender(path, producer, acks=0).send()
        producer.deliver(0, None)
        assert (lines(path)[-1]["type"], lines(path)[-1]["offset"]) == ("ok", -1)

    def test_values_are_as_long_as_asked(self, path: Path, producer: FakeProducer) -> None:
        self.sender(path, producer, value_bytes=100).send()
        assert len(producer.sent[0]["value"]) == 100


class FakeConsumer:
    """One partition whose records come in the polls that the test gives."""

    def __init__(self, *polls: list[FakeMessage] | Exception, ends: tuple[int, ...] = (0,)) -> None:
        self.polls = list(polls)
        self.ends = list(ends)
        self.commits: list[list[TopicPartition]] = []
        self.assigned: list[list[TopicPartition]] = []

    def consume(self, **_limits: Any) -> list[FakeMessage]:
        answer = self.polls.pop(0) if self.polls else []
        if isinstance(answer, Exception):
            raise answer
        return answer

    def assign(self, places: list[TopicPartition]) -> None:
        self.assigned.append(places)

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        self.commits.append(offsets)

    def close(self) -> None: ...

    def get_watermark_offsets(self, _place: TopicPartition, **_limits: Any) -> tuple[int, int]:
        return 0, self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]

    def committed(self, places: list[TopicPartition], **_limits: Any) -> list[TopicPartition]:
        return [TopicPartition(place.topic, place.partition, -1001) for place in places]


@dataclass
class Answer:
    topic: str
    partition: int
    error: KafkaError | None


def record(offset: int, value: bytes = b"producer-1-1") -> FakeMessage:
    return FakeMessage("orders", 0, offset, value)


class Reader(GroupMember):
    """A consumer process, connected to a fake."""

    def __init__(self, plan: ClientPlan, recorder: Recorder, consumer: FakeConsumer) -> None:
        self.rules = Reading(plan, recorder, time.monotonic)
        super().__init__(plan, self.rules, threading.Event(), lambda _configuration: cast("Consumer", consumer))
        self.act(Restart())


def poll(reader: Reader) -> None:
    carry_out(reader.rules.poll(), reader.act)


def commit(reader: Reader) -> None:
    carry_out(reader.rules.commit(), reader.act)


class TestReader:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "consumer-1.jsonl"

    def reader(self, path: Path, consumer: FakeConsumer) -> Reader:
        plan = replace(clients(producers=0)[0], topics={"orders": 1})
        return Reader(plan, Recorder(plan.process, JsonlWriter(path).write, now_ns), consumer)

    def test_a_poll_keeps_records_in_the_order_they_came(self, path: Path) -> None:
        poll(self.reader(path, FakeConsumer([record(5), record(6, b"producer-2-9")])))
        invoke, ok = lines(path)
        assert (invoke["type"], ok["type"], ok["mode"]) == ("invoke", "ok", "assign")
        assert [(item["offset"], item["value"], item["leader_epoch"]) for item in ok["records"]] == [
            (5, "producer-1-1", 3),
            (6, "producer-2-9", 3),
        ]

    @pytest.mark.parametrize(
        ("polled", "outcome", "records"),
        [
            pytest.param([], "ok", 0, id="nothing there"),
            pytest.param(KafkaException(KafkaError(KafkaError._TRANSPORT)), "fail", 0, id="it raised"),
            pytest.param([FakeMessage("orders", 0, -1, b"", KafkaError(KafkaError._TRANSPORT))], "fail", 0,
                         id="only an error"),
            pytest.param([record(1), FakeMessage("orders", 0, -1, b"", KafkaError(KafkaError._TRANSPORT))], "ok", 1,
                         id="records and an error"),
        ],
    )  # fmt: skip
    def test_how_a_poll_ends(self, path: Path, polled: Any, outcome: str, records: int) -> None:
        poll(self.reader(path, FakeConsumer(polled)))
        assert (lines(path)[-1]["type"], len(lines(path)[-1]["records"])) == (outcome, records)

    def test_a_commit_is_the_next_offset_and_never_goes_back(self, path: Path) -> None:
        consumer = FakeConsumer([record(5)], [record(2)])
        reader = self.reader(path, consumer)
        poll(reader)
        commit(reader)
        reader.committed(None, [TopicPartition("orders", 0, 6)])
        poll(reader)  # from the start again, after a truncation
        commit(reader)
        assert [[place.offset for place in each] for each in consumer.commits] == [[6]]
        written = [line for line in lines(path) if line["kind"] == "commit"]
        assert [(line["type"], line["offset"], line["group"]) for line in written] == [
            ("invoke", 6, "consumer-1"),
            ("ok", 6, "consumer-1"),
        ]

    def test_it_reads_on_while_a_commit_is_on_its_way_and_starts_no_second_one(self, path: Path) -> None:
        consumer = FakeConsumer([record(5)], [record(6)])
        reader = self.reader(path, consumer)
        poll(reader)
        commit(reader)
        poll(reader)
        commit(reader)
        assert len(consumer.commits) == 1
        reader.committed(None, [])
        commit(reader)
        assert [each[0].offset for each in consumer.commits] == [6, 7]

    @pytest.mark.parametrize(
        ("of_all", "of_one", "outcome"),
        [
            pytest.param(KafkaError.REQUEST_TIMED_OUT, None, "info", id="no answer in time"),
            pytest.param(None, KafkaError.OFFSET_METADATA_TOO_LARGE, "fail", id="refused for this partition"),
            pytest.param(None, None, "ok", id="done"),
        ],
    )
    def test_how_a_commit_ends(self, path: Path, of_all: int | None, of_one: int | None, outcome: str) -> None:
        reader = self.reader(path, FakeConsumer([record(5)]))
        poll(reader)
        commit(reader)
        answer = Answer("orders", 0, None if of_one is None else KafkaError(of_one))
        reader.committed(None if of_all is None else KafkaError(of_all), cast("Any", [answer]))
        assert lines(path)[-1]["type"] == outcome

    def test_it_reads_until_the_end_stands_still(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("harness.client_rules.reading.SETTLE_S", 0.0)
        consumer = FakeConsumer([record(0)], [record(1)], ends=(1, 2, 2))
        reader = self.reader(path, consumer)
        assert carry_out(reader.rules.read_to_the_end(deadline_s=float("inf")), reader.act)
        assert reader.rules.positions == {("orders", 0): 2}
        ends = [line["offset"] for line in lines(path) if line["kind"] == "end_offset" and line["type"] == "ok"]
        assert ends == [1, 2, 2]

    def test_reading_again_starts_at_the_first_record_and_says_so(self, path: Path) -> None:
        consumer = FakeConsumer([record(7)], [record(0)], ends=(8, 8))
        reader = self.reader(path, consumer)
        poll(reader)
        carry_out(reader.rules.read_from_the_start(AGAIN), reader.act)
        assert reader.rules.positions == {}
        poll(reader)
        assert reader.rules.positions == {("orders", 0): 1}
        assert [place.offset for place in consumer.assigned[0]] == [OFFSET_BEGINNING]
        assert [line["mode"] for line in lines(path) if line["type"] == "ok"] == ["assign", "reread"]

    def test_past_the_deadline_it_says_that_it_did_not_get_there(self, path: Path) -> None:
        reader = self.reader(path, FakeConsumer(ends=(3,)))
        assert not carry_out(reader.rules.read_to_the_end(deadline_s=0.0), reader.act)

    def test_no_committed_offset_reads_back_as_none(self, path: Path) -> None:
        reader = self.reader(path, FakeConsumer())
        carry_out(reader.rules.ask(OpKind.FETCH_COMMITTED, ("orders", 0), deadline_s=0.0), reader.act)
        assert (lines(path)[-1]["kind"], lines(path)[-1]["offset"]) == ("fetch_committed", -1)


@pytest.mark.parametrize(
    ("value", "known_as"),
    [
        pytest.param(b"producer-1-7", "producer-1-7", id="ours"),
        pytest.param(b"producer-1-7 xxxx", "producer-1-7", id="ours with bytes after it"),
        pytest.param(None, "", id="no value"),
        pytest.param(b"\xff", "a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89", id="not text"),
    ],
)
def test_a_value_is_known_by_its_text_or_its_digest(value: bytes | None, known_as: str) -> None:
    assert value_id(value) == known_as


def test_a_message_is_what_the_fake_stands_for() -> None:
    assert all(hasattr(Message, name) for name in ("topic", "partition", "offset", "value", "error", "leader_epoch"))

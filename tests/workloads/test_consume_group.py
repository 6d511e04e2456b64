"""Which members a scenario gets, and what one does with librdkafka's callbacks."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_STORED, Consumer, KafkaError, KafkaException, TopicPartition
from pydantic import ValidationError

from harness.client_rules.steps import Leave, Restart, Subscribe, carry_out
from harness.client_rules.subscribing import Subscribing
from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter, now_ns
from harness.store.recording import Recorder
from kafka_chaos.workloads.clients.subscriber import Subscriber, identity_in
from kafka_chaos.workloads.consume_group import ConsumeGroup, Parameters


def members(**parameters: object) -> list[ClientPlan]:
    load = Parameters.model_validate(parameters)
    return ConsumeGroup().clients(load, bootstrap_servers="127.0.0.1:1", topics={"orders": 2}, seed=1)


def test_groups_get_their_choices_in_turn_and_their_first_members_are_restless() -> None:
    made = members(groups=3, members=2, restless=1, assignor=["range", "cooperative-sticky"], static=True)
    assert [(each.process, each.parameters["assignor"], each.parameters["stay_s"] > 0) for each in made] == [
        ("group-1-member-1", "range", True),
        ("group-1-member-2", "range", False),
        ("group-2-member-1", "cooperative-sticky", True),
        ("group-2-member-2", "cooperative-sticky", False),
        ("group-3-member-1", "range", True),
        ("group-3-member-2", "range", False),
    ]
    assert len({each.parameters["instance"] for each in made}) == 6
    assert len({each.seed for each in made}) == 6


def test_a_double_has_the_instance_of_another_member() -> None:
    made = members(members=2, static=True, doubles=1)
    assert [(each.process, each.parameters["instance"]) for each in made] == [
        ("group-1-member-1", "group-1-instance-1"),
        ("group-1-member-2", "group-1-instance-2"),
        ("group-1-member-3", "group-1-instance-1"),
    ]


@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param({"members": 1, "restless": 2}, id="more restless members than members"),
        pytest.param({"session_timeout_ms": 2000, "max_poll_interval_ms": 1000}, id="less time to poll than a session"),
        pytest.param({"session_timeout_ms": 500, "heartbeat_interval_ms": 500}, id="no heartbeat within a session"),
        pytest.param({"doubles": 1}, id="a double of a member without an instance"),
        pytest.param({"static": True, "members": 1, "doubles": 2}, id="more doubles than members"),
        pytest.param({"assignor": "sticky"}, id="an assignor that is not simulated"),
        pytest.param({"name": "g" * 65}, id="a name that no file can have"),
    ],
)
def test_what_cannot_work_is_refused(parameters: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        members(**parameters)


@pytest.mark.parametrize(
    ("metadata", "identity"),
    [
        pytest.param(b"CGMDv2:\x07\x00\x00\x00group-1\0m-1\0\0inst\0", ("m-1", 7), id="a static member"),
        pytest.param(b"CGMDv2:\xff\xff\xff\xffgroup-1\0\0\x01", ("", -1), id="none yet"),
        pytest.param(b"CGMDv9:", ("", -1), id="another version"),
        pytest.param(None, ("", -1), id="nothing"),
    ],
)
def test_who_a_member_is(metadata: bytes | None, identity: tuple[str, int]) -> None:
    assert identity_in(metadata) == identity


class FakeMessage:
    def __init__(self, offset: int = -1, error: KafkaError | None = None) -> None:
        self._offset = offset
        self._error = error

    def error(self) -> KafkaError | None:
        return self._error

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def leader_epoch(self) -> int:
        return 3

    def headers(self) -> None:
        """There are none."""

    def value(self) -> bytes:
        return b"producer-1-1"


class FakeConsumer:
    """A consumer whose group speaks within `poll`; it writes down what is called."""

    def __init__(self, *polled: Callable[["FakeConsumer"], FakeMessage | None], committed: int = 5) -> None:
        self.polled = list(polled)
        self.offset = committed
        self.fenced: KafkaError | None = None
        self.calls: list[tuple[str, list[tuple[int, int]]]] = []
        self.callbacks: dict[str, Callable[[Any, list[TopicPartition]], None]] = {}

    def subscribe(self, _topics: list[str], **callbacks: Callable[[Any, list[TopicPartition]], None]) -> None:
        self.callbacks = callbacks

    def poll(self, _timeout_s: float) -> FakeMessage | None:
        return self.polled.pop(0)(self) if self.polled else None

    def called_back(self, callback: str, *partitions: int) -> None:
        self.callbacks[callback](self, [TopicPartition("orders", number) for number in partitions])

    def consumer_group_metadata(self) -> bytes:
        return b"CGMDv2:\x01\x00\x00\x00group-1\0m-1\0\x01"

    def committed(self, places: list[TopicPartition], **_limits: Any) -> list[Any]:
        return [_Answered(TopicPartition(place.topic, place.partition, self.offset)) for place in places]

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[Any]:
        assert not asynchronous
        self._note("commit", offsets)
        return [_Answered(place) for place in offsets]

    def assign(self, places: list[TopicPartition]) -> None:
        self._note("assign", places)

    def incremental_assign(self, places: list[TopicPartition]) -> None:
        self._note("incremental_assign", places)

    def unassign(self) -> None:
        self._note("unassign", [])

    def incremental_unassign(self, places: list[TopicPartition]) -> None:
        self._note("incremental_unassign", places)

    def store_offsets(self, offsets: list[TopicPartition]) -> None:
        if self.fenced is not None:
            raise KafkaException(self.fenced)
        self._note("store_offsets", offsets)

    def close(self) -> None:
        self._note("close", [])

    def _note(self, call: str, places: list[TopicPartition]) -> None:
        self.calls.append((call, [(place.partition, place.offset) for place in places]))


class BreakingConsumer(FakeConsumer):
    """A consumer whose library loses an exception of a callback during the close."""

    def close(self) -> None:
        super().close()
        raise SystemError("exception <class 'str'> is not a BaseException subclass")


class _Answered:
    def __init__(self, place: TopicPartition, error: KafkaError | None = None) -> None:
        self.topic, self.partition, self.offset, self.error = place.topic, place.partition, place.offset, error


def assign_both(consumer: FakeConsumer) -> FakeMessage | None:
    consumer.called_back("on_assign", 0, 1)
    return None


def message(offset: int) -> Callable[[FakeConsumer], FakeMessage]:
    return lambda _consumer: FakeMessage(offset)


def revoke_both(consumer: FakeConsumer) -> FakeMessage | None:
    consumer.called_back("on_revoke", 0, 1)
    return None


class Member:
    """A member connected to a fake."""

    def __init__(self, path: Path, consumer: FakeConsumer, **parameters: object) -> None:
        (plan,) = members(members=1, **parameters)
        recorder = Recorder(plan.process, JsonlWriter(path).write, now_ns)
        automatic = plan.parameters["commits"] == "automatic"
        self.rules = Subscribing(plan, recorder, time.monotonic, library_commits=automatic)
        self.shell = Subscriber(plan, self.rules, threading.Event(), lambda _configuration: cast("Consumer", consumer))
        self.path = path
        self.shell.act(Restart())
        self.shell.act(Subscribe())

    def poll(self) -> None:
        carry_out(self.rules.poll(), self.shell.act)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "member.jsonl"


@pytest.mark.parametrize(
    ("assignor", "calls"),
    [
        pytest.param(
            "range",
            [("assign", [(0, 5), (1, 5)]), ("commit", [(0, 8)]), ("unassign", [])],
            id="eager: everything at once",
        ),
        pytest.param(
            "cooperative-sticky",
            [
                ("incremental_assign", [(0, 5), (1, 5)]),
                ("commit", [(0, 8)]),
                ("incremental_unassign", [(0, -1001), (1, -1001)]),
            ],
            id="cooperative: what moves",
        ),
    ],
)
def test_what_a_callback_does(path: Path, assignor: str, calls: list[object]) -> None:
    consumer = FakeConsumer(assign_both, message(7), revoke_both, message(9))
    member = Member(path, consumer, assignor=assignor)
    member.poll()
    assert consumer.calls == calls
    ended = [line for line in member.lines if line["kind"] == "poll" and line["type"] == "ok"]
    polls = [[each["offset"] for each in line["records"]] for line in ended]
    assert polls == [[], [7], [9]]
    assert {(line["member"], line["generation"]) for line in member.lines[2:]} == {("m-1", 1)}


@pytest.mark.parametrize(
    ("committed", "begins"),
    [
        pytest.param(-1001, OFFSET_BEGINNING, id="nothing is committed: the log's start"),
        pytest.param(12, 12, id="where the group has come to"),
    ],
)
def test_where_it_begins(path: Path, committed: int, begins: int) -> None:
    consumer = FakeConsumer(assign_both, committed=committed)
    Member(path, consumer).poll()
    assert consumer.calls == [("assign", [(0, begins), (1, begins)])]
    assert begins != OFFSET_STORED


def test_an_automatic_commit_is_of_what_the_history_has_and_is_written_down_when_it_is_told_of(path: Path) -> None:
    consumer = FakeConsumer(assign_both, message(7))
    member = Member(path, consumer, commits="automatic")
    member.poll()
    assert ("store_offsets", [(0, 8)]) not in consumer.calls
    member.poll()
    assert ("store_offsets", [(0, 8)]) in consumer.calls
    member.shell.committed(None, [_Answered(TopicPartition("orders", 0, 8))])  # type: ignore[list-item]
    commits = [line for line in member.lines if line["kind"] == "commit"]
    assert [(line["type"], line["offset"], line["mode"]) for line in commits] == [
        ("invoke", 8, "automatic"),
        ("ok", 8, "automatic"),
    ]


def test_who_was_fenced_says_why_and_goes_without_waiting_for_its_end(path: Path) -> None:
    fenced = FakeMessage(error=KafkaError(KafkaError._FATAL, "fenced: another has the instance"))
    consumer = FakeConsumer(assign_both, lambda _consumer: fenced)
    member = Member(path, consumer, static=True)
    assert carry_out(member.rules.poll(), member.shell.act) is True
    (last,) = member.lines[-1:]
    assert (last["kind"], last["type"], last["error"]) == ("poll", "fail", "_FATAL: fenced: another has the instance")
    member.shell.act(Leave())
    assert ("close", []) not in consumer.calls


@pytest.mark.parametrize("code", [KafkaError._STATE, KafkaError._FATAL])
def test_what_the_fenced_have_read_is_not_theirs_to_commit(path: Path, code: int) -> None:
    consumer = FakeConsumer(assign_both, message(7))
    member = Member(path, consumer, commits="automatic")
    member.poll()
    consumer.fenced = KafkaError(code)
    member.poll()
    assert "store_offsets" not in {call for call, _ in consumer.calls}


def test_positions_that_cannot_be_stored_for_another_reason_end_the_client(path: Path) -> None:
    consumer = FakeConsumer(assign_both, message(7))
    member = Member(path, consumer, commits="automatic")
    member.poll()
    consumer.fenced = KafkaError(KafkaError._INVALID_ARG)
    with pytest.raises(KafkaException):
        member.poll()


def test_whoever_leaves_closes_its_consumer_once(path: Path) -> None:
    consumer = FakeConsumer()
    member = Member(path, consumer)
    member.shell.act(Leave())
    member.shell.act(Restart())
    assert consumer.calls == [("close", [])]


def test_a_member_whose_consumer_breaks_during_its_close_starts_again(path: Path) -> None:
    consumer = BreakingConsumer()
    member = Member(path, consumer)
    for step in (Leave(), Restart(), Restart()):
        member.shell.act(step)
    assert consumer.calls == [("close", []), ("close", [])]

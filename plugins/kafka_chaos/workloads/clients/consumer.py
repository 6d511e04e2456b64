"""One consumer process: reads every partition, commits what it read, and in the end reads to the end."""

import hashlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter, Operation, OpKind, OpType, Record, now_ns
from harness.store.recording import Recorder
from kafka_chaos.workloads.clients.configuration import group_configuration
from kafka_chaos.workloads.clients.outcomes import commit_outcome, described

log = logging.getLogger(__name__)

POLL_TIMEOUT_S = 0.1
POLL_RECORDS = 500
ASK_TIMEOUT_S = 3.0
RETRY_PAUSE_S = 0.1
SETTLE_S = 0.5
"""The end has settled when it stays where it is for this long."""
LIVE, AGAIN = "assign", "reread"
"""Modes of a poll: following the log as it grows, and from the start once more."""

Place = tuple[str, int]
T = TypeVar("T")


def configuration(
    plan: ClientPlan, on_commit: Callable[[KafkaError | None, list[TopicPartition]], None]
) -> dict[str, Any]:
    """Return librdkafka's configuration; after a truncation it reads from the start again."""
    return {
        **group_configuration(plan),
        "on_commit": on_commit,
        "auto.offset.reset": "earliest",
        "check.crcs": True,
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 50,
    }


@dataclass(slots=True)
class Reader:
    """Polls, commits and asks, and writes each of them down."""

    plan: ClientPlan
    recorder: Recorder
    consumer: Consumer
    places: list[Place]
    mode: str = LIVE
    positions: dict[Place, int] = field(default_factory=dict)
    """Next offset to read, of every partition that gave a record."""
    committed: dict[Place, int] = field(default_factory=dict)
    """Highest position whose commit was tried; a commit never goes back on purpose."""
    committing: dict[Place, Operation] = field(default_factory=dict)
    """The commit that is on its way."""

    def read_from_the_start(self) -> None:
        """Let the next poll give each partition's first records."""
        self.consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for topic, partition in self.places])
        self.positions = {}

    def poll(self) -> None:
        """Take what there is, for a moment at most."""
        invoked = self.recorder.invoke(OpKind.POLL, mode=self.mode)
        try:
            messages = self.consumer.consume(num_messages=POLL_RECORDS, timeout=POLL_TIMEOUT_S)
        except KafkaException as error:
            self.recorder.end(invoked, OpType.FAIL, error=described(error.args[0]))
            return
        refusals = [refusal for message in messages if (refusal := message.error()) is not None]
        records = [record_of(message) for message in messages if message.error() is None]
        for record in records:
            self.positions[(record.topic, record.partition)] = record.offset + 1
        outcome = OpType.FAIL if refusals and not records else OpType.OK
        errors = "; ".join(described(refusal) for refusal in refusals)
        self.recorder.end(invoked, outcome, records=tuple(records), error=errors)

    def commit(self) -> None:
        """Ask for a commit of the positions that have moved on, unless one is still on its way.

        One operation a partition, one request for all. Later polls hand over the answer: waiting for it here would
        keep this process from reading for as long as its group has no coordinator.
        """
        moved = {place: to for place, to in sorted(self.positions.items()) if to > self.committed.get(place, -1)}
        if not moved or self.committing:
            return
        self.committing = {place: self._invoke(OpKind.COMMIT, place, offset=offset) for place, offset in moved.items()}
        self.committed |= moved
        offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in moved.items()]
        try:
            self.consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            self.commit_answered(error.args[0], [])

    def commit_answered(self, error: KafkaError | None, answers: list[TopicPartition]) -> None:
        """Take the answer to the commit that is on its way: an error of all, or one a partition."""
        errors = {(answer.topic, answer.partition): answer.error for answer in answers}
        for place, invoked in self.committing.items():
            refusal = error or errors.get(place)
            if refusal is None:
                self.recorder.end(invoked, OpType.OK)
            else:
                self.recorder.end(invoked, commit_outcome(refusal.code()), error=described(refusal))
        self.committing = {}

    def commit_the_rest(self, deadline_s: float) -> None:
        """Commit the last positions and wait for the answers."""
        self._await_commit(deadline_s)
        self.commit()
        self._await_commit(deadline_s)

    def _await_commit(self, deadline_s: float) -> None:
        while self.committing and time.monotonic() < deadline_s:
            self.poll()

    def end_offset(self, place: Place, deadline_s: float) -> int | None:
        """Return the high watermark of a partition; None when its leader gave none before the deadline."""

        def ask() -> tuple[int, int]:
            low, high = self.consumer.get_watermark_offsets(TopicPartition(*place), timeout=ASK_TIMEOUT_S, cached=False)
            return low, high

        answer = self._ask(OpKind.END_OFFSET, place, ask, lambda marks: marks[1], deadline_s)
        if answer is None:
            return None
        self.positions.setdefault(place, answer[0])
        return answer[1]

    def read_committed(self, place: Place, deadline_s: float) -> None:
        """Read the group's offset of one partition back."""

        def ask() -> TopicPartition:
            (answer,) = self.consumer.committed([TopicPartition(*place)], timeout=ASK_TIMEOUT_S)
            if answer.error is not None:
                raise KafkaException(answer.error)
            return answer

        self._ask(OpKind.FETCH_COMMITTED, place, ask, lambda answer: max(-1, answer.offset), deadline_s)

    def _ask(
        self, kind: OpKind, place: Place, ask: Callable[[], T], offset_of: Callable[[T], int], deadline_s: float
    ) -> T | None:
        """Ask until there is an answer or the deadline has passed; every try is an operation."""
        while True:
            invoked = self._invoke(kind, place)
            try:
                answer = ask()
            except KafkaException as error:
                self.recorder.end(invoked, OpType.FAIL, error=described(error.args[0]))
            else:
                self.recorder.end(invoked, OpType.OK, offset=offset_of(answer))
                return answer
            if time.monotonic() >= deadline_s:
                return None
            time.sleep(RETRY_PAUSE_S)

    def _invoke(self, kind: OpKind, place: Place, offset: int = -1) -> Operation:
        group = "" if kind is OpKind.END_OFFSET else self.plan.process
        return self.recorder.invoke(kind, topic=place[0], partition=place[1], offset=offset, group=group)


def record_of(message: Message) -> Record:
    """Return one record of a poll as it goes into the history."""
    return Record(
        topic=str(message.topic()),
        partition=_number(message.partition()),
        offset=_number(message.offset()),
        value=value_id(message.value()),
        leader_epoch=_number(message.leader_epoch()),
    )


def value_id(value: bytes | str | None) -> str:
    """Return the value as text where it is UTF-8, as all of ours are, else its SHA-256."""
    if not isinstance(value, bytes):
        return value or ""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return hashlib.sha256(value).hexdigest()


def _number(value: int | None) -> int:
    return -1 if value is None else value


def read_to_the_end(reader: Reader, deadline_s: float) -> bool:
    """Read until the ends of all partitions are reached and stay where they are; False when the deadline passed."""
    settled: dict[Place, int | None] = {}
    while time.monotonic() < deadline_s:
        ends = {place: reader.end_offset(place, deadline_s) for place in reader.places}
        if None not in ends.values() and ends == settled:
            return True
        settled = ends
        settle_s = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline_s and (time.monotonic() < settle_s or _behind(reader, ends)):
            reader.poll()
    return False


def _behind(reader: Reader, ends: dict[Place, int | None]) -> bool:
    return any(end is not None and reader.positions.get(place, 0) < end for place, end in ends.items())


def consume(plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
    """Poll and commit until `stop` is set; then read to the end, commit, and read the committed offsets back."""
    places = [(topic, partition) for topic, count in sorted(plan.topics.items()) for partition in range(count)]
    reader: Reader

    def on_commit(error: KafkaError | None, answers: list[TopicPartition]) -> None:
        reader.commit_answered(error, answers)

    consumer = Consumer(configuration(plan, on_commit))
    reader = Reader(plan, Recorder(plan.process, operations.write, now_ns), consumer, places)
    reader.read_from_the_start()
    commit_due_s = time.monotonic() + plan.parameters["commit_interval_s"]
    while not stop.is_set():
        reader.poll()
        if time.monotonic() >= commit_due_s:
            reader.commit()
            commit_due_s = time.monotonic() + plan.parameters["commit_interval_s"]
    deadline_s = time.monotonic() + plan.parameters["final_read_timeout_s"]
    if plan.parameters["reread"]:
        reader.mode = AGAIN
        reader.read_from_the_start()
    whole = read_to_the_end(reader, deadline_s)
    reader.commit_the_rest(deadline_s)
    for place in places:
        reader.read_committed(place, deadline_s)
    consumer.close()
    log.info("consumer.complete process=%s read_to_the_end=%s", plan.process, whole)

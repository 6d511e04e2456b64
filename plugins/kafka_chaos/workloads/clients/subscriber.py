"""A member of a group: carries out its rules with librdkafka's `subscribe()` and callbacks."""

import logging
import struct
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_STORED, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Position

from harness.client_rules import steps
from harness.client_rules.subscribing import AUTOMATIC, EAGER, Subscribing
from harness.contracts.workloads import ClientPlan, Stop
from harness.store.history import JsonlWriter, Record, now_ns
from harness.store.recording import Recorder
from harness.values import TopicPartition
from kafka_chaos.workloads.clients.errors import described
from kafka_chaos.workloads.clients.group_member import (
    POLL_RECORDS,
    POLL_TIMEOUT_S,
    GroupMember,
    configuration,
    end_of,
    record_of,
)

log = logging.getLogger(__name__)

_METADATA = b"CGMDv2:"
"""Prefix of librdkafka's group metadata; generation, group and member id follow, each text zero-terminated."""

_OVER = frozenset({KafkaError._STATE, KafkaError._FATAL})
"""librdkafka's errors for partitions that are no longer assigned: their positions are for other members to commit."""

Callback = Callable[[Iterable[TopicPartition], tuple[Record, ...]], steps.Script[None]]


class Subscriber(GroupMember):
    """Carries out the rules of one member."""

    _rules: Subscribing

    def __init__(
        self,
        plan: ClientPlan,
        rules: Subscribing,
        stop: threading.Event,
        connect: Callable[[dict[str, Any]], Consumer] = Consumer,
    ) -> None:
        super().__init__(plan, rules, stop, connect)
        self._automatic = plan.parameters["commits"] == AUTOMATIC
        self._polled: list[Record] = []
        """Records of the current poll."""
        self._passed: dict[TopicPartition, int] = {}
        """How far partitions have been read whose end this poll reached."""
        self._recorded: dict[TopicPartition, int] = {}
        """Positions after records in the history: only those may be committed automatically."""

    def configuration(self) -> dict[str, Any]:
        """Return an ordinary consumer's configuration, with the group's settings."""
        parameters = self._plan.parameters
        instance = {"group.instance.id": parameters["instance"]} if parameters["instance"] else {}
        return {
            **configuration(self._plan),
            **instance,
            "group.id": parameters["group"],
            "partition.assignment.strategy": parameters["assignor"],
            "session.timeout.ms": parameters["session_timeout_ms"],
            "heartbeat.interval.ms": parameters["heartbeat_interval_ms"],
            "max.poll.interval.ms": parameters["max_poll_interval_ms"],
            "enable.auto.commit": self._automatic,
            "auto.commit.interval.ms": round(parameters["commit_interval_s"] * 1000),
        }

    def act(self, step: steps.Step) -> steps.StepResult:
        """Do one step."""
        match step:
            case steps.Subscribe():
                self._consumer.subscribe(
                    sorted(self._plan.topics),
                    on_assign=self._callback(self._rules.assigned),
                    on_revoke=self._callback(self._rules.revoked),
                    on_lost=self._callback(self._rules.lost),
                )
            case steps.Assign(positions):
                self._assign([Position(*partition, _offset(at)) for partition, at in positions.items()])
            case steps.Unassign(partitions):
                self._unassign(partitions)
            case steps.Leave():
                self._store()
                self._close()
            case _:
                return super().act(step)
        return steps.DONE

    def _callback(self, callback: Callback) -> Callable[[Consumer, list[Position]], None]:
        def called(_consumer: Consumer, partitions: list[Position]) -> None:
            self._look_who_it_is()
            self._passed.clear()
            before = self._handed_out()
            script = callback([(each.topic, each.partition) for each in partitions], before)
            steps.carry_out(script, self.act)

        return called

    def _look_who_it_is(self) -> None:
        self._rules.known_as(*identity_in(self._consumer.consumer_group_metadata()))

    def _handed_out(self) -> tuple[Record, ...]:
        """Return the records of this poll so far, for the rules to write down."""
        records = tuple(self._polled)
        self._polled.clear()
        self._recorded |= {(record.topic, record.partition): record.offset + 1 for record in records}
        return records

    def _poll(self) -> steps.StepResult:
        self._store()
        self._passed.clear()
        until_s, errors = time.monotonic() + POLL_TIMEOUT_S, list[KafkaError]()
        while len(self._polled) < POLL_RECORDS and (left_s := until_s - time.monotonic()) > 0:
            message = self._consumer.poll(left_s)
            if message is None:
                continue
            if (error := message.error()) is None:
                self._polled.append(record_of(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._passed |= end_of(message)
            else:
                errors.append(error)
        self._look_who_it_is()
        is_over = any(error.code() == KafkaError._FATAL for error in errors)
        if is_over:
            self._open.pop_all()  # close may block for ever if fenced; the next restart ends it
        return steps.StepResult(
            records=self._handed_out(),
            error="; ".join(map(described, errors)) or None,
            is_over=is_over,
            passed=dict(self._passed),
        )

    def _assign(self, positions: list[Position]) -> None:
        if self._rules.protocol == EAGER:
            self._consumer.assign(positions)
        else:
            self._consumer.incremental_assign(positions)

    def _unassign(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._store()
        if self._rules.protocol == EAGER:
            self._consumer.unassign()
        else:
            self._consumer.incremental_unassign([Position(*partition) for partition in partitions])

    def _store(self) -> None:
        """Allow automatic commits of positions up to what the history has."""
        positions = [Position(*key, offset) for key, offset in self._recorded.items()]
        self._recorded.clear()
        if self._automatic and positions:
            try:
                self._consumer.store_offsets(offsets=positions)
            except KafkaException as error:
                if error.args[0].code() not in _OVER:  # the next poll reports the cause
                    raise

    def committed(self, error: KafkaError | None, answers: list[Position]) -> None:
        """Take the answer to a commit, which the rules may not know yet."""
        if not self._automatic:
            super().committed(error, answers)
            return
        for answer in answers:
            refusal = error or answer.error
            code, text = (0, "") if refusal is None else (refusal.code(), described(refusal))
            if answer.offset >= 0:
                self._rules.commits.answered((answer.topic, answer.partition), answer.offset, code, text)


def identity_in(metadata: bytes | None) -> tuple[str, int]:
    """Return member id and generation from librdkafka's group metadata; empty and -1 if missing."""
    if metadata is None or not metadata.startswith(_METADATA):
        return "", -1
    (generation,) = struct.unpack_from("=i", metadata, len(_METADATA))
    _group, member, *_ = metadata[len(_METADATA) + 4 :].split(b"\0")
    return member.decode(), generation


def _offset(position: int | None) -> int:
    if position is None:
        return OFFSET_STORED
    return OFFSET_BEGINNING if position < 0 else position


def subscribe(plan: ClientPlan, operations: JsonlWriter, stop: Stop) -> None:
    """Be a member until `stop` is set; then read until the group reaches the end, if there is time, and leave."""
    recorder = Recorder(plan.process, operations.write, now_ns, plan.first_index)
    library_commits = plan.parameters["commits"] == AUTOMATIC
    rules = Subscribing(plan, recorder, time.monotonic, library_commits=library_commits, at_once=lambda: stop.at_once)
    whole = Subscriber(plan, rules, stop).run()
    log.info("member.complete process=%s group_at_the_end=%s", plan.process, whole)

"""A consumer or committer process: carries out the rules of a group's client with librdkafka."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position

from harness.client_rules import steps
from harness.client_rules.committing import Committing, GroupRules
from harness.client_rules.reading import Reading
from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter, OpKind, Record, now_ns
from harness.store.recording import Recorder
from harness.values import TopicPartition, value_id
from kafka_chaos.workloads.clients.connection import connection
from kafka_chaos.workloads.clients.errors import described

log = logging.getLogger(__name__)

POLL_TIMEOUT_S = 0.1
POLL_RECORDS = 500
QUESTION_TIMEOUT_S = 3.0


def configuration(plan: ClientPlan) -> dict[str, Any]:
    """Return librdkafka's configuration: own group, manual commits, quick retries, re-read after a truncation."""
    isolation = {"isolation.level": level} if (level := plan.parameters.get("isolation")) else {}
    return {
        **connection(plan),
        **isolation,
        "enable.partition.eof": True,
        "group.id": plan.process,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "socket.timeout.ms": max(1000, plan.parameters["request_timeout_ms"]),
        "retry.backoff.ms": 50,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "socket.connection.setup.timeout.ms": 1000,
        "topic.metadata.refresh.fast.interval.ms": 50,
        "topic.metadata.refresh.interval.ms": 2000,
        "coordinator.query.interval.ms": 500,
        "auto.offset.reset": "earliest",
        "check.crcs": True,
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 50,
    }


class GroupMember:
    """Carries out the rules of one process."""

    _consumer: Consumer
    """Set from the first step, which is a restart."""

    def __init__(
        self,
        plan: ClientPlan,
        rules: GroupRules,
        stop: threading.Event,
        connect: Callable[[dict[str, Any]], Consumer] = Consumer,
    ) -> None:
        self._plan = plan
        self._rules = rules
        self._stop = stop
        self._connect = connect
        self._open = ExitStack()

    def run(self) -> object:
        """Carry out the rules, until they end after `stop` is set."""
        with self._open:
            return steps.carry_out(self._rules.script(self._stop.is_set), self.act)

    def configuration(self) -> dict[str, Any]:
        """Return librdkafka's configuration, without callbacks."""
        return configuration(self._plan)

    def act(self, step: steps.Step) -> steps.StepResult:
        """Do one step."""
        match step:
            case steps.Restart():
                self._close()
                self._consumer = self._connect({**self.configuration(), "on_commit": self.committed})
                self._open.callback(self._consumer.close)
            case steps.ReadFromTheStart():
                partitions = steps.partitions_of(self._plan.topics)
                self._consumer.assign([Position(*partition, OFFSET_BEGINNING) for partition in partitions])
            case steps.Poll():
                return self._poll()
            case steps.Commit():
                self._commit(step)
            case steps.Question(kind, partition):
                return self._ask(kind, partition)
            case steps.Pause(length_s, until_stopped=True):
                self._stop.wait(length_s)
            case steps.Pause(length_s):
                time.sleep(length_s)
        return steps.DONE

    def _close(self) -> None:
        """Close the consumer; it is dropped where confluent-kafka 2.16 breaks while it calls back during the close."""
        try:
            self._open.close()
        except SystemError as error:
            log.info("member.dropped error=%s", error)

    def _poll(self) -> steps.StepResult:
        try:
            messages = self._consumer.consume(num_messages=POLL_RECORDS, timeout=POLL_TIMEOUT_S)
        except KafkaException as error:
            return steps.StepResult(error=described(error.args[0]))
        return result_of(messages)

    def _commit(self, commit: steps.Commit) -> None:
        positions = [Position(*partition, offset) for partition, offset in commit.positions.items()]
        try:
            if commit.wait:
                self.committed(None, self._consumer.commit(offsets=positions, asynchronous=False) or [])
            else:
                self._consumer.commit(offsets=positions, asynchronous=True)
        except KafkaException as error:
            self.committed(error.args[0], [])

    def committed(self, error: KafkaError | None, answers: list[Position]) -> None:
        """Take the answer to the pending commit: one error for all, or one each; no error is a success.

        A repeated report of a commit that was waited for changes nothing.
        """
        errors = {(answer.topic, answer.partition): answer.error for answer in answers}
        for partition in list(self._rules.commits.undecided):
            refusal = error or errors.get(partition)
            if refusal is None:
                self._rules.commits.decided(partition)
            else:
                self._rules.commits.decided(partition, refusal.code(), described(refusal))

    def _ask(self, kind: OpKind, partition: TopicPartition) -> steps.StepResult:
        place = Position(*partition)
        try:
            if kind is OpKind.END_OFFSET:
                log_start, end = self._consumer.get_watermark_offsets(place, timeout=QUESTION_TIMEOUT_S, cached=False)
                return steps.StepResult(offset=end, log_start=log_start)
            (position,) = self._consumer.committed([place], timeout=QUESTION_TIMEOUT_S)
        except KafkaException as error:
            return steps.StepResult(error=described(error.args[0]))
        return steps.StepResult(
            offset=position.offset, error=None if position.error is None else described(position.error)
        )


def result_of(messages: Sequence[Message]) -> steps.StepResult:
    """Return the result of a poll; at a partition's end librdkafka says how far it has come, past markers too."""
    records: list[Record] = []
    errors: list[str] = []
    passed: dict[TopicPartition, int] = {}
    for message in messages:
        error = message.error()
        if error is None:
            records.append(record_of(message))
        elif error.code() == KafkaError._PARTITION_EOF:
            passed |= end_of(message)
        else:
            errors.append(described(error))
    return steps.StepResult(records=tuple(records), error="; ".join(errors) if errors else None, passed=passed)


def end_of(message: Message) -> dict[TopicPartition, int]:
    """Return the position at the end of a partition, of the event that says so."""
    return {(str(message.topic()), _number(message.partition())): _number(message.offset())}


def record_of(message: Message) -> Record:
    """Return one record of a poll as it goes into the history."""
    headers = message.headers()
    return Record(
        topic=str(message.topic()),
        partition=_number(message.partition()),
        offset=_number(message.offset()),
        value=value_id(message.value(), headers if isinstance(headers, list) else ()),
        leader_epoch=_number(message.leader_epoch()),
    )


def _number(value: int | None) -> int:
    return -1 if value is None else value


def consume(plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
    """Poll and commit until `stop` is set; then read to the end, commit, and read the committed offsets back."""
    rules = Reading(plan, Recorder(plan.process, operations.write, now_ns), time.monotonic)
    whole = GroupMember(plan, rules, stop).run()
    log.info("consumer.complete process=%s read_to_the_end=%s", plan.process, whole)


def commit(plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
    """Commit and restart until `stop` is set; then read everything back."""
    rules = Committing(plan, Recorder(plan.process, operations.write, now_ns), time.monotonic)
    GroupMember(plan, rules, stop).run()
    log.info("committer.complete process=%s", plan.process)

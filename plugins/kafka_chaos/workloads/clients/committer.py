"""One committing process: rising positions, one commit after the other; a restart goes on from what it reads back."""

import logging
import threading
import time
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka import Consumer, KafkaException, TopicPartition

from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter, OpKind, OpType, now_ns
from harness.store.recording import Recorder
from kafka_chaos.workloads.clients.configuration import group_configuration
from kafka_chaos.workloads.clients.outcomes import commit_outcome, described

log = logging.getLogger(__name__)

ASK_TIMEOUT_S = 3.0
RETRY_PAUSE_S = 0.1

Place = tuple[str, int]


@dataclass(slots=True)
class Committer:
    """Commits and reads back, and writes each of them down."""

    plan: ClientPlan
    recorder: Recorder
    positions: dict[Place, int] = field(default_factory=dict)
    """Highest position that was tried to commit, or read back."""

    def commit(self, consumer: Consumer) -> None:
        """Commit every partition one step further: one operation a partition, one request for all."""
        self.positions = {place: position + 1 for place, position in self.positions.items()}
        invoked = {
            place: self.recorder.invoke(
                OpKind.COMMIT, topic=place[0], partition=place[1], offset=position, group=self.plan.process
            )
            for place, position in self.positions.items()
        }
        offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in self.positions.items()]
        try:
            answers = consumer.commit(offsets=offsets, asynchronous=False) or []
        except KafkaException as error:
            refusal = error.args[0]
            for operation in invoked.values():
                self.recorder.end(operation, commit_outcome(refusal.code()), error=described(refusal))
            return
        errors = {(answer.topic, answer.partition): answer.error for answer in answers}
        for place, operation in invoked.items():
            refusal = errors.get(place)
            if refusal is None:
                self.recorder.end(operation, OpType.OK)
            else:
                self.recorder.end(operation, commit_outcome(refusal.code()), error=described(refusal))

    def resume(self, consumer: Consumer, deadline_s: float) -> None:
        """Read every position back, and go on from there; every try is an operation."""
        for place in self.positions:
            while time.monotonic() < deadline_s and not self._read_back(consumer, place):
                time.sleep(RETRY_PAUSE_S)

    def _read_back(self, consumer: Consumer, place: Place) -> bool:
        invoked = self.recorder.invoke(
            OpKind.FETCH_COMMITTED, topic=place[0], partition=place[1], group=self.plan.process
        )
        try:
            (answer,) = consumer.committed([TopicPartition(*place)], timeout=ASK_TIMEOUT_S)
            if answer.error is not None:
                raise KafkaException(answer.error)
        except KafkaException as error:
            self.recorder.end(invoked, OpType.FAIL, error=described(error.args[0]))
            return False
        committed = max(-1, answer.offset)
        self.recorder.end(invoked, OpType.OK, offset=committed)
        self.positions[place] = max(self.positions[place], committed)
        return True


def commit(plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
    """Commit and restart until `stop` is set; then read everything back."""
    places = [(topic, partition) for topic, count in sorted(plan.topics.items()) for partition in range(count)]
    committer = Committer(plan, Recorder(plan.process, operations.write, now_ns), dict.fromkeys(places, 0))
    connected = partial(Consumer, group_configuration(plan))
    restarts = 0
    while True:
        consumer = connected()
        committer.resume(consumer, time.monotonic() + plan.parameters["final_read_timeout_s"])
        if stop.is_set():
            break
        restart_s = time.monotonic() + plan.parameters["restart_interval_s"]
        while not stop.is_set() and time.monotonic() < restart_s:
            committer.commit(consumer)
            stop.wait(plan.parameters["commit_interval_s"])
        consumer.close()
        restarts += 1
    consumer.close()
    log.info("committer.complete process=%s restarts=%d", plan.process, restarts)

"""One producer process: unique values at a steady rate, every send recorded before it is tried and when it ended."""

import logging
import random
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter, Operation, OpKind, OpType, now_ns
from harness.store.recording import Recorder
from kafka_chaos.workloads.clients.outcomes import described, send_outcome

log = logging.getLogger(__name__)

MAX_LAG_S = 0.5
"""A producer that could not send for longer than this skips what it missed instead of sending it as a burst."""
FLUSH_MARGIN_S = 2.0


def configuration(plan: ClientPlan) -> dict[str, Any]:
    """Return librdkafka's configuration: it retries through failovers and gives up on a record soon."""
    parameters = plan.parameters
    return {
        "bootstrap.servers": plan.bootstrap_servers,
        "client.id": plan.process,
        "acks": parameters["acks"],
        "enable.idempotence": parameters["idempotence"],
        "message.timeout.ms": parameters["message_timeout_ms"],
        "request.timeout.ms": min(parameters["request_timeout_ms"], parameters["message_timeout_ms"]),
        "retries": parameters["retries"],
        "max.in.flight.requests.per.connection": parameters["max_in_flight"],
        "linger.ms": parameters["linger_ms"],
        "batch.num.messages": parameters["batch_records"],
        "retry.backoff.ms": 50,
        "retry.backoff.max.ms": 200,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "socket.connection.setup.timeout.ms": 1000,
        "topic.metadata.refresh.fast.interval.ms": 50,
        "topic.metadata.refresh.interval.ms": 2000,
    }


@dataclass(slots=True)
class Sender:
    """Makes the records and writes down what becomes of them."""

    plan: ClientPlan
    recorder: Recorder
    producer: Producer
    rng: random.Random
    sent: int = 0
    slots: list[tuple[str, int]] = field(default_factory=list)
    """Every topic and partition."""

    def __post_init__(self) -> None:
        self.slots = [(topic, p) for topic, count in sorted(self.plan.topics.items()) for p in range(count)]

    def send(self) -> None:
        """Send one record; a key always goes to the same partition."""
        key_number = self.rng.randrange(self.plan.parameters["keys"])
        topic, partition = self.slots[key_number % len(self.slots)]
        value = self._unique_value()
        invoked = self.recorder.invoke(
            OpKind.SEND,
            topic=topic,
            partition=partition,
            key=f"key-{key_number}",
            value=value,
            acks=self.plan.parameters["acks"],
        )
        try:
            self.producer.produce(
                topic, value=value, key=invoked.key, partition=partition, on_delivery=partial(self._delivered, invoked)
            )
        except BufferError as error:
            self.recorder.end(invoked, OpType.FAIL, error=f"queue full: {error}")
        except KafkaException as error:
            self.recorder.end(invoked, OpType.FAIL, error=described(error.args[0]))

    def _unique_value(self) -> str:
        """Return the next value: the process, and its number with as many zeros as the length asks for."""
        self.sent += 1
        prefix = f"{self.plan.process}-"
        return f"{prefix}{self.sent:0{max(1, self.plan.parameters['value_bytes'] - len(prefix))}d}"

    def _delivered(self, invoked: Operation, error: KafkaError | None, message: Message) -> None:
        if error is None:
            offset = message.offset()
            self.recorder.end(invoked, OpType.OK, offset=-1 if offset is None or offset < 0 else offset)
            return
        outcome = send_outcome(error.code(), retries=self.plan.parameters["retries"])
        self.recorder.end(invoked, outcome, error=described(error))


def produce(plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
    """Send at the plan's rate until `stop` is set, then wait for what is still on its way."""
    producer = Producer(configuration(plan))
    sender = Sender(plan, Recorder(plan.process, operations.write, now_ns), producer, random.Random(plan.seed))  # noqa: S311  repeatable, not secret
    interval_s = 1.0 / plan.parameters["rate_per_s"]
    due_s = time.monotonic()
    while not stop.is_set():
        producer.poll(max(0.0, due_s - time.monotonic()))
        now_s = time.monotonic()
        if now_s < due_s:
            continue  # poll returned early, with a delivery report
        if now_s - due_s > MAX_LAG_S:
            due_s = now_s
        sender.send()
        due_s += interval_s
    left = producer.flush(plan.parameters["message_timeout_ms"] / 1000 + FLUSH_MARGIN_S)
    log.info("producer.complete process=%s sent=%d undecided=%d", plan.process, sender.sent, left)

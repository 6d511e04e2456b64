"""One producer process: the rules of `harness.client_rules.sending`, at a steady rate, carried out with librdkafka."""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from harness.client_rules.sending import Sending
from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter, Operation, now_ns
from harness.store.recording import Recorder
from kafka_chaos.workloads.clients.connection import connection
from kafka_chaos.workloads.clients.errors import described

log = logging.getLogger(__name__)

IDLE_POLL_S = 0.1
PURGED_S = 1.0
"""How long a producer that was given up may take to report what it had in flight."""
MAX_LAG_S = 0.5
"""A producer that was blocked for longer than this skips the missed sends instead of sending a burst."""


def configuration(plan: ClientPlan) -> dict[str, Any]:
    """Return librdkafka's configuration: it retries through failovers and gives up on a record soon."""
    parameters = plan.parameters
    return {
        **connection(plan),
        "acks": parameters["acks"],
        "enable.idempotence": parameters["idempotence"],
        "message.timeout.ms": parameters["message_timeout_ms"],
        "request.timeout.ms": min(parameters["request_timeout_ms"], parameters["message_timeout_ms"]),
        "retries": parameters["retries"],
        "max.in.flight.requests.per.connection": parameters["max_in_flight"],
        "linger.ms": parameters["linger_ms"],
        "batch.num.messages": parameters["batch_records"],
        "compression.type": parameters.get("compression", "none"),
        "retry.backoff.ms": 50,
        "retry.backoff.max.ms": 200,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "socket.connection.setup.timeout.ms": 1000,
        "topic.metadata.refresh.fast.interval.ms": 50,
        "topic.metadata.refresh.interval.ms": 2000,
    }


class Sender:
    """Hands records to librdkafka, and its reports to the rules."""

    def __init__(self, plan: ClientPlan, recorder: Recorder, make: Callable[[], Producer]) -> None:
        self.rules = Sending(plan, recorder)
        self._make = make
        self._producer = make()
        self._tried_once = plan.parameters["retries"] == 0

    def poll(self, timeout_s: float) -> None:
        """Take what librdkafka reports; after a fatal error go on with another producer."""
        try:
            self._producer.poll(timeout_s)
        except KafkaException as error:
            if not error.args[0].fatal():
                raise
            log.warning("producer.renewed error=%s", described(error.args[0]))
            self._producer.purge()
            self._producer.flush(PURGED_S)
            self._producer = self._make()

    def flush(self) -> int:
        """Wait for records in flight; return how many are undecided."""
        self.poll(0.0)
        return self._producer.flush(self.rules.flush_s)

    def send(self) -> None:
        """Send one record."""
        invoked = self.rules.invoke()
        content = self.rules.content(invoked, time.time_ns() // 1_000_000)
        try:
            self._producer.produce(
                invoked.topic,
                value=content.value,
                key=invoked.key,
                headers=list(content.headers),
                timestamp=content.timestamp_ms,
                partition=invoked.partition,
                on_delivery=partial(self._delivered, invoked),
            )
        except BufferError as error:
            self.rules.never_left(invoked, f"queue full: {error}")
        except KafkaException as error:
            self.rules.never_left(invoked, described(error.args[0]))

    def _delivered(self, invoked: Operation, error: KafkaError | None, message: Message) -> None:
        if error is None:
            offset = message.offset()
            self.rules.acknowledged(invoked, -1 if offset is None else offset)
        else:
            self.rules.given_up(invoked, error.code(), described(error), tried_once=self._tried_once)


def produce(plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
    """Send at the plan's rate until `stop` is set, then wait for records in flight."""
    recorder = Recorder(plan.process, operations.write, now_ns, plan.first_index)
    sender = Sender(plan, recorder, lambda: Producer(configuration(plan)))
    interval_s = 1.0 / plan.parameters["rate_per_s"]
    due_s = time.monotonic()
    while not stop.is_set():
        sender.poll(IDLE_POLL_S if sender.rules.done else max(0.0, due_s - time.monotonic()))
        if sender.rules.done:
            continue
        now_s = time.monotonic()
        if now_s < due_s:
            continue  # poll returned early, with a delivery report
        if now_s - due_s > MAX_LAG_S:
            due_s = now_s
        sender.send()
        due_s += interval_s
    undecided = sender.flush()
    log.info("producer.complete process=%s sent=%d undecided=%d", plan.process, sender.rules.sent, undecided)

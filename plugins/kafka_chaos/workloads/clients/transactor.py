"""A process with transactional ids: the rules of `harness.client_rules.transacting`, carried out with librdkafka."""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Position

from harness.client_rules import steps
from harness.client_rules.sending import Sending
from harness.client_rules.transacting import Transacting
from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter, Operation, now_ns
from harness.store.recording import Recorder
from kafka_chaos.workloads.clients.connection import connection
from kafka_chaos.workloads.clients.errors import described

log = logging.getLogger(__name__)

MARGIN_S = 5.0
"""A call that lasts for so much longer than its time-out is given up."""
_ERRORS_AT_ONCE = 100
"""Polls of one look at most; each that raises has taken one error."""


def configuration(plan: ClientPlan, transactional_id: str) -> dict[str, Any]:
    """Return librdkafka's configuration: it retries through failovers and gives up soon."""
    parameters = plan.parameters
    return {
        **connection(plan),
        "error_cb": _ignored,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": parameters["transaction_timeout_ms"],
        "message.timeout.ms": min(parameters["message_timeout_ms"], parameters["transaction_timeout_ms"]),
        "request.timeout.ms": min(parameters["request_timeout_ms"], parameters["message_timeout_ms"]),
        "linger.ms": parameters["linger_ms"],
        "retry.backoff.ms": 50,
        "retry.backoff.max.ms": 200,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "socket.connection.setup.timeout.ms": 1000,
        "topic.metadata.refresh.fast.interval.ms": 50,
        "topic.metadata.refresh.interval.ms": 2000,
    }


class TransactionalProducers:
    """The producers of one process, by transactional id."""

    def __init__(
        self, plan: ClientPlan, sending: Sending, connect: Callable[[dict[str, Any]], Producer] = Producer
    ) -> None:
        self._plan = plan
        self._sending = sending
        self._connect = connect
        self._patience_s: float = plan.parameters["message_timeout_ms"] / 1000
        self._producers: dict[str, Producer] = {}
        self._lost: set[str] = set()
        """Ids with a record in the present transaction that was not acknowledged."""
        self._undecided: dict[str, dict[int, Operation]] = {}
        """Sends of each id without a report, by index."""

    def act(self, step: steps.TransactionStep, group: Any = None) -> steps.StepResult:
        """Do one step; `group` is the consumer's group metadata, of a member that sends offsets."""
        try:
            return self._act(step, group)
        except KafkaException as error:
            return _failed(error.args[0])
        except SystemError as error:
            return _fatal(error)
        except TimeoutError as error:
            log.info("transactor.unanswered error=%s", error)
            return steps.StepResult(error=str(error), failure=steps.Failure.FATAL)

    def _within(self, call: Callable[..., None], *arguments: Any) -> None:
        """Call with the time-out as last argument.

        librdkafka 2.16 does not return from `send_offsets_to_transaction` when the coordinator of the group was killed
        a moment before, whatever the time-out. The call then stays with its thread.

        Raises:
            TimeoutError: it has not returned by then.
        """
        raised: list[BaseException] = []

        def run() -> None:
            try:
                call(*arguments, self._patience_s)
            except (KafkaException, SystemError) as error:
                raised.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(self._patience_s + MARGIN_S)
        if thread.is_alive():
            raise TimeoutError(f"librdkafka has not returned within {self._patience_s + MARGIN_S:g} s")
        if raised:
            raise raised[0]

    def _act(self, step: steps.TransactionStep, group: Any) -> steps.StepResult:
        match step:
            case steps.InitTransactions(transactional_id):
                self._close(transactional_id)
                producer = self._connect(configuration(self._plan, transactional_id))
                self._producers[transactional_id] = producer
                self._within(producer.init_transactions)
            case steps.BeginTransaction(transactional_id):
                self._lost.discard(transactional_id)
                self._producers[transactional_id].begin_transaction()
            case steps.Send(invoked):
                return self._send(invoked)
            case steps.AwaitSends(transactional_id):
                undecided = self._producers[transactional_id].flush(self._sending.flush_s)
                if undecided or transactional_id in self._lost:
                    return steps.StepResult(error="a record was not acknowledged", failure=steps.Failure.ABORTABLE)
            case steps.SendOffsets(transactional_id, positions):
                offsets = [Position(*partition, offset) for partition, offset in positions.items()]
                self._within(self._producers[transactional_id].send_offsets_to_transaction, offsets, group)
            case steps.EndTransaction(transactional_id, commit):
                producer = self._producers[transactional_id]
                self._within(producer.commit_transaction if commit else producer.abort_transaction)
            case steps.CloseProducer(transactional_id):
                self._close(transactional_id)
        return steps.DONE

    def _send(self, invoked: Operation) -> steps.StepResult:
        """Hand a record to librdkafka."""
        producer = self._producers[invoked.transactional_id]
        content = self._sending.content(invoked, time.time_ns() // 1_000_000)
        try:
            producer.produce(
                invoked.topic,
                value=content.value,
                key=invoked.key,
                headers=list(content.headers),
                timestamp=content.timestamp_ms,
                partition=invoked.partition,
                on_delivery=partial(self._delivered, invoked),
            )
        except BufferError as error:
            self._sending.never_left(invoked, f"queue full: {error}")
            return steps.StepResult(error=str(error), failure=steps.Failure.ABORTABLE)
        except KafkaException as error:
            self._sending.never_left(invoked, described(error.args[0]))
            return _failed(error.args[0])
        self._undecided.setdefault(invoked.transactional_id, {})[invoked.index] = invoked
        _take_reports(producer)
        return steps.DONE

    def _delivered(self, invoked: Operation, error: KafkaError | None, message: Message) -> None:
        if error is None:
            offset = message.offset()
            self._sending.acknowledged(invoked, -1 if offset is None else offset)
        else:
            self._lost.add(invoked.transactional_id)
            self._sending.given_up(invoked, error.code(), described(error), tried_once=False)
        # Last: a fatal error may interrupt the lines above (see `_fatal`), and the record then has no end yet.
        self._undecided.get(invoked.transactional_id, {}).pop(invoked.index, None)

    def poll(self) -> None:
        """Take delivery reports."""
        for producer in self._producers.values():
            _take_reports(producer)

    def close(self) -> None:
        """Drop all of them."""
        for transactional_id in list(self._producers):
            self._close(transactional_id)

    def _close(self, transactional_id: str) -> None:
        """Drop a producer; what is in its queues is not sent any more.

        confluent-kafka loses the delivery report during which a fatal error is raised. Its record may be in the log.
        """
        producer = self._producers.pop(transactional_id, None)
        if producer is not None:
            producer.purge()
            _take_reports(producer)
        for invoked in self._undecided.pop(transactional_id, {}).values():
            self._sending.without_report(invoked)


def _take_reports(producer: Producer) -> None:
    """Take delivery reports; the next call of the producer reports a fatal error too, which `poll` raises."""
    for _ in range(_ERRORS_AT_ONCE):
        try:
            producer.poll(0)
            return
        except KafkaException as error:
            _ignored(error.args[0])
        except SystemError as error:
            _fatal(error)


def _ignored(error: KafkaError) -> None:
    """Take an error that a later call reports too."""
    log.info("transactor.error error=%s", error)


def _fatal(error: SystemError) -> steps.StepResult:
    """Return the result of a call in which a fatal error and delivery reports came together.

    confluent-kafka then runs the delivery callback while the exception of the fatal error is set, or loses that
    exception. Python reports both as a SystemError.
    """
    log.info("transactor.fatal error=%s", error)
    return steps.StepResult(error=f"fatal error of librdkafka: {error}", failure=steps.Failure.FATAL)


def _failed(error: KafkaError) -> steps.StepResult:
    """Return the result of a failed call; what librdkafka has sent by then is not known."""
    if error.fatal():
        failure = steps.Failure.FATAL
    elif error.txn_requires_abort():
        failure = steps.Failure.ABORTABLE
    else:
        failure = steps.Failure.RETRIABLE if error.retriable() else steps.Failure.FATAL
    return steps.StepResult(error=described(error), failure=failure)


def transact(plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
    """Write transactions until `stop` is set."""
    rules = Transacting(plan, Recorder(plan.process, operations.write, now_ns, plan.first_index))
    producers = TransactionalProducers(plan, rules.sending)

    def act(step: steps.Step) -> steps.StepResult:
        producers.poll()
        if isinstance(step, steps.Pause):
            if step.until_stopped:
                stop.wait(step.length_s)
            else:
                time.sleep(step.length_s)
            return steps.DONE
        assert isinstance(step, steps.TransactionStep)
        return producers.act(step)

    steps.carry_out(rules.script(stop.is_set), act)
    producers.close()
    log.info("transactor.complete process=%s sent=%d", plan.process, rules.sending.sent)

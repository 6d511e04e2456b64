"""What do transactional producers report when librdkafka raises within a call?"""

import threading

import pytest
from confluent_kafka import KafkaError, KafkaException

from harness.client_rules import steps
from harness.client_rules.transacting import Transacting
from harness.contracts.workloads import ClientPlan
from harness.store.history import Operation, OpType
from harness.store.recording import Recorder
from kafka_chaos.workloads.clients import transactor
from kafka_chaos.workloads.clients.transactor import TransactionalProducers
from kafka_chaos.workloads.transact import Parameters, Transact

WITHIN_A_REPORT = SystemError("flush returned NULL without setting an exception")
FENCED = KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))


class FakeProducer:
    """A producer whose calls raise what it was given, once."""

    def __init__(self, raises: Exception) -> None:
        self.raises: Exception | None = raises
        self.reports = 0
        self.returns = threading.Event()

    def init_transactions(self, timeout: float) -> None:
        """Nothing fences it yet."""

    def flush(self, timeout: float) -> int:
        self.poll(0)
        return 0

    def poll(self, timeout: float) -> None:
        if self.raises is not None:
            error, self.raises = self.raises, None
            raise error
        self.reports += 1

    def purge(self) -> None:
        """Drop what waits."""

    def send_offsets_to_transaction(self, offsets: object, group: object, timeout: float) -> None:
        """Never return in time."""
        self.returns.wait()

    def produce(self, topic: str, **record: object) -> None:
        """Take a record and never report it."""


def producers(producer: FakeProducer, written: list[Operation] | None = None) -> TransactionalProducers:
    load = Parameters.model_validate({"transactors": 1, "consumers": 0})
    plan: ClientPlan
    (plan,) = Transact().clients(load, bootstrap_servers="127.0.0.1:1", topics={"orders": 1}, seed=1)
    written = [] if written is None else written
    rules = Transacting(plan, Recorder(plan.process, written.append, lambda: 0, plan.first_index))
    made = TransactionalProducers(plan, rules.sending, lambda _: producer)  # type: ignore[arg-type,return-value]
    assert made.act(steps.InitTransactions("id")) == steps.DONE
    return made


@pytest.mark.parametrize(
    "error", [pytest.param(FENCED, id="by a poll"), pytest.param(WITHIN_A_REPORT, id="within a delivery report")]
)
def test_a_fatal_error_ends_the_producer_and_not_the_process(error: Exception) -> None:
    assert producers(FakeProducer(error)).act(steps.AwaitSends("id")).failure is steps.Failure.FATAL


def test_a_call_that_does_not_return_ends_the_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = FakeProducer(FENCED)
    made = producers(producer)
    monkeypatch.setattr(made, "_patience_s", 0.0)
    monkeypatch.setattr(transactor, "MARGIN_S", 0.01)
    answer = made.act(steps.SendOffsets("id", {("orders", 0): 1}))
    producer.returns.set()
    assert (answer.failure, answer.error) == (steps.Failure.FATAL, "librdkafka has not returned within 0.01 s")


def test_reports_are_taken_after_a_fatal_error() -> None:
    producer = FakeProducer(WITHIN_A_REPORT)
    producers(producer).poll()
    assert producer.reports == 1


def test_a_record_without_a_report_ends_with_its_producer() -> None:
    written: list[Operation] = []
    made = producers(FakeProducer(WITHIN_A_REPORT), written)
    made.act(steps.Send(made._sending.invoke(transactional_id="id", transaction=0)))
    made.act(steps.CloseProducer("id"))
    assert [(each.type, each.error) for each in written] == [
        (OpType.INVOKE, ""),
        (OpType.INFO, "its producer was closed without a report"),
    ]


def test_a_record_whose_report_is_interrupted_ends_with_its_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise WITHIN_A_REPORT

    written: list[Operation] = []
    made = producers(FakeProducer(WITHIN_A_REPORT), written)
    invoked = made._sending.invoke(transactional_id="id", transaction=0)
    made.act(steps.Send(invoked))
    monkeypatch.setattr(made._sending, "given_up", interrupted)
    with pytest.raises(SystemError):
        made._delivered(invoked, KafkaError(KafkaError._PURGE_QUEUE), None)  # type: ignore[arg-type]
    made.act(steps.CloseProducer("id"))
    assert [each.type for each in written] == [OpType.INVOKE, OpType.INFO]

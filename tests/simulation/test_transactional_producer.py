"""A transactional producer of which one partition fails while another one is added to the transaction."""

import asyncio
from typing import Any

import pytest

from harness.broker.log.records import Record
from harness.broker.wire.error_codes import ErrorCode
from harness.client_rules.sending import Sending
from harness.client_rules.steps import Failure
from harness.simulation.clients import transactional_producer
from harness.simulation.clients.producer import Pending
from harness.simulation.clients.transactional_producer import TransactionalProducer
from harness.simulation.clients.transactional_requests import NEW, TransactionError
from harness.store.history import Operation, OpType
from harness.store.recording import Recorder
from harness.values import TopicPartition
from kafka_chaos.workloads.transact import Parameters, Transact


class FencedInPartition1:
    """Requests that add partition 0 late, and are fenced at once when they add partition 1."""

    producer = NEW

    def __init__(self, *_: Any, **__: Any) -> None:
        """Take what the real requests take."""

    async def add_partition(self, key: TopicPartition) -> None:
        if key[1] == 1:
            raise TransactionError(ErrorCode.PRODUCER_FENCED, Failure.FATAL)
        await asyncio.sleep(0.5)


async def test_records_given_up_meanwhile_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactional_producer, "TransactionalRequests", FencedInPartition1)
    load = Parameters.model_validate({"transactors": 1, "consumers": 0})
    (plan,) = Transact().clients(load, bootstrap_servers="127.0.0.1:1", topics={"orders": 2}, seed=1)
    written: list[Operation] = []
    sending = Sending(plan, Recorder(plan.process, written.append, lambda: 0))

    producer = TransactionalProducer(plan, None, "id", sending)  # type: ignore[arg-type]
    producer.begin()
    for partition in (0, 1):
        invoked = sending.invoke([("orders", partition)], transactional_id="id", transaction=0)
        producer.send(Pending(invoked, Record(key=b"k", value=b"v", timestamp_ms=0), 0.0, 100.0))
    assert (await producer.flush()).failure is Failure.FATAL
    ends = [each for each in written if each.type is not OpType.INVOKE]
    assert {each.partition: each.type for each in ends} == {0: OpType.FAIL, 1: OpType.FAIL}

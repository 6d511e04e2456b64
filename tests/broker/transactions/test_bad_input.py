"""Garbage in `__transaction_state`, ids that no record holds, and very many open transactions: no other id suffers."""

import struct

import pytest

from harness.broker.coordinator.classic_types import write_text
from harness.broker.log.batch import build_batch
from harness.broker.log.records import Record
from harness.broker.transactions.metadata import TransactionMetadata, TransactionState
from harness.broker.transactions.records import encode_key, encode_transaction, encode_value
from harness.broker.transactions.transaction import Producer
from harness.broker.wire.error_codes import ErrorCode
from tests.broker.transactions.coordinating import ID, TIMEOUT_MS, Coordinating

NONE = ErrorCode.NONE
OPEN = TransactionMetadata(
    producer_id=7,
    producer_epoch=0,
    timeout_ms=TIMEOUT_MS,
    state=TransactionState.ONGOING,
    partitions=frozenset({("t", 0)}),
    updated_ms=1,
    started_ms=1,
)
MANY = 10_000
KEY, VALUE = encode_key("garbled"), encode_value(OPEN)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(None, VALUE, id="no key"),
        pytest.param(b"", VALUE, id="an empty key"),
        pytest.param(b"\0\0\0\x09ab", VALUE, id="a key that is cut short"),
        pytest.param(b"\0\0\0\x01\xff", VALUE, id="a key that is no text"),
        pytest.param(struct.pack(">h", 9) + write_text("x"), VALUE, id="a key of an unknown version"),
        pytest.param(KEY, b"", id="an empty value"),
        pytest.param(KEY, b"\0\x09" + VALUE[2:], id="a value of an unknown version"),
        pytest.param(KEY, VALUE[:-9], id="a value that is cut short"),
        pytest.param(KEY, VALUE[:16] + b"\x63" + VALUE[17:], id="a value with an unknown state"),
        pytest.param(KEY, VALUE[:17] + b"\x7f\xff\xff\xff" + VALUE[21:], id="a value with more topics than bytes"),
    ],
)
async def test_garbage_between_transactions_disturbs_no_other_one(key: bytes | None, value: bytes) -> None:
    here = Coordinating()
    here.topic.disk.add(encode_transaction(ID, OPEN, 1))
    here.topic.disk.add(build_batch([Record(key=key, value=value, timestamp_ms=1)]))
    here.topic.disk.add(encode_transaction("later", OPEN, 1))
    await here.lead()
    assert [each.transactional_id for each in here.coordinator.transactions()] == sorted([ID, "later"])
    assert await here.coordinator.end(ID, Producer(7, 0), commit=True) is NONE
    await here.settled(lambda: here.state() == "CompleteCommit")
    await here.coordinator.stop()


async def test_an_id_that_is_too_long_for_a_record_leaves_nothing_behind() -> None:
    here = Coordinating()
    await here.lead()
    with pytest.raises(struct.error):
        await here.coordinator.init_producer_id("x" * 32_768, TIMEOUT_MS, None)
    assert here.coordinator.transactions() == []
    assert (await here.coordinator.init_producer_id(ID, TIMEOUT_MS, None))[0] is NONE
    await here.coordinator.stop()


async def test_ten_thousand_transactions_that_nothing_ends_are_loaded_and_aborted() -> None:
    here = Coordinating()
    records = [Record(key=encode_key(f"{number}"), value=VALUE, timestamp_ms=1) for number in range(MANY)]
    here.topic.disk.add(build_batch(records))
    await here.lead()
    here.now_ms = 1 + TIMEOUT_MS + 1
    await here.coordinator.abort_timed_out()
    await here.settled(lambda: len(here.topic.disk.batches) == 1 + 2 * MANY)  # each one is prepared and completed
    known = [each.metadata for each in here.coordinator.transactions()]
    assert {(each.state, each.producer_epoch) for each in known} == {(TransactionState.COMPLETE_ABORT, 1)}
    assert len(here.brokers.markers()) == MANY
    await here.coordinator.stop()

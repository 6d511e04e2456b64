"""The broker writes `__transaction_state`, and this reader, which shares no code with it, finds the same in it."""

import json
import struct

import pytest

from harness.broker.log.batch import parse_records
from harness.broker.transactions.metadata import TransactionMetadata, TransactionState
from harness.broker.transactions.records import encode_tombstones, encode_transaction
from harness.evidence.transactions_topic import STATES, decode

OPEN = TransactionMetadata(
    producer_id=7,
    producer_epoch=3,
    timeout_ms=60_000,
    state=TransactionState.ONGOING,
    partitions=frozenset({("t", 0), ("t", 2), ("\u00fc", 1)}),
    updated_ms=9,
    started_ms=5,
)


def test_what_the_broker_writes_is_told_field_by_field() -> None:
    (record,) = parse_records(encode_transaction("\u00e9", OPEN, 11))
    decoded = decode(record.key, record.value)
    assert decoded is not None
    assert json.loads(decoded[0]) == {"type": "transaction", "transactional_id": "\u00e9"}
    assert json.loads(decoded[1]) == {
        "producer_id": 7,
        "producer_epoch": 3,
        "timeout_ms": 60_000,
        "state": "Ongoing",
        "partitions": ["t-0", "t-2", "\u00fc-1"],
        "updated_ms": 9,
        "started_ms": 5,
    }


def test_a_tombstone_has_no_value() -> None:
    (record,) = parse_records(encode_tombstones(["id"], 11))
    assert decode(record.key, record.value) == ('{"type":"transaction","transactional_id":"id"}', "")


def test_every_state_has_its_number() -> None:
    assert [state.value for state in TransactionState] == list(STATES)


KEY = struct.pack(">hh2s", 0, 2, b"id")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(None, b"", id="no key"),
        pytest.param(b"", b"", id="an empty key"),
        pytest.param(struct.pack(">h", 9), None, id="a key of the future"),
        pytest.param(KEY, struct.pack(">h", 9), id="a value of the future"),
        pytest.param(KEY, struct.pack(">hqhib", 0, 1, 1, 1, 99) + b"\0" * 20, id="a state of the future"),
        pytest.param(KEY, struct.pack(">hqhibi", 0, 1, 1, 1, 1, 2**31 - 1), id="more topics than there are bytes"),
    ],
)
def test_garbage_is_not_decoded(key: bytes | None, value: bytes | None) -> None:
    assert decode(key, value) is None

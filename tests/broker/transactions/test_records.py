import struct

import pytest

from harness.broker.log.batch import build_batch, parse_records
from harness.broker.log.records import Record
from harness.broker.transactions.metadata import TransactionMetadata, TransactionState
from harness.broker.transactions.records import (
    TransactionRecord,
    decode_chunk,
    decode_value,
    encode_tombstones,
    encode_transaction,
)

OPEN = TransactionMetadata(
    producer_id=7,
    producer_epoch=3,
    timeout_ms=60_000,
    state=TransactionState.ONGOING,
    partitions=frozenset({("t", 0), ("t", 2), ("u", 1)}),
    updated_ms=9,
    started_ms=5,
)
EMPTY = TransactionMetadata(producer_id=7, producer_epoch=0, timeout_ms=60_000, updated_ms=9)


def test_key_and_value_have_kafkas_bytes() -> None:
    (record,) = parse_records(encode_transaction("id", OPEN, 11))
    assert record.key == bytes.fromhex("0000 0002 6964")
    assert record.value == bytes.fromhex(
        "0000 0000000000000007 0003 0000ea60 01 00000002 0001 74 00000002 00000000 00000002 0001 75 00000001 00000001"
        "0000000000000009 0000000000000005"
    )


def test_an_empty_one_has_null_for_partitions() -> None:
    (record,) = parse_records(encode_transaction("id", EMPTY, 11))
    assert record.value == bytes.fromhex(
        "0000 0000000000000007 0000 0000ea60 00 ffffffff 0000000000000009 ffffffffffffffff"
    )


def test_what_is_written_is_read() -> None:
    written = encode_transaction("id", OPEN, 11) + encode_tombstones(["id", "ä"], 12)
    assert decode_chunk(written).records == [
        TransactionRecord(transactional_id="id", value=OPEN),
        TransactionRecord(transactional_id="id", value=None),
        TransactionRecord(transactional_id="ä", value=None),
    ]


def test_a_flexible_value_is_read_too() -> None:
    value = bytes.fromhex(
        "0001 0000000000000007 0003 0000ea60 01 03 02 74 03 00000000 00000002 00 02 75 02 00000001 00"
        "0000000000000009 0000000000000005 00"
    )
    assert decode_value(value) == OPEN


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"\0\0\0", id="cut short"),
        pytest.param(struct.pack(">hqhib", 9, 1, 1, 1, 1), id="a version of the future"),
        pytest.param(struct.pack(">hqhibiqq", 0, 1, 1, 1, 99, -1, 1, 1), id="a state of the future"),
        pytest.param(struct.pack(">hqhib", 1, 1, 1, 1, 1) + b"\xff" * 9, id="a length without an end"),
    ],
)
def test_garbage_is_refused(value: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        decode_value(value)


def test_a_key_of_the_future_is_left_out() -> None:
    batch = build_batch([Record(key=struct.pack(">hh1s", 9, 1, b"g"), value=b"", timestamp_ms=0)])
    assert (decode_chunk(batch).records, decode_chunk(batch).next_offset) == ([], 1)

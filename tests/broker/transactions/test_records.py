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
    encode_value,
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


GOLDEN_HEAD, GOLDEN_TIMES = "0000 0000000000000000", "000001a218c48ae9 000001a218c48ad4"
OFFSETS = "0012 5f5f636f6e73756d65725f6f666673657473 00000001 00000006"


@pytest.mark.parametrize(
    ("value", "state", "epoch", "partitions"),
    [
        pytest.param(
            f"{GOLDEN_HEAD} 0000 0000afc8 00 ffffffff 000001a218c2a713 ffffffffffffffff",
            TransactionState.EMPTY,
            0,
            set(),
            id="a session has begun",
        ),
        pytest.param(
            f"{GOLDEN_HEAD} 0002 0000afc8 01 00000003 0001 74 00000002 00000001 00000000 0001 75 00000001 00000000"
            f"{OFFSETS} {GOLDEN_TIMES}",
            TransactionState.ONGOING,
            2,
            {("t", 0), ("t", 1), ("u", 0), ("__consumer_offsets", 6)},
            id="partitions and a group's offsets are in it",
        ),
        pytest.param(
            f"{GOLDEN_HEAD} 0002 0000afc8 05 00000000 {GOLDEN_TIMES}",
            TransactionState.COMPLETE_ABORT,
            2,
            set(),
            id="it is aborted",
        ),
    ],
)
def test_what_kafka_3_9_1_wrote_is_read_and_would_be_written(
    value: str, state: TransactionState, epoch: int, partitions: set[tuple[str, int]]
) -> None:
    """Written for librdkafka; the order of several partitions is that of a hash set, and ours is sorted."""
    data = bytes.fromhex(value)
    known = decode_value(data)
    assert (known.state, known.producer_epoch, known.timeout_ms) == (state, epoch, 45_000)
    assert known.partitions == partitions
    written = encode_value(known)
    assert sorted(written) == sorted(data)
    assert written == data or len(partitions) > 1

import struct

import pytest

from harness.broker.coordinator.records import (
    CommittedOffset,
    OffsetKey,
    OffsetRecord,
    decode_chunk,
    encode_batch,
    partition_of,
)
from harness.broker.log.batch import build_batch, parse_records
from harness.broker.log.records import Record

KEY = OffsetKey(group="g", topic="t", partition=3)


@pytest.mark.parametrize(
    ("group", "partitions", "expected"),
    [
        pytest.param("", 50, 0, id="empty text hashes to zero"),
        pytest.param("a", 50, 97 % 50, id="one letter is its code"),
        pytest.param("console-consumer-1", 50, 24, id="a usual group"),
        pytest.param("polygenelubricants", 50, 0, id="the smallest int has no absolute value, so zero"),
        pytest.param("\U0001f600", 50, 1772899 % 50, id="beyond the basic plane each half counts"),
    ],
)
def test_a_group_lives_where_java_puts_it(group: str, partitions: int, expected: int) -> None:
    assert partition_of(group, partitions) == expected


def test_key_and_value_have_kafkas_bytes() -> None:
    value = CommittedOffset(offset=7, leader_epoch=2, metadata="m", timestamp_ms=5)
    (record,) = parse_records(encode_batch([(KEY, value)], 5))
    assert record.key == bytes.fromhex("0001 0001 67 0001 74 00000003")
    assert record.value == bytes.fromhex("0003 0000000000000007 00000002 0001 6d 0000000000000005")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(
            struct.pack(">hqih1sq", 3, 7, 2, 1, b"m", 5),
            CommittedOffset(offset=7, leader_epoch=2, metadata="m", timestamp_ms=5),
            id="version 3 has a leader epoch",
        ),
        pytest.param(
            struct.pack(">hqh1sq", 2, 7, 1, b"m", 5),
            CommittedOffset(offset=7, metadata="m", timestamp_ms=5),
            id="version 2 has none",
        ),
        pytest.param(
            struct.pack(">hqh1sqq", 1, 7, 1, b"m", 5, 99),
            CommittedOffset(offset=7, metadata="m", timestamp_ms=5),
            id="version 1 also says when it expires",
        ),
        pytest.param(None, None, id="a tombstone"),
    ],
)
def test_every_version_of_a_value_is_read(value: bytes | None, expected: CommittedOffset | None) -> None:
    key = struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 3)
    chunk = decode_chunk(build_batch([Record(key=key, value=value, timestamp_ms=5)]))
    assert chunk.records == [OffsetRecord(log_offset=0, key=KEY, value=expected)]


def test_records_of_another_kind_are_left_out_but_counted() -> None:
    group_key = struct.pack(">hh1s", 2, 1, b"g")
    chunk = decode_chunk(build_batch([Record(key=group_key, value=b"\x00\x03", timestamp_ms=0)]))
    assert (chunk.records, chunk.next_offset) == ([], 1)


def test_a_round_trip_keeps_order_and_text() -> None:
    records = [
        (OffsetKey(group="gruppe-ä", topic="t", partition=p), CommittedOffset(offset=p, metadata="ü", timestamp_ms=1))
        for p in range(3)
    ]
    chunk = decode_chunk(encode_batch(records, 1))
    assert [(record.key, record.value) for record in chunk.records] == records
    assert [record.log_offset for record in chunk.records] == [0, 1, 2]


def test_what_a_control_batch_holds_is_left_out_but_counted() -> None:
    key = struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 3)
    chunk = decode_chunk(build_batch([Record(key=key, value=None, timestamp_ms=0)], base_offset=8, attributes=0x20))
    assert (chunk.records, chunk.next_offset) == ([], 9)

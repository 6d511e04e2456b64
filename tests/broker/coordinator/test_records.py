import struct
from dataclasses import replace

import pytest

from harness.broker.coordinator.group_records import GroupMetadata, StoredMember
from harness.broker.coordinator.placement import partition_of
from harness.broker.coordinator.records import (
    CommittedOffset,
    GroupRecord,
    OffsetKey,
    OffsetRecord,
    decode_chunk,
    encode_batch,
    encode_group,
    encode_tombstones,
)
from harness.broker.log.batch import build_batch, parse_records
from harness.broker.log.records import Record
from harness.kafka.placement import partition_of as partition_of_harness

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
def test_a_group_lives_where_java_puts_it_and_the_harness_looks_for_it(
    group: str, partitions: int, expected: int
) -> None:
    assert partition_of(group, partitions) == expected
    assert partition_of_harness(group, partitions) == expected


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
            CommittedOffset(offset=7, metadata="m", timestamp_ms=5, expires_ms=99),
            id="version 1 also says when it expires",
        ),
        pytest.param(None, None, id="a tombstone"),
    ],
)
def test_every_version_of_a_value_is_read(value: bytes | None, expected: CommittedOffset | None) -> None:
    key = struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 3)
    chunk = decode_chunk(build_batch([Record(key=key, value=value, timestamp_ms=5)]))
    assert chunk.records == [OffsetRecord(log_offset=0, key=KEY, value=expected)]


def test_records_of_an_unknown_kind_are_left_out_but_counted() -> None:
    key = struct.pack(">hh1s", 9, 1, b"g")
    chunk = decode_chunk(build_batch([Record(key=key, value=b"\x00\x03", timestamp_ms=0)]))
    assert (chunk.records, chunk.next_offset) == ([], 1)


def test_a_round_trip_keeps_order_and_text() -> None:
    records = [
        (OffsetKey(group="gruppe-ä", topic="t", partition=p), CommittedOffset(offset=p, metadata="ü", timestamp_ms=1))
        for p in range(3)
    ]
    chunk = decode_chunk(encode_batch(records, 1))
    assert chunk.records == [
        OffsetRecord(log_offset=index, key=key, value=value) for index, (key, value) in enumerate(records)
    ]


def test_what_a_control_batch_holds_is_left_out_but_counted() -> None:
    key = struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 3)
    chunk = decode_chunk(build_batch([Record(key=key, value=None, timestamp_ms=0)], base_offset=8, attributes=0x20))
    assert (chunk.records, chunk.next_offset) == ([], 9)


def test_an_offset_that_says_when_it_expires_is_written_so_and_read_again() -> None:
    value = CommittedOffset(offset=7, metadata="m", timestamp_ms=5, expires_ms=99)
    assert decode_chunk(encode_batch([(KEY, value)], 5)).records == [OffsetRecord(log_offset=0, key=KEY, value=value)]


MEMBER = StoredMember(
    member_id="m",
    instance_id="i",
    client_id="c",
    client_host="/h",
    rebalance_timeout_ms=2,
    session_timeout_ms=3,
    subscription=b"s",
    assignment=b"as",
)
GROUP = GroupMetadata(
    protocol_type="consumer", generation=4, protocol="range", leader="m", state_since_ms=5, members=(MEMBER,)
)


def test_a_group_has_kafkas_bytes() -> None:
    (record,) = parse_records(encode_group("g", GROUP, 5))
    assert record.key == bytes.fromhex("0002 0001 67")
    assert record.value == b"".join(
        [
            bytes.fromhex("0003 0008") + b"consumer" + bytes.fromhex("00000004 0005") + b"range",
            bytes.fromhex("0001 6d 0000000000000005 00000001"),
            bytes.fromhex("0001 6d 0001 69 0001 63 0002 2f68 00000002 00000003 00000001 73 00000002 6173"),
        ]
    )


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(GROUP, id="with a static member"),
        pytest.param(replace(GROUP, members=(replace(MEMBER, instance_id=None),)), id="with a dynamic one"),
        pytest.param(
            replace(GROUP, protocol=None, leader=None, members=(), state_since_ms=None),
            id="empty, since an unknown time",
        ),
        pytest.param(replace(GROUP, members=(replace(MEMBER, assignment=bytes(1 << 20)),)), id="with a MB assigned"),
    ],
)
def test_a_stored_group_is_read_again(value: GroupMetadata) -> None:
    assert decode_chunk(encode_group("g", value, 5)).records == [GroupRecord(group="g", value=value)]


OLD = b"\0\x08consumer" + struct.pack(">ih5sh1s", 4, 5, b"range", 1, b"m")
OLD_MEMBER = struct.pack(">h1sh1sh2s", 1, b"m", 1, b"c", 2, b"/h")
OLD_BYTES = struct.pack(">i1si2s", 1, b"s", 2, b"as")


@pytest.mark.parametrize(
    ("value", "rebalance_timeout_ms", "state_since_ms"),
    [
        pytest.param(b"\0\0" + OLD + b"\0\0\0\1" + OLD_MEMBER + b"\0\0\0\3" + OLD_BYTES, 3, None, id="version 0"),
        pytest.param(
            b"\0\1" + OLD + b"\0\0\0\1" + OLD_MEMBER + b"\0\0\0\2\0\0\0\3" + OLD_BYTES, 2, None, id="version 1"
        ),
        pytest.param(
            b"\0\2" + OLD + (5).to_bytes(8) + b"\0\0\0\1" + OLD_MEMBER + b"\0\0\0\2\0\0\0\3" + OLD_BYTES,
            2,
            5,
            id="version 2",
        ),
    ],
)
def test_a_group_of_an_older_kafka_is_read(value: bytes, rebalance_timeout_ms: int, state_since_ms: int | None) -> None:
    chunk = decode_chunk(build_batch([Record(key=b"\0\2\0\1g", value=value, timestamp_ms=0)]))
    member = replace(MEMBER, instance_id=None, rebalance_timeout_ms=rebalance_timeout_ms)
    expected = replace(GROUP, members=(member,), state_since_ms=state_since_ms)
    assert chunk.records == [GroupRecord(group="g", value=expected)]


def test_tombstones_take_offsets_back_and_end_groups() -> None:
    assert decode_chunk(encode_tombstones([KEY], ["g"], 5)).records == [
        OffsetRecord(log_offset=0, key=KEY, value=None),
        GroupRecord(group="g", value=None),
    ]

import gzip
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from cramjam import snappy

from harness.broker.log.batch import HEADER_BYTES, build_batch, seal
from harness.broker.log.compression import GZIP, LZ4, MAX_DECOMPRESSED_BYTES, SNAPPY, ZSTD, compress
from harness.broker.log.records import Record
from harness.broker.log.validation import InvalidRecords, validate_for_leader
from harness.broker.wire.error_codes import ErrorCode

RECORDS = [Record(key=b"k", value=b"v" * 40, timestamp_ms=1000 + i) for i in range(3)]
GOOD = build_batch(RECORDS)


def edited(fields: dict[int, bytes], *, of: bytes = GOOD, sealed: bool = True) -> bytes:
    """The batch with bytes put over it at some positions, and a CRC that fits if `sealed`."""
    batch = bytearray(of)
    for position, data in fields.items():
        batch[position : position + len(data)] = data
    if sealed:
        seal(batch)
    return bytes(batch)


def with_records(payload: bytes, *, codec: int = 0, count: int = 3) -> bytes:
    """A batch whose records section is `payload`."""
    batch = GOOD[:HEADER_BYTES] + payload
    return edited({8: int32(len(batch) - 12), 21: int16(codec), 23: int32(count - 1), 57: int32(count)}, of=batch)


def int16(value: int) -> bytes:
    return struct.pack(">h", value)


def int32(value: int) -> bytes:
    return struct.pack(">i", value)


def int64(value: int) -> bytes:
    return struct.pack(">q", value)


SECTION = GOOD[HEADER_BYTES:]
ONE = len(SECTION) // 3
SHUFFLED = SECTION[:ONE] + SECTION[2 * ONE :] + SECTION[ONE : 2 * ONE]
COUNT, LAST_DELTA, ATTRIBUTES, PRODUCER_ID = 57, 23, 21, 43
INVALID, CORRUPT = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("records", "error"),
    [
        pytest.param(b"", INVALID, id="no bytes"),
        pytest.param(GOOD[:-1], INVALID, id="a batch cut short"),
        pytest.param(GOOD[:5], INVALID, id="less than a length"),
        pytest.param(GOOD + GOOD, INVALID, id="two batches"),
        pytest.param(edited({16: b"\0"}), INVALID, id="format v0"),
        pytest.param(edited({16: b"\1"}), INVALID, id="format v1"),
        pytest.param(edited({16: b"\3"}), CORRUPT, id="a format that does not exist"),
        pytest.param(edited({8: int32(13)}), CORRUPT, id="a length that no batch has"),
        pytest.param(edited({8: int32(-1)}), CORRUPT, id="a length below zero"),
        pytest.param(edited({8: int32(30)})[:42], CORRUPT, id="a batch shorter than its header"),
        pytest.param(GOOD + edited({16: b"\3"}), CORRUPT, id="a second batch of a format that does not exist"),
        pytest.param(edited({0: int64(1)}), INVALID, id="a base offset"),
        pytest.param(edited({70: b"\xff"}, sealed=False), CORRUPT, id="a CRC mismatch"),
        pytest.param(
            edited({0: int64(1), 70: b"\xff"}, sealed=False), INVALID, id="the base offset is checked before the CRC"
        ),
        pytest.param(edited({COUNT: int32(2)}), INVALID, id="fewer records announced than offsets"),
        pytest.param(edited({COUNT: int32(2), LAST_DELTA: int32(1)}), INVALID, id="more records than announced"),
        pytest.param(edited({COUNT: int32(4), LAST_DELTA: int32(3)}), INVALID, id="fewer records than announced"),
        pytest.param(edited({COUNT: int32(0), LAST_DELTA: int32(-1)}), INVALID, id="no records announced"),
        pytest.param(edited({COUNT: int32(-1), LAST_DELTA: int32(-2)}), INVALID, id="records below zero announced"),
        pytest.param(with_records(b"", count=1), INVALID, id="no records there"),
        pytest.param(with_records(SECTION[:-1]), INVALID, id="the last record cut short"),
        pytest.param(with_records(SECTION + b"\x80"), INVALID, id="a length cut short"),
        pytest.param(with_records(SECTION + b"\0", count=4), INVALID, id="a record without bytes"),
        pytest.param(with_records(b"\x01" + SECTION), INVALID, id="a record length below zero"),
        pytest.param(with_records(bytes([SECTION[0] | 1]) + SECTION[1:]), INVALID, id="a good length with a sign"),
        pytest.param(with_records(b"opaque", codec=2, count=0), INVALID, id="no records announced in snappy"),
        pytest.param(with_records(b"\xff" * 12), INVALID, id="a length that does not end"),
        pytest.param(edited({ATTRIBUTES: int16(0x20)}), INVALID, id="a control batch"),
        pytest.param(edited({PRODUCER_ID: int64(5)}), INVALID, id="a producer id without a sequence"),
        pytest.param(edited({ATTRIBUTES: int16(0x08)}), ErrorCode.INVALID_TIMESTAMP, id="the broker's timestamps"),
        pytest.param(edited({ATTRIBUTES: int16(5)}), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, id="an unknown codec"),
        pytest.param(with_records(SECTION, codec=1), INVALID, id="gzip that is none"),
        pytest.param(with_records(gzip.compress(SECTION)[:-4], codec=1), INVALID, id="gzip cut short"),
        pytest.param(with_records(gzip.compress(SECTION) + b"x", codec=1), INVALID, id="bytes after the gzip stream"),
        pytest.param(with_records(gzip.compress(SECTION[:-1]), codec=1), INVALID, id="a record cut short inside gzip"),
        pytest.param(with_records(gzip.compress(SECTION), codec=1, count=2), INVALID, id="a miscount inside gzip"),
        pytest.param(with_records(b"", codec=4), INVALID, id="no bytes of zstd"),
    ],
)
def test_refused(records: bytes, error: ErrorCode) -> None:
    with pytest.raises(InvalidRecords) as refused:
        validate_for_leader(records, max_batch_bytes=1 << 20)
    assert refused.value.error_code == error
    assert str(refused.value)


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(GOOD, id="uncompressed"),
        pytest.param(GOOD + GOOD[:-1], id="bytes after it that make no batch"),
        pytest.param(with_records(gzip.compress(SECTION), codec=1), id="gzip"),
        pytest.param(with_records(compress(SECTION, SNAPPY), codec=SNAPPY), id="snappy in the framing of Java"),
        pytest.param(with_records(bytes(snappy.compress_raw(SECTION)), codec=SNAPPY), id="one bare block of snappy"),
        pytest.param(with_records(compress(SECTION, LZ4), codec=LZ4), id="lz4"),
        pytest.param(with_records(compress(SECTION, ZSTD), codec=ZSTD), id="zstd"),
        pytest.param(edited({PRODUCER_ID: int64(5), 53: int32(0)}), id="idempotent"),
        pytest.param(edited({ATTRIBUTES: int16(0x10)}), id="transactional, for the caller to judge"),
    ],
)
def test_accepted(records: bytes) -> None:
    header = validate_for_leader(records, max_batch_bytes=1 << 20)
    assert header.records_count == 3
    assert header.size <= len(records)


def test_the_size_limit_counts_the_whole_batch() -> None:
    assert validate_for_leader(GOOD, max_batch_bytes=len(GOOD)).size == len(GOOD)
    with pytest.raises(InvalidRecords) as refused:
        validate_for_leader(edited({70: b"\xff"}, sealed=False), max_batch_bytes=len(GOOD) - 1)
    assert refused.value.error_code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD], ids=["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize(
    ("section", "damage", "why"),
    [
        pytest.param(SECTION, lambda data: data[:-3], ".", id="cut short"),
        pytest.param(SECTION, lambda data: data + b"junk", ".", id="bytes after its end"),
        pytest.param(SECTION, lambda data: b"opaque" * 3, ".", id="no such stream"),
        pytest.param(SECTION, lambda data: b"", ".", id="no bytes"),
        pytest.param(SECTION[:-1], lambda data: data, "cut short", id="a record cut short inside"),
        pytest.param(SECTION * 2, lambda data: data, "6 records, 3 announced", id="a miscount inside"),
        pytest.param(SHUFFLED, lambda data: data, "incremental offsets", id="records that do not follow each other"),
    ],
)
def test_what_is_wrong_inside_a_compressed_batch_is_found(
    codec: int, section: bytes, damage: Callable[..., Any], why: str
) -> None:
    with pytest.raises(InvalidRecords, match=why) as refused:
        validate_for_leader(with_records(damage(compress(section, codec)), codec=codec), max_batch_bytes=1 << 20)
    assert refused.value.error_code == INVALID


def test_the_offsets_inside_an_uncompressed_batch_are_not_looked_at() -> None:
    assert validate_for_leader(with_records(SHUFFLED), max_batch_bytes=1 << 20).records_count == 3


@pytest.mark.parametrize("codec", [SNAPPY, LZ4, ZSTD], ids=["snappy", "lz4", "zstd"])
def test_a_batch_that_expands_past_the_bound_is_refused_and_holds_no_more_memory_than_that(codec: int) -> None:
    bomb = with_records(compress(bytes(MAX_DECOMPRESSED_BYTES + (1 << 20)), codec), codec=codec)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRecords, match=f"holds over {MAX_DECOMPRESSED_BYTES} bytes") as refused:
            validate_for_leader(bomb, max_batch_bytes=1 << 24)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.value.error_code == INVALID
    assert peak < 2.5 * MAX_DECOMPRESSED_BYTES


def test_gzip_that_expands_without_end_is_refused() -> None:
    squeezer = zlib.compressobj(wbits=31)
    zeros = bytes(1 << 20)
    bomb = (
        b"".join(squeezer.compress(zeros) for _ in range(MAX_DECOMPRESSED_BYTES // len(zeros) + 1)) + squeezer.flush()
    )
    with pytest.raises(InvalidRecords, match="over") as refused:
        validate_for_leader(with_records(bomb, codec=1), max_batch_bytes=1 << 20)
    assert refused.value.error_code == INVALID

import gzip
import struct
import zlib

import pytest

from harness.broker.log.batch import HEADER_BYTES, build_batch, seal
from harness.broker.log.records import MAX_DECOMPRESSED_BYTES, Record
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
def test_refused(records, error):
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
        pytest.param(with_records(b"opaque", codec=2), id="snappy, on its word"),
        pytest.param(with_records(b"opaque", codec=3), id="lz4, on its word"),
        pytest.param(with_records(b"opaque", codec=4), id="zstd, on its word"),
        pytest.param(edited({PRODUCER_ID: int64(5), 53: int32(0)}), id="idempotent"),
        pytest.param(edited({ATTRIBUTES: int16(0x10)}), id="transactional, for the caller to judge"),
    ],
)
def test_accepted(records):
    header = validate_for_leader(records, max_batch_bytes=1 << 20)
    assert header.records_count == 3
    assert header.size <= len(records)


def test_the_size_limit_counts_the_whole_batch():
    assert validate_for_leader(GOOD, max_batch_bytes=len(GOOD)).size == len(GOOD)
    with pytest.raises(InvalidRecords) as refused:
        validate_for_leader(edited({70: b"\xff"}, sealed=False), max_batch_bytes=len(GOOD) - 1)
    assert refused.value.error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_gzip_that_expands_without_end_is_refused():
    squeezer = zlib.compressobj(wbits=31)
    zeros = bytes(1 << 20)
    bomb = (
        b"".join(squeezer.compress(zeros) for _ in range(MAX_DECOMPRESSED_BYTES // len(zeros) + 1)) + squeezer.flush()
    )
    with pytest.raises(InvalidRecords, match="over") as refused:
        validate_for_leader(with_records(bomb, codec=1), max_batch_bytes=1 << 20)
    assert refused.value.error_code == INVALID

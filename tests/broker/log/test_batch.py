import random
from collections.abc import Iterable

import pytest
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from harness.broker.log.batch import (
    HEADER_BYTES,
    CorruptBatch,
    assign,
    build_batch,
    crc_matches,
    iter_batches,
    parse_header,
    parse_records,
)
from harness.broker.log.records import MalformedRecords, Record, count_records

RECORDS = [
    Record(key=None, value=b"first", timestamp_ms=1_700_000_000_000),
    Record(key=b"k", value=None, timestamp_ms=1_700_000_000_500),
    Record(
        key=b"", value=b"v" * 300, timestamp_ms=1_699_999_999_000, headers=(("h", b"1"), ("empty", b""), ("none", None))
    ),
    Record(value=b"x" * 20_000, timestamp_ms=1_700_000_000_100),
]


def kafka_batch(codec: int) -> bytes:
    """A batch as kafka-python's producer makes it."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=codec, batch_size=1 << 20)
    for record in RECORDS:
        builder.append(record.timestamp_ms, record.key, record.value, list(record.headers))
    builder.close()
    return bytes(builder.buffer())


def plain(records: Iterable[Record]) -> list[tuple[object, ...]]:
    return [(r.key, r.value, r.timestamp_ms, r.headers, r.offset) for r in records]


def test_what_is_built_can_be_parsed() -> None:
    batch = build_batch(RECORDS, base_offset=40, leader_epoch=3)
    assert plain(parse_records(batch)) == [
        (r.key, r.value, r.timestamp_ms, r.headers, 40 + i) for i, r in enumerate(RECORDS)
    ]
    header = parse_header(batch)
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (40, 43, 3)
    assert (header.size, header.records_count, header.codec) == (len(batch), 4, 0)
    assert (header.base_timestamp, header.max_timestamp) == (1_700_000_000_000, 1_700_000_000_500)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)


def test_another_implementation_reads_what_is_built() -> None:
    theirs = next(iter(MemoryRecords(build_batch(RECORDS, base_offset=40))))
    assert theirs.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in theirs] == [
        (40 + i, r.timestamp_ms, r.key, r.value, r.headers) for i, r in enumerate(RECORDS)
    ]


@pytest.mark.parametrize("codec", [pytest.param(0, id="uncompressed"), pytest.param(1, id="gzip")])
def test_what_another_implementation_builds_is_read(codec: int) -> None:
    batch = kafka_batch(codec)
    header = parse_header(batch)
    assert crc_matches(batch, header)
    assert header.codec == codec
    assert plain(parse_records(batch)) == [
        (r.key, r.value, r.timestamp_ms, r.headers, i) for i, r in enumerate(RECORDS)
    ]


def test_stamping_keeps_the_crc_and_the_records() -> None:
    sent = build_batch(RECORDS)
    batch = bytearray(sent)
    assign(batch, 2**40, 9)
    header = parse_header(batch)
    assert (header.base_offset, header.leader_epoch) == (2**40, 9)
    assert crc_matches(batch, header)
    assert batch[16:] == sent[16:]
    assert batch[8:12] == sent[8:12]


@pytest.mark.parametrize("position", range(21, HEADER_BYTES + 4))
def test_a_flipped_bit_under_the_crc_is_seen(position: int) -> None:
    batch = bytearray(build_batch(RECORDS))
    batch[position] ^= 1
    assert not crc_matches(batch, parse_header(batch))


def test_attributes() -> None:
    flags = [parse_header(build_batch(RECORDS, attributes=bits)) for bits in (0x08, 0x10, 0x20, 0x04)]
    assert [(h.is_log_append_time, h.is_transactional, h.is_control, h.codec) for h in flags] == [
        (True, False, False, 0),
        (False, True, False, 0),
        (False, False, True, 0),
        (False, False, False, 4),
    ]


def test_whole_batches_are_yielded_and_a_cut_one_is_left_out() -> None:
    one, two = build_batch(RECORDS[:1]), build_batch(RECORDS[1:], base_offset=1)
    both = one + two
    for end in range(len(both)):
        whole = [bytes(batch) for _, batch in iter_batches(both[:end])]
        assert whole == ([one] if end >= len(one) else [])
    assert [(h.base_offset, bytes(b)) for h, b in iter_batches(both)] == [(0, one), (1, two)]


@pytest.mark.parametrize(
    ("position", "value"),
    [
        pytest.param(16, 3, id="a format that does not exist yet"),
        pytest.param(16, 1, id="an old format"),
        pytest.param(8, 0xFF, id="a length below zero"),
    ],
)
def test_bytes_that_are_no_batch_are_corrupt(position: int, value: int) -> None:
    batch = bytearray(build_batch(RECORDS))
    batch[position] = value
    with pytest.raises(CorruptBatch):
        list(iter_batches(batch))


def test_a_length_too_small_for_a_header_is_corrupt() -> None:
    batch = bytearray(build_batch(RECORDS))
    batch[8:12] = (40).to_bytes(4, "big")
    with pytest.raises(CorruptBatch):
        list(iter_batches(batch))


def test_counting_agrees_with_parsing_for_records_of_any_size() -> None:
    rng = random.Random(7)
    sizes = [0, 1, 56, 57, 58, 63, 64, 8184, 8185, 8186, 8192, 70_000, *(rng.randrange(20_000) for _ in range(50))]
    batch = build_batch([Record(value=b"x" * size, timestamp_ms=rng.randrange(2**40)) for size in sizes])
    assert count_records(batch[HEADER_BYTES:]) == len(parse_records(batch)) == len(sizes)


def test_records_cut_anywhere_are_malformed() -> None:
    batch = build_batch(RECORDS[:3])
    for end in range(HEADER_BYTES, len(batch)):
        with pytest.raises(MalformedRecords):
            parse_records(batch[:end])


@pytest.mark.parametrize("codec", [2, 3, 4])
def test_records_in_a_codec_that_is_not_there_are_refused_by_name(codec: int) -> None:
    with pytest.raises(MalformedRecords, match=r"snappy|lz4|zstd"):
        parse_records(build_batch(RECORDS, attributes=codec))

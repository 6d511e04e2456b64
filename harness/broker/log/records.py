"""The records inside one v2 batch: how they are written, read and counted.

The broker stores batches as opaque bytes. It looks inside only where it must: to refuse a batch whose records do not
add up, to answer a lookup by timestamp, and for the batches that it writes itself (committed offsets).
Format: Kafka's `DefaultRecord`; all lengths are zigzag varints.
"""

import zlib
from collections.abc import Iterable

from harness.values import value_class

NO_COMPRESSION = 0
GZIP = 1
CODEC_NAMES = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}

MAX_DECOMPRESSED_BYTES = 64 << 20
"""A batch that expands to more is refused: it could otherwise fill the broker's memory."""
_MIN_RECORD_BYTES = 6
"""Attributes, timestamp delta, offset delta, key length, value length, header count: a byte each at least."""
_MAX_VARINT_BYTES = 10
_GZIP_WINDOW = 31


class MalformedRecords(ValueError):
    """The bytes of a batch's records do not add up, or cannot be decompressed."""


@value_class(frozen=True, slots=True, kw_only=True)
class Record:
    """One record."""

    key: bytes | None = None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()
    offset: int = -1
    """Where the record stands in its log; -1 before it has been appended."""


def encode_records(records: Iterable[Record], base_timestamp_ms: int) -> bytes:
    """Return the uncompressed records section of a batch, offset deltas counting from 0."""
    out = bytearray()
    for offset_delta, record in enumerate(records):
        body = bytearray(b"\0")  # attributes: unused by Kafka
        _write_varint(body, record.timestamp_ms - base_timestamp_ms)
        _write_varint(body, offset_delta)
        _write_bytes(body, record.key)
        _write_bytes(body, record.value)
        _write_varint(body, len(record.headers))
        for name, value in record.headers:
            _write_bytes(body, name.encode())
            _write_bytes(body, value)
        _write_varint(out, len(body))
        out += body
    return bytes(out)


def decode_records(payload: bytes, count: int, base_offset: int, base_timestamp_ms: int) -> list[Record]:
    """Return the `count` records of an uncompressed records section.

    Raises:
        MalformedRecords: they are cut short, leave bytes over, or contradict their own lengths.
    """
    records = []
    position = 0
    try:
        for _ in range(count):
            record, position = _read_record(payload, position, base_offset, base_timestamp_ms)
            records.append(record)
    except (IndexError, UnicodeDecodeError) as error:
        raise MalformedRecords(f"record {len(records)} of {count} is malformed: {error}") from error
    if position != len(payload):
        raise MalformedRecords(f"{len(payload) - position} bytes after the last of {count} records")
    return records


def count_records(payload: bytes) -> int:
    """Return how many records an uncompressed records section holds, hopping from length to length.

    Raises:
        MalformedRecords: a length is impossible, or the last record is cut short.
    """
    position, end, count = 0, len(payload), 0
    try:
        while position < end:
            size = payload[position]
            if size < 0x80:
                position += 1
            elif (second := payload[position + 1]) < 0x80:
                size = size & 0x7F | second << 7
                position += 2
            else:
                size, position = _read_raw_varint(payload, position)
            if size & 1 or size >> 1 < _MIN_RECORD_BYTES:
                raise MalformedRecords(f"record {count} has an impossible length")
            position += size >> 1
            count += 1
    except IndexError as error:
        raise MalformedRecords(f"record {count} is cut short") from error
    if position != end:
        raise MalformedRecords(f"record {count - 1} is cut short by {position - end} bytes")
    return count


def decompress(payload: bytes | memoryview, codec: int) -> bytes:
    """Return the records section uncompressed; codecs other than gzip are not available to the broker.

    Raises:
        MalformedRecords: the stream is broken, expands past `MAX_DECOMPRESSED_BYTES`, or has another codec.
    """
    if codec == NO_COMPRESSION:
        return bytes(payload)
    if codec != GZIP:
        raise MalformedRecords(f"the broker cannot look into {CODEC_NAMES.get(codec, f'codec {codec}')}")
    inflater = zlib.decompressobj(wbits=_GZIP_WINDOW)
    try:
        inflated = inflater.decompress(payload, MAX_DECOMPRESSED_BYTES)
    except zlib.error as error:
        raise MalformedRecords(f"gzip: {error}") from error
    if not inflater.eof or inflater.unused_data:
        raise MalformedRecords(f"gzip stream does not end with the batch, or holds over {MAX_DECOMPRESSED_BYTES} bytes")
    return inflated


def _read_record(payload: bytes, position: int, base_offset: int, base_timestamp_ms: int) -> tuple[Record, int]:
    size, start = _read_varint(payload, position)
    timestamp_delta, position = _read_varint(payload, start + 1)
    offset_delta, position = _read_varint(payload, position)
    key, position = _read_bytes(payload, position)
    value, position = _read_bytes(payload, position)
    header_count, position = _read_varint(payload, position)
    headers = []
    for _ in range(header_count):
        name, position = _read_bytes(payload, position)
        if name is None:
            raise MalformedRecords("a record header has no name")
        header_value, position = _read_bytes(payload, position)
        headers.append((name.decode(), header_value))
    if position - start != size or header_count < 0:
        raise MalformedRecords(f"a record says it has {size} bytes and {header_count} headers, has {position - start}")
    record = Record(
        key=key,
        value=value,
        timestamp_ms=base_timestamp_ms + timestamp_delta,
        headers=tuple(headers),
        offset=base_offset + offset_delta,
    )
    return record, position


def _write_varint(out: bytearray, value: int) -> None:
    raw = value << 1 ^ value >> 63
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)


def _write_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        _write_varint(out, -1)
    else:
        _write_varint(out, len(data))
        out += data


def _read_raw_varint(payload: bytes, position: int) -> tuple[int, int]:
    raw = 0
    for shift in range(0, 7 * _MAX_VARINT_BYTES, 7):
        byte = payload[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw, position
    raise MalformedRecords("a varint does not end")


def _read_varint(payload: bytes, position: int) -> tuple[int, int]:
    raw, position = _read_raw_varint(payload, position)
    return raw >> 1 ^ -(raw & 1), position


def _read_bytes(payload: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = _read_varint(payload, position)
    if size < 0:
        return None, position
    end = position + size
    if end > len(payload):
        raise MalformedRecords(f"a field of {size} bytes reaches past the end")
    return payload[position:end], end

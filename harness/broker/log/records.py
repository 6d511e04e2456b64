"""The records inside one v2 batch: writing, reading and counting.

The broker stores batches as opaque bytes. It looks inside only to refuse inconsistent records, to answer a lookup by
timestamp, and for its own batches (committed offsets).
Format: Kafka's `DefaultRecord`; all lengths are zigzag varints.
"""

from collections.abc import Iterable, Iterator

from harness.values import value_class

_MIN_RECORD_BYTES = 6
"""Attributes, timestamp delta, offset delta, key length, value length, header count: a byte each at least."""
_MAX_VARINT_BYTES = 10


class MalformedRecords(ValueError):
    """The bytes of a batch's records are inconsistent, or cannot be decompressed."""


@value_class(frozen=True, slots=True, kw_only=True)
class Record:
    """One record."""

    key: bytes | None = None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()
    offset: int = -1
    """The record's offset in its log; -1 before it has been appended."""


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
    """Return the number of records in an uncompressed records section, reading lengths only.

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


def has_incremental_offsets(payload: bytes) -> bool:
    """Whether the records of a counted section have the offsets 0, 1, 2 … in their batch."""
    try:
        return all(delta == expected for expected, (_, delta) in enumerate(deltas(payload)))
    except MalformedRecords:
        return False


def deltas(payload: bytes) -> Iterator[tuple[int, int]]:
    """Yield what each record of an uncompressed section adds to its batch's base timestamp and base offset.

    Raises:
        MalformedRecords: a length is impossible, or the section ends within the deltas of a record.
    """
    position = 0
    try:
        while position < len(payload):
            size, start = _read_varint(payload, position)
            if size < _MIN_RECORD_BYTES:
                raise MalformedRecords("a record has an impossible length")
            timestamp_delta, position = _read_varint(payload, start + 1)
            offset_delta, _ = _read_varint(payload, position)
            yield timestamp_delta, offset_delta
            position = start + size
    except IndexError as error:
        raise MalformedRecords("a record is cut short") from error


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

"""Records as ranges of bytes: only the parts that a cleaner needs, so that all else is copied unchanged."""

from collections.abc import Iterable
from typing import NamedTuple

from harness.broker.log.records import MalformedRecords

_MAX_VARINT_BITS = 70


class RawRecord(NamedTuple):
    """The place of one record in its batch, and the fields that a cleaner needs."""

    start: int
    """Position of its length."""
    offset_at: int
    """Position of its offset delta, and of all after the timestamp."""
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def raw_records(payload: bytes, count: int) -> list[RawRecord]:
    """Return the `count` records of an uncompressed records section.

    Raises:
        MalformedRecords: they are cut short, or leave bytes over.
    """
    records: list[RawRecord] = []
    start, size = 0, len(payload)
    try:
        for _ in range(count):
            # Most varints have one byte or two; a call for each would take half of the time.
            length, body = payload[start], start + 1
            if length < 0x80:
                length = length >> 1 ^ -(length & 1)
            elif (second := payload[body]) < 0x80:
                raw = length & 0x7F | second << 7
                length, body = raw >> 1 ^ -(raw & 1), body + 1
            else:
                length, body = _varint(payload, start)
            end = body + length
            timestamp_delta, offset_at = payload[body + 1], body + 2
            if timestamp_delta < 0x80:
                timestamp_delta = timestamp_delta >> 1 ^ -(timestamp_delta & 1)
            else:
                timestamp_delta, offset_at = _varint(payload, body + 1)
            offset_delta, position = payload[offset_at], offset_at + 1
            if offset_delta < 0x80:
                offset_delta = offset_delta >> 1 ^ -(offset_delta & 1)
            else:
                offset_delta, position = _varint(payload, offset_at)
            key_length, key_at = payload[position], position + 1
            if key_length < 0x80:
                key_length = key_length >> 1 ^ -(key_length & 1)
            else:
                key_length, key_at = _varint(payload, position)
            position = key_at if key_length < 0 else key_at + key_length
            key = None if key_length < 0 else payload[key_at:position]
            has_value = not payload[position] & 1  # an odd varint is negative, which stands for none
            if not position < end <= size:
                raise MalformedRecords(f"record {len(records)} of {count} is cut short")
            records.append(RawRecord(start, offset_at, end, timestamp_delta, offset_delta, key, has_value))
            start = end
    except IndexError as error:
        raise MalformedRecords(f"record {len(records)} of {count} is cut short") from error
    if start != size:
        raise MalformedRecords(f"{size - start} bytes after the last of {count} records")
    return records


def with_base_timestamp(payload: bytes, records: Iterable[RawRecord], shift_ms: int) -> bytes:
    """Return these records for a base timestamp that is earlier by this much."""
    if not shift_ms:
        return b"".join(payload[record.start : record.end] for record in records)
    out = bytearray()
    for record in records:
        timestamp = _encoded(record.timestamp_delta + shift_ms)
        rest = payload[record.offset_at : record.end]
        out += _encoded(1 + len(timestamp) + len(rest))
        out += b"\0"  # attributes: unused by Kafka
        out += timestamp
        out += rest
    return bytes(out)


def _varint(payload: bytes, position: int) -> tuple[int, int]:
    byte = payload[position]
    position += 1
    raw = byte & 0x7F
    shift = 7
    while byte & 0x80:
        if shift >= _MAX_VARINT_BITS:
            raise MalformedRecords("a varint does not end")
        byte = payload[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
    return raw >> 1 ^ -(raw & 1), position


def _encoded(value: int) -> bytes:
    raw = value << 1 ^ value >> 63
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)

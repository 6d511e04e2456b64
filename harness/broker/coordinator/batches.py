"""How do keys and values become a v2 record batch, and how are they read back?

Only what the coordinator writes itself: plain batches, not compressed, no producer id, no headers. Batches of clients
are opaque to the broker and never come here.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import crc32c

_FRAME = struct.Struct(">qi")
"""Base offset, length of what follows."""
_HEADER = struct.Struct(">qiibIhiqqqhii")
_CRC_FROM = 21
"""The checksum covers everything from the attributes on."""
_CONTROL_BIT = 0x20
_CODEC_MASK = 0x07
NO_PRODUCER = -1


@dataclass(frozen=True, slots=True)
class PlainRecord:
    """One record as it stands in the log."""

    offset: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainBatch:
    """One batch as it stands in the log."""

    next_offset: int
    """The offset after its last, even where compaction has taken records out of it."""
    records: list[PlainRecord]


def encode(records: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int) -> bytes:
    """Return one batch of keys and values, at base offset 0; the log gives it its place and leader epoch."""
    body = b"".join(_record(index, key, value) for index, (key, value) in enumerate(records))
    length = _HEADER.size - _FRAME.size + len(body)
    last, count, no_id = len(records) - 1, len(records), NO_PRODUCER

    def header(crc: int) -> bytes:
        return _HEADER.pack(0, length, -1, 2, crc, 0, last, timestamp_ms, timestamp_ms, no_id, no_id, no_id, count)

    return header(crc32c.crc32c(header(0)[_CRC_FROM:] + body)) + body


def decode(data: bytes) -> Iterator[PlainBatch]:
    """Yield whole batches in log order; of a control batch without its records.

    Raises:
        ValueError: a batch is compressed, which a group coordinator never writes by default.
    """
    position = 0
    while position < len(data):
        base_offset, length, _, _, _, attributes, last_delta, *_, count = _HEADER.unpack_from(data, position)
        if attributes & _CODEC_MASK:
            raise ValueError(f"batch at offset {base_offset} is compressed")
        wanted = 0 if attributes & _CONTROL_BIT else count
        records = _records(data, position + _HEADER.size, base_offset, wanted)
        yield PlainBatch(next_offset=base_offset + last_delta + 1, records=records)
        position += _FRAME.size + length


def _record(index: int, key: bytes, value: bytes | None) -> bytes:
    body = b"\x00" + _varint(0) + _varint(index) + _varint(len(key)) + key
    body += _varint(-1) if value is None else _varint(len(value)) + value
    body += _varint(0)
    return _varint(len(body)) + body


def _records(data: bytes, position: int, base_offset: int, count: int) -> list[PlainRecord]:
    records = []
    for _ in range(count):
        length, position = _read_varint(data, position)
        end = position + length
        _, position = _read_varint(data, position + 1)
        delta, position = _read_varint(data, position)
        key, position = _read_bytes(data, position)
        value, position = _read_bytes(data, position)
        records.append(PlainRecord(base_offset + delta, key, value))
        position = end
    return records


def _varint(value: int) -> bytes:
    """Return Kafka's zigzag varint."""
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(0x80 | rest & 0x7F)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = _read_varint(data, position)
    if length < 0:
        return None, position
    return data[position : position + length], position + length

"""How is one record bytes? As a batch (format v2, KIP-98); for brokers before 0.11 as a message (format v1, KIP-32)."""

import struct
import zlib
from collections.abc import Iterator

BATCHES_SINCE = 3
"""Version of Produce from which on records are batches."""
MAGIC_AT = 16
_BATCH_MAGIC, _MESSAGE_MAGIC = 2, 1
_ENTRY = struct.Struct(">qi")
"""Base offset, and how many bytes follow."""
_BEFORE_CRC = struct.Struct(">ib")
"""Leader epoch, magic."""
_AFTER_CRC = struct.Struct(">hiqqqhii")
"""Attributes, last offset delta, both timestamps, producer's id, epoch and sequence, count of records."""
_LAST_DELTA_AT = _ENTRY.size + _BEFORE_CRC.size + 4 + 2
_MESSAGE = struct.Struct(">bbq")
"""Magic, attributes, timestamp."""
_NONE = -1
_CASTAGNOLI = 0x82F63B78


def batch_of(key: bytes, value: bytes, timestamp_ms: int) -> bytes:
    """Return a batch of one record, of no idempotent producer, not compressed."""
    record = b"\0\0\0" + b"".join(_varint(len(part)) + part for part in (key, value)) + _varint(0)
    body = _AFTER_CRC.pack(0, 0, timestamp_ms, timestamp_ms, _NONE, _NONE, _NONE, 1) + _varint(len(record)) + record
    checked = _BEFORE_CRC.pack(_NONE, _BATCH_MAGIC) + struct.pack(">I", crc32c(body)) + body
    return _ENTRY.pack(0, len(checked)) + checked


def message_of(key: bytes, value: bytes, timestamp_ms: int) -> bytes:
    """Return a message of format v1."""
    body = _MESSAGE.pack(_MESSAGE_MAGIC, 0, timestamp_ms)
    body += b"".join(struct.pack(">i", len(part)) + part for part in (key, value))
    checked = struct.pack(">I", zlib.crc32(body)) + body
    return _ENTRY.pack(0, len(checked)) + checked


def last_offsets(records: bytes) -> Iterator[int]:
    """Yield the last offset of each whole batch, or message, in the answer to a fetch."""
    position = 0
    while position + _ENTRY.size <= len(records):
        offset, size = _ENTRY.unpack_from(records, position)
        end = position + _ENTRY.size + size
        if size <= MAGIC_AT - _ENTRY.size or end > len(records):
            return
        if records[position + MAGIC_AT] == _BATCH_MAGIC:
            offset += struct.unpack_from(">i", records, position + _LAST_DELTA_AT)[0]
        yield offset
        position = end


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of some bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_CASTAGNOLI if byte & 1 else 0)
    return byte


_TABLE = tuple(map(_remainder, range(256)))


def _varint(number: int) -> bytes:
    """Return a number of variable length, zigzag."""
    left, data = number << 1 ^ number >> 63, bytearray()
    while left > 0x7F:
        data.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*data, left])

"""What does a record of `__consumer_offsets` look like, and which partition of it does a group's offsets live in?

Keys and values are big endian with Kafka's classic types (`OffsetCommitKey`, `OffsetCommitValue`). Written are key
version 1 and value version 3; read are values of versions 0 to 3, so that a log of real Kafka can be loaded.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from harness.broker.log.batch import build_batch, iter_batches, parse_records
from harness.broker.log.records import Record
from harness.broker.wire.sentinels import NO_EPOCH

_INT32_MIN = -(2**31)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class OffsetKey:
    """Whose position in what."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """A position as it was committed."""

    offset: int
    leader_epoch: int = NO_EPOCH
    """Of the last consumed record, when the client knew it."""
    metadata: str = ""
    timestamp_ms: int
    """Wall clock of the coordinator at the commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRecord:
    """One record of `__consumer_offsets` about a committed offset."""

    log_offset: int
    key: OffsetKey
    value: CommittedOffset | None
    """None takes the offset back (a tombstone)."""


def partition_of(group: str, partitions: int) -> int:
    """Return the partition of `__consumer_offsets` that holds the group: Java's string hash, as Kafka's `Utils.abs`."""
    units = group.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    signed = value - 2**32 if value >= 2**31 else value
    return (0 if signed == _INT32_MIN else abs(signed)) % partitions


def encode_batch(records: Iterable[tuple[OffsetKey, CommittedOffset | None]], timestamp_ms: int) -> bytes:
    """Return one record batch, ready to append."""
    return build_batch(
        [
            Record(
                key=_encode_key(key),
                value=None if value is None else _encode_value(value),
                timestamp_ms=timestamp_ms,
            )
            for key, value in records
        ]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChunk:
    """What a piece of the log says."""

    records: list[OffsetRecord]
    next_offset: int
    """Where the next piece begins."""


def decode_chunk(data: bytes) -> OffsetChunk:
    """Return the offset records of whole batches, at least one, in log order; other kinds of records are left out.

    Raises:
        ValueError, struct.error: a batch or record is not what a coordinator writes.
    """
    records, next_offset = [], 0
    for header, batch in iter_batches(data):
        next_offset = header.last_offset + 1
        for record in [] if header.is_control else parse_records(batch):
            key = _decode_key(record.key)
            if key is not None:
                value = None if record.value is None else _decode_value(record.value)
                records.append(OffsetRecord(log_offset=record.offset, key=key, value=value))
    return OffsetChunk(records=records, next_offset=next_offset)


def _encode_key(key: OffsetKey) -> bytes:
    return struct.pack(">h", 1) + _string(key.group) + _string(key.topic) + struct.pack(">i", key.partition)


def _encode_value(value: CommittedOffset) -> bytes:
    head = struct.pack(">hqi", 3, value.offset, value.leader_epoch)
    return head + _string(value.metadata) + struct.pack(">q", value.timestamp_ms)


def _decode_key(data: bytes | None) -> OffsetKey | None:
    """Return the key, or None for a group's own record and for versions of the future."""
    if data is None or struct.unpack_from(">h", data)[0] not in (0, 1):
        return None
    group, position = _read_string(data, 2)
    topic, position = _read_string(data, position)
    return OffsetKey(group=group, topic=topic, partition=struct.unpack_from(">i", data, position)[0])


def _decode_value(data: bytes) -> CommittedOffset:
    version, offset = struct.unpack_from(">hq", data)
    position, leader_epoch = 10, NO_EPOCH
    if version >= 3:
        (leader_epoch,) = struct.unpack_from(">i", data, position)
        position += 4
    metadata, position = _read_string(data, position)
    (timestamp_ms,) = struct.unpack_from(">q", data, position)
    return CommittedOffset(offset=offset, leader_epoch=leader_epoch, metadata=metadata, timestamp_ms=timestamp_ms)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _read_string(data: bytes, position: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, position)
    end = position + 2 + length
    return data[position + 2 : end].decode(), end

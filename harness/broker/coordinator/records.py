"""Records of `__consumer_offsets`.

A record is about an offset that a group committed, or about the group itself: generation, members, assignments. Keys
and values are big endian with Kafka's classic types (`OffsetCommitKey` and `-Value`, `GroupMetadataKey` and `-Value`).
Written are key versions 1 and 2 and value version 3 (1 for an offset with an expiry time); read are values of versions
0 to 3, so that a log of real Kafka can be loaded.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

from harness.broker.coordinator.classic_types import read_text, write_text
from harness.broker.coordinator.group_records import (
    GROUP_KEY_VERSION,
    GroupMetadata,
    decode_group_value,
    encode_group_key,
    encode_group_value,
)
from harness.broker.log.batch import UNNUMBERED, Numbering, build_batch, iter_batches, parse_records
from harness.broker.log.markers import TRANSACTIONAL, read_marker
from harness.broker.log.records import Record
from harness.broker.wire.sentinels import NO_EPOCH

OFFSET_KEY_VERSIONS = (0, 1)
NO_PRODUCER_ID = -1


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class OffsetKey:
    """Group, topic and partition of a position."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """A committed position."""

    offset: int
    leader_epoch: int = NO_EPOCH
    """Of the last consumed record, if the client knew it."""
    metadata: str = ""
    timestamp_ms: int
    """Wall clock of the coordinator at the commit."""
    expires_ms: int | None = None
    """Expiry set by the client (OffsetCommit up to version 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRecord:
    """One record of `__consumer_offsets` about a committed offset."""

    log_offset: int
    key: OffsetKey
    value: CommittedOffset | None
    """None removes the offset (a tombstone)."""
    producer_id: int = NO_PRODUCER_ID
    """Producer of the transaction that the offset is part of; -1 for one that counts at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionOutcome:
    """A marker in `__consumer_offsets`: decides whether the offsets of a producer's transaction count."""

    producer_id: int
    commits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """One record of `__consumer_offsets` about a group."""

    group: str
    value: GroupMetadata | None
    """None ends the group (a tombstone)."""


def encode_batch(
    records: Iterable[tuple[OffsetKey, CommittedOffset | None]],
    timestamp_ms: int,
    transaction: Numbering | None = None,
) -> bytes:
    """Return offsets as one record batch, ready to append, also as part of a producer's transaction."""
    return build_batch(
        [
            Record(
                key=_encode_key(key),
                value=None if value is None else _encode_value(value),
                timestamp_ms=timestamp_ms,
            )
            for key, value in records
        ],
        attributes=0 if transaction is None else TRANSACTIONAL,
        numbering=transaction or UNNUMBERED,
    )


def encode_group(group: str, value: GroupMetadata, timestamp_ms: int) -> bytes:
    """Return a group as one record batch, ready to append."""
    return build_batch(
        [Record(key=encode_group_key(group), value=encode_group_value(value), timestamp_ms=timestamp_ms)]
    )


def encode_tombstones(offsets: Iterable[OffsetKey], groups: Iterable[str], timestamp_ms: int) -> bytes:
    """Return one record batch that removes offsets and groups."""
    keys = [*map(_encode_key, offsets), *map(encode_group_key, groups)]
    return build_batch([Record(key=key, value=None, timestamp_ms=timestamp_ms) for key in keys])


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChunk:
    """The content of a piece of the log."""

    records: list[OffsetRecord | GroupRecord | TransactionOutcome]
    next_offset: int
    """Start of the next piece."""


def decode_chunk(data: bytes) -> OffsetChunk:
    """Return the records of whole batches, at least one, in log order; those of unknown kinds are left out.

    Raises:
        ValueError, struct.error: a batch or record is not what a coordinator writes.
    """
    records: list[OffsetRecord | GroupRecord | TransactionOutcome] = []
    next_offset = 0
    for header, batch in iter_batches(data):
        next_offset = header.last_offset + 1
        if header.is_control:
            marker = read_marker(batch, header)
            if marker is not None:
                records.append(TransactionOutcome(producer_id=header.producer_id, commits=marker.commits))
            continue
        for record in parse_records(batch):
            decoded = decode_record(record)
            if header.is_transactional and isinstance(decoded, OffsetRecord):
                decoded = replace(decoded, producer_id=header.producer_id)
            if decoded is not None:
                records.append(decoded)
    return OffsetChunk(records=records, next_offset=next_offset)


def decode_record(record: Record) -> OffsetRecord | GroupRecord | None:
    """Return the content of a record, or None for one of an unknown kind."""
    if record.key is None:
        return None
    (version,) = struct.unpack_from(">h", record.key)
    if version in OFFSET_KEY_VERSIONS:
        offset = None if record.value is None else _decode_value(record.value)
        return OffsetRecord(log_offset=record.offset, key=_decode_key(record.key), value=offset)
    if version == GROUP_KEY_VERSION:
        group, _ = read_text(record.key, 2)
        return GroupRecord(group=group, value=None if record.value is None else decode_group_value(record.value))
    return None


def _encode_key(key: OffsetKey) -> bytes:
    return struct.pack(">h", 1) + write_text(key.group) + write_text(key.topic) + struct.pack(">i", key.partition)


def _encode_value(value: CommittedOffset) -> bytes:
    """Return an offset in version 3, or in version 1, the only one with an expiry time."""
    if value.expires_ms is not None:
        times = struct.pack(">qq", value.timestamp_ms, value.expires_ms)
        return struct.pack(">hq", 1, value.offset) + write_text(value.metadata) + times
    head = struct.pack(">hqi", 3, value.offset, value.leader_epoch)
    return head + write_text(value.metadata) + struct.pack(">q", value.timestamp_ms)


def _decode_key(data: bytes) -> OffsetKey:
    group, position = read_text(data, 2)
    topic, position = read_text(data, position)
    return OffsetKey(group=group, topic=topic, partition=struct.unpack_from(">i", data, position)[0])


def _decode_value(data: bytes) -> CommittedOffset:
    version, offset = struct.unpack_from(">hq", data)
    position, leader_epoch = 10, NO_EPOCH
    if version >= 3:
        (leader_epoch,) = struct.unpack_from(">i", data, position)
        position += 4
    metadata, position = read_text(data, position)
    (timestamp_ms,) = struct.unpack_from(">q", data, position)
    expires_ms = struct.unpack_from(">q", data, position + 8)[0] if version == 1 else -1
    return CommittedOffset(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        timestamp_ms=timestamp_ms,
        expires_ms=None if expires_ms < 0 else expires_ms,
    )

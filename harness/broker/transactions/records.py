"""What does a record of `__transaction_state` look like?

Big endian with Kafka's classic types: `TransactionLogKey` version 0 is the transactional id, `TransactionLogValue`
version 0 the state of its transaction. Kafka 3.9 writes version 1, a flexible one, only under the feature
`transaction.version`, which a cluster with ZooKeeper does not have; both are read.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from harness.broker.coordinator.classic_types import read_text, write_text
from harness.broker.log.batch import build_batch, iter_batches, parse_records
from harness.broker.log.records import Record
from harness.broker.transactions.metadata import TransactionMetadata, TransactionState
from harness.values import TopicPartition

KEY_VERSION = 0
VALUE_VERSION = 0
FLEXIBLE_VALUE_VERSION = 1

_HEAD = struct.Struct(">hqhib")
"""Version, producer id, producer epoch, time-out, state."""
_TIMES = struct.Struct(">qq")
"""Last change, start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRecord:
    """One record of `__transaction_state`."""

    transactional_id: str
    value: TransactionMetadata | None
    """None ends the transactional id (a tombstone)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionChunk:
    """What a piece of the log says."""

    records: list[TransactionRecord]
    unreadable: list[tuple[int, str]]
    """Offsets of records that are not what a coordinator writes, each with the reason."""
    next_offset: int
    """Where the next piece begins."""


def encode_transaction(transactional_id: str, value: TransactionMetadata, timestamp_ms: int) -> bytes:
    """Return a transaction as one record batch, ready to append."""
    key, data = encode_key(transactional_id), encode_value(value)
    return build_batch([Record(key=key, value=data, timestamp_ms=timestamp_ms)])


def encode_tombstones(transactional_ids: Iterable[str], timestamp_ms: int) -> bytes:
    """Return one record batch that ends transactional ids."""
    return build_batch(
        [Record(key=encode_key(each), value=None, timestamp_ms=timestamp_ms) for each in transactional_ids]
    )


def encode_key(transactional_id: str) -> bytes:
    """Return the key of a transactional id."""
    return struct.pack(">h", KEY_VERSION) + write_text(transactional_id)


def encode_value(value: TransactionMetadata) -> bytes:
    """Return a transaction in version 0; while none has begun, its partitions are null."""
    head = _HEAD.pack(VALUE_VERSION, value.producer_id, value.producer_epoch, value.timeout_ms, value.state.state_id)
    return head + _encode_partitions(value) + _TIMES.pack(value.updated_ms, value.started_ms)


def decode_chunk(data: bytes) -> TransactionChunk:
    """Return the records of whole batches, at least one, in log order; those of unknown kinds are left out.

    Raises:
        ValueError: a batch is damaged.
    """
    records: list[TransactionRecord] = []
    unreadable: list[tuple[int, str]] = []
    next_offset = 0
    for header, batch in iter_batches(data):
        next_offset = header.last_offset + 1
        for record in [] if header.is_control else parse_records(batch):
            try:
                decoded = decode_record(record)
            except (ValueError, struct.error) as error:
                unreadable.append((record.offset, str(error)))
            else:
                records += [] if decoded is None else [decoded]
    return TransactionChunk(records=records, unreadable=unreadable, next_offset=next_offset)


def decode_record(record: Record) -> TransactionRecord | None:
    """Return what a record says, or None for one whose key is of an unknown version.

    Raises:
        ValueError, struct.error: it is not what a coordinator writes.
    """
    if record.key is None:
        raise ValueError("a record of __transaction_state has no key")
    (version,) = struct.unpack_from(">h", record.key)
    if version != KEY_VERSION:
        return None
    transactional_id, end = read_text(record.key, 2)
    if end != len(record.key):
        raise ValueError(f"a key of {len(record.key)} bytes whose text ends at {end}")
    value = None if record.value is None else decode_value(record.value)
    return TransactionRecord(transactional_id=transactional_id, value=value)


def decode_value(data: bytes) -> TransactionMetadata:
    """Return a transaction of version 0 or 1.

    Raises:
        ValueError, struct.error: it is of another version, or cut short.
    """
    version, producer_id, producer_epoch, timeout_ms, state_id = _HEAD.unpack_from(data)
    if version not in (VALUE_VERSION, FLEXIBLE_VALUE_VERSION):
        raise ValueError(f"a transaction of version {version}")
    read = _read_partitions if version == VALUE_VERSION else _read_flexible_partitions
    partitions, position = read(data, _HEAD.size)
    updated_ms, started_ms = _TIMES.unpack_from(data, position)
    return TransactionMetadata(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timeout_ms=timeout_ms,
        state=TransactionState.of_id(state_id),
        partitions=partitions,
        updated_ms=updated_ms,
        started_ms=started_ms,
    )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the numbers of partitions by their topics, all sorted."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def _encode_partitions(value: TransactionMetadata) -> bytes:
    if value.state is TransactionState.EMPTY:
        return struct.pack(">i", -1)
    topics = by_topic(value.partitions)
    parts = [struct.pack(">i", len(topics))]
    for topic, numbers in topics.items():
        parts.append(write_text(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return b"".join(parts)


def _read_partitions(data: bytes, position: int) -> tuple[frozenset[TopicPartition], int]:
    (count,) = struct.unpack_from(">i", data, position)
    position += 4
    partitions: set[TopicPartition] = set()
    for _ in range(count):
        topic, position = read_text(data, position)
        (length,) = struct.unpack_from(">i", data, position)
        numbers = struct.unpack_from(f">{max(length, 0)}i", data, position + 4)
        position += 4 + 4 * len(numbers)
        partitions.update((topic, number) for number in numbers)
    return frozenset(partitions), position


def _read_flexible_partitions(data: bytes, position: int) -> tuple[frozenset[TopicPartition], int]:
    """Read partitions in Kafka's compact types; no tagged field of a topic is known, and none is skipped."""
    count, position = _read_unsigned(data, position)
    partitions: set[TopicPartition] = set()
    for _ in range(count - 1):
        length, position = _read_unsigned(data, position)
        topic = data[position : position + length - 1].decode()
        position += length - 1
        length, position = _read_unsigned(data, position)
        numbers = struct.unpack_from(f">{length - 1}i", data, position)
        tags, position = _read_unsigned(data, position + 4 * len(numbers))
        if tags:
            raise ValueError(f"{tags} tagged fields in a topic of a transaction")
        partitions.update((topic, number) for number in numbers)
    return frozenset(partitions), position


def _read_unsigned(data: bytes, position: int) -> tuple[int, int]:
    """Read an unsigned varint."""
    value = shift = 0
    while True:
        if position >= len(data):
            raise ValueError("a transaction is cut short")
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if not byte & 0x80:
            return value, position
        shift += 7

"""Record batches of transactions in words: what a reader is served, and the bytes that `__transaction_state` holds."""

import struct
from collections.abc import Callable, Collection, Iterator, Sequence

from harness.broker.log.batch import Numbering, build_batch, iter_batches, parse_records
from harness.broker.log.markers import TRANSACTIONAL, read_marker
from harness.broker.log.records import Record
from harness.broker.transactions.records import decode_record
from tools.side_by_side.stored_bytes import in_short, version_of

_COUNT = struct.Struct(">i")
_LENGTH = struct.Struct(">h")
_PARTITIONS_AT = 17
"""Version, producer id, producer epoch, time-out and state come before the partitions."""
_ID_AT, _ID_END = 2, 10
_TIMES_BYTES = 16
_SHOWN_ID = 40

Names = Callable[[int], str]


def transactional_batch(
    values: Sequence[str], *, producer: tuple[int, int, int], timestamp_ms: int, transactional: bool = True
) -> bytes:
    """Return a batch of a producer id, an epoch, and a first sequence."""
    records = [Record(value=value.encode(), timestamp_ms=timestamp_ms) for value in values]
    return build_batch(records, attributes=TRANSACTIONAL if transactional else 0, numbering=Numbering(*producer))


def batch_line(data: bytes, named: Names) -> Iterator[str]:
    """Yield a line for each batch."""
    for header, batch in iter_batches(data):
        producer = f"{named(header.producer_id)}/{header.producer_epoch}"
        offsets = f"{header.base_offset}-{header.last_offset}"
        marker = read_marker(batch, header) if header.is_control else None
        if marker is not None:
            outcome = "commit" if marker.commits else "abort"
            yield f"{offsets} {producer} {outcome} by coordinator epoch {marker.coordinator_epoch}"
        else:
            values = [(record.value or b"").decode() for record in parse_records(batch)]
            kind = "transactional" if header.is_transactional else "plain"
            yield f"{offsets} {producer} from {header.base_sequence} {kind} {values}"


def stored_line(data: bytes, transactional_ids: Collection[str], topic: str, named: Names) -> Iterator[str]:
    """Yield a line for each record about transactional ids: its state, and its bytes without ids and times."""
    for _, batch in iter_batches(data):
        for record in parse_records(batch):
            try:
                decoded = decode_record(record)
            except (ValueError, struct.error):
                continue
            if decoded is None or decoded.transactional_id not in transactional_ids:
                continue
            assert record.key is not None
            name = decoded.transactional_id.replace(topic, "T", 1)
            name = name if len(name) < _SHOWN_ID else f"{len(name)} characters"
            key = f"{name} key {version_of(record.key)} of {len(record.key) - len(decoded.transactional_id)}+ bytes"
            if record.value is None or decoded.value is None:
                yield f"{key}: tombstone"
                continue
            known = decoded.value
            yield (
                f"{key}: {known.state} {named(known.producer_id)} epoch {known.producer_epoch} "
                f"{sorted((each.replace(topic, 'T'), number) for each, number in known.partitions)} "
                f"started {known.started_ms > 0} bytes {in_short(masked_transaction(record.value, topic))}"
            )


def masked_transaction(value: bytes, topic: str) -> bytes:
    """Return a transaction without its id and times, with T as topic and its partitions in order.

    Kafka writes partitions in the order of a hash set.
    """
    topics, position = _topics(value)
    started = value[position + 8 :]
    started_at = started if started == b"\xff" * 8 else bytes(8)
    assert position + _TIMES_BYTES == len(value), "a record of __transaction_state ends with two times"
    parts = [value[:_ID_AT], bytes(8), value[_ID_END:_PARTITIONS_AT], value[_PARTITIONS_AT : _PARTITIONS_AT + 4]]
    for name, numbers in sorted(topics):
        shown = name.replace(topic.encode(), b"T")
        parts += [_LENGTH.pack(len(shown)), shown, _COUNT.pack(len(numbers)), *map(_COUNT.pack, sorted(numbers))]
    return b"".join([*parts, bytes(8), started_at])


def _topics(value: bytes) -> tuple[list[tuple[bytes, list[int]]], int]:
    """Return the topics with their partitions as stored, and where they end."""
    topics = []
    (count,) = _COUNT.unpack_from(value, _PARTITIONS_AT)
    position = _PARTITIONS_AT + _COUNT.size
    for _ in range(max(count, 0)):
        (length,) = _LENGTH.unpack_from(value, position)
        name = value[position + 2 : position + 2 + length]
        position += 2 + length
        (many,) = _COUNT.unpack_from(value, position)
        topics.append((name, list(struct.unpack_from(f">{many}i", value, position + 4))))
        position += 4 + 4 * many
    return topics, position

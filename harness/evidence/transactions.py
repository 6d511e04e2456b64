"""Reads transactions from a replica's files, by code that the broker does not share.

Its lines are markers, transactional batches, transitions of transactional ids, aborted transactions and producers.
The formats are Kafka's: `.txnindex` (34 bytes an aborted transaction) and `.snapshot` (48 bytes a producer, after a
version, a CRC-32C and a count). Of a replica's snapshots the latest is read.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

from crc32c import crc32c

from harness.evidence.segments import ReplicaLog
from harness.evidence.transactions_topic import read
from harness.store.history import (
    AbortedEntry,
    ProducerEntry,
    StoredBatch,
    StoredMarker,
    StoredTransition,
    TransactionLine,
)
from harness.values import TRANSACTIONS_TOPIC

_ABORTED = struct.Struct(">h4q")
_PRODUCER = struct.Struct(">qhiqiqiq")
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_SNAPSHOT_VERSION = 1


def transaction_lines(
    broker_id: int, topic: str, partition: int, log: ReplicaLog, problems: list[str]
) -> Iterator[TransactionLine]:
    """Yield the lines of a replica's files, once its log was read; unreadable files become sentences in `problems`."""
    for marker in log.markers:
        yield StoredMarker(
            broker=broker_id,
            topic=topic,
            partition=partition,
            offset=marker.offset,
            leader_epoch=marker.leader_epoch,
            timestamp_ms=marker.timestamp_ms,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            result="commit" if marker.commits else "abort",
            coordinator_epoch=marker.coordinator_epoch,
        )
    for batch in log.transactional:
        yield StoredBatch(
            broker=broker_id,
            topic=topic,
            partition=partition,
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            leader_epoch=batch.leader_epoch,
            timestamp_ms=batch.timestamp_ms,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            first_sequence=batch.first_sequence,
        )
    if topic == TRANSACTIONS_TOPIC:
        yield from _transitions(broker_id, partition, log)
    for index in sorted(log.folder.glob("*.txnindex")):
        for producer_id, first, last, stable in _aborted(index, problems):
            yield AbortedEntry(
                broker=broker_id,
                topic=topic,
                partition=partition,
                segment=int(index.stem),
                producer_id=producer_id,
                first_offset=first,
                last_offset=last,
                last_stable_offset=stable,
            )
    snapshots = sorted(log.folder.glob("*.snapshot"))
    for fields in _producers(snapshots[-1], problems) if snapshots else ():
        producer_id, epoch, sequence, offset, delta, timestamp_ms, coordinator_epoch, first = fields
        yield ProducerEntry(
            broker=broker_id,
            topic=topic,
            partition=partition,
            snapshot_offset=int(snapshots[-1].stem),
            producer_id=producer_id,
            producer_epoch=epoch,
            last_sequence=sequence,
            last_offset=offset,
            offset_delta=delta,
            timestamp_ms=timestamp_ms,
            coordinator_epoch=coordinator_epoch,
            transaction_first_offset=first,
        )


def _transitions(broker_id: int, partition: int, log: ReplicaLog) -> Iterator[StoredTransition]:
    """Yield what the records of a partition of `__transaction_state` say; the log is read once more, being short."""
    for record in ReplicaLog(log.folder, log.known):
        if (fields := read(record.key, record.value)) is None:
            continue
        transactional_id, value = fields
        yield StoredTransition(
            broker=broker_id,
            topic=TRANSACTIONS_TOPIC,
            partition=partition,
            offset=record.offset,
            leader_epoch=record.leader_epoch,
            timestamp_ms=record.timestamp_ms,
            transactional_id=transactional_id,
            state=value.get("state", "Dead"),
            producer_id=value.get("producer_id", -1),
            producer_epoch=value.get("producer_epoch", -1),
            timeout_ms=value.get("timeout_ms", -1),
            started_ms=value.get("started_ms", -1),
            transaction_version=value.get("transaction_version", 0),
            partitions=value.get("partitions", []),
        )


def _aborted(path: Path, problems: list[str]) -> Iterator[tuple[int, int, int, int]]:
    data = path.read_bytes()
    whole, rest = divmod(len(data), _ABORTED.size)
    if rest:
        problems.append(f"{path.name}: {rest} bytes after {whole} transactions")
    for position in range(0, whole * _ABORTED.size, _ABORTED.size):
        version, producer_id, first, last, stable = _ABORTED.unpack_from(data, position)
        if version != 0:
            problems.append(f"{path.name}: version {version} at byte {position}")
            return
        yield producer_id, first, last, stable


def _producers(path: Path, problems: list[str]) -> Iterator[tuple[int, ...]]:
    data = path.read_bytes()
    body = data[_HEAD.size :]
    if len(body) < _COUNT.size:
        problems.append(f"{path.name}: a snapshot of {len(data)} bytes")
        return
    version, crc = _HEAD.unpack_from(data)
    (count,) = _COUNT.unpack_from(body)
    if version != _SNAPSHOT_VERSION or crc != crc32c(body) or len(body) != _COUNT.size + count * _PRODUCER.size:
        problems.append(f"{path.name}: version {version}, {count} producers in {len(data)} bytes, or a wrong CRC")
        return
    yield from _PRODUCER.iter_unpack(body[_COUNT.size :])

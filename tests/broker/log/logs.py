"""Small logs and batches for the tests of this folder."""

import struct
from collections.abc import Coroutine
from dataclasses import dataclass, field

import pytest

from harness.broker.log.batch import BatchHeader, Numbering, build_batch, iter_batches, seal
from harness.broker.log.log import AppendInfo, Log, LogSettings
from harness.broker.log.markers import TRANSACTIONAL, Marker, marker_batch
from harness.broker.log.records import Record
from harness.broker.log.recovery import LoadedLog, LogOrigin, open_log
from harness.broker.log.storage import Storage
from harness.broker.rules import ProtocolRules
from harness.simulation.disk import MemoryStorage

_PRODUCER_AT = 43
_PRODUCER = struct.Struct(">qhi")

SMALL = LogSettings(segment_bytes=400, index_interval_bytes=150)
"""Segments of about four batches with an index entry every other batch."""


def batch(count: int = 1, *, base_offset: int = 0, epoch: int = -1, timestamp_ms: int = 0) -> bytes:
    """A batch of `count` records of one timestamp each later than the last; about 80 bytes plus 15 a record."""
    records = [Record(value=b"value-%02d" % i, timestamp_ms=timestamp_ms + i) for i in range(count)]
    return build_batch(records, base_offset=base_offset, leader_epoch=epoch)


def from_producer(
    sequence: int, count: int = 1, *, producer_id: int = 7, producer_epoch: int = 0, timestamp_ms: int = 0
) -> bytes:
    """A batch of an idempotent producer that starts with this sequence number."""
    sent = bytearray(batch(count, timestamp_ms=timestamp_ms))
    _PRODUCER.pack_into(sent, _PRODUCER_AT, producer_id, producer_epoch, sequence)
    seal(sent)
    return bytes(sent)


def in_transaction(sequence: int, count: int = 1, *, producer_id: int = 7, producer_epoch: int = 0) -> bytes:
    """A batch of a transactional producer."""
    records = [Record(key=b"k", value=b"value-%02d" % i, timestamp_ms=i) for i in range(count)]
    return build_batch(records, attributes=TRANSACTIONAL, numbering=Numbering(producer_id, producer_epoch, sequence))


def write_in_transaction(
    log: Log, sequence: int, count: int = 1, *, producer_id: int = 7, producer_epoch: int = 0, epoch: int = 0
) -> AppendInfo:
    """Append such a batch; the coordinator says at once that the partition is in the transaction."""
    sent = in_transaction(sequence, count, producer_id=producer_id, producer_epoch=producer_epoch)
    verification = log.producer_history.verifications.begin(headers(sent)[0], 0)
    return log.append_as_leader(sent, epoch, verification=verification)


def end_transaction(
    log: Log,
    *,
    commits: bool,
    producer_id: int = 7,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    epoch: int = 0,
    timestamp_ms: int = 100,
) -> AppendInfo:
    """Append a marker."""
    marker = Marker(commits, coordinator_epoch)
    sent = marker_batch(marker, producer_id=producer_id, producer_epoch=producer_epoch, timestamp_ms=timestamp_ms)
    return log.append_as_leader(sent, epoch, internal=True)


def headers(data: bytes) -> list[BatchHeader]:
    return [header for header, _ in iter_batches(data)]


def spans(data: bytes) -> list[tuple[int, int]]:
    return [(header.base_offset, header.last_offset) for header in headers(data)]


@dataclass
class Heard:
    """What a log told its owner."""

    epochs: list[tuple[str, int, int, int]] = field(default_factory=list)
    lowered: int = 0

    def epoch(self, topic: str, partition: int, epoch: int, start: int) -> None:
        self.epochs.append((topic, partition, epoch, start))

    def lower(self) -> None:
        self.lowered += 1


def opened(
    storage: Storage,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    cleaned_to: int | None = None,
    settings: LogSettings = SMALL,
    heard: Heard | None = None,
    rules: ProtocolRules | None = None,
    expired_ms: int = -2,
) -> tuple[Log, LoadedLog]:
    heard = heard or Heard()
    origin = LogOrigin(
        topic="t",
        partition=0,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        cleaned_to=cleaned_to,
    )
    return open_log(
        storage,
        origin,
        settings,
        heard.epoch,
        heard.lower,
        lambda path, _: storage.remove(path),
        rules or ProtocolRules(),
        lambda: expired_ms,
    )


def new_log(storage: MemoryStorage | None = None, settings: LogSettings = SMALL, heard: Heard | None = None) -> Log:
    return opened(storage or MemoryStorage(), settings=settings, heard=heard)[0]


def at_once(work: Coroutine[object, object, None]) -> None:
    """Do what waits for nothing, as on a disk in memory, where there is no loop."""
    with pytest.raises(StopIteration):
        work.send(None)


def everything(log: Log) -> bytes:
    return log.read(log.log_start_offset, max_bytes=1 << 30, up_to=log.log_end_offset, at_least_one=True)

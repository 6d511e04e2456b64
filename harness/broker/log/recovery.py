"""Opening a log that is on disk: trusted after a clean stop, otherwise read again from its recovery point.

Everything before the recovery point was synced. From its segment on, batches are checked for size, CRC and order; the
first invalid one, and everything after it, is dropped. A follower with a shorter log fetches again.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from harness.broker.log.batch import BatchHeader
from harness.broker.log.checkpoint import LEADER_EPOCHS, read_epochs, write_epochs
from harness.broker.log.epoch_cache import LeaderEpochCache
from harness.broker.log.log import EpochListener, Log, LogSettings, PutAside
from harness.broker.log.producer_history import ProducerHistory
from harness.broker.log.segment import DELETED, SEGMENT_NAME, Segment
from harness.broker.log.storage import Storage
from harness.broker.log.swap import finish_swap
from harness.broker.rules import ProtocolRules

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOrigin:
    """A log's entries in the data directory's checkpoints, before it is opened."""

    topic: str
    partition: int
    clean: bool
    """Whether the broker stopped cleanly."""
    recovery_point: int = 0
    log_start_offset: int = 0
    cleaned_to: int | None = None
    folder_name: str = ""
    """Folder of a log that is not that of its partition yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLog:
    """The result of opening one log."""

    topic: str
    partition: int
    clean: bool
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    """The first offset that was not known to be synced; checks began at or before it."""
    truncated_bytes: int
    """Bytes dropped as invalid."""
    expired_producers: list[int]
    """Ids of producers that have expired; the log does not know them any more."""


def open_log(
    storage: Storage,
    origin: LogOrigin,
    settings: LogSettings,
    epoch_assigned: EpochListener,
    checkpoints_changed: Callable[[], None],
    put_aside: PutAside,
    rules: ProtocolRules,
    expired_ms: Callable[[], int],
) -> tuple[Log, LoadedLog]:
    """Return the log, created if needed, and its state on disk.

    A producer that wrote last at `expired_ms` or before is not loaded from a snapshot.

    Raises:
        StorageError: the leader-epoch checkpoint is malformed.
        OSError: the disk refused.
    """
    folder = origin.folder_name or f"{origin.topic}-{origin.partition}"
    epoch_path = f"{folder}/{LEADER_EPOCHS}"
    storage.make_folder(folder)
    unindexed_from = finish_swap(storage, folder)
    epochs_known = storage.exists(epoch_path)
    saved_epochs = read_epochs(storage, epoch_path)
    log = Log(
        storage=storage,
        topic=origin.topic,
        partition=origin.partition,
        settings=settings,
        segments=_segments(storage, folder, origin.log_start_offset, settings),
        epochs=LeaderEpochCache(saved_epochs),
        log_start_offset=origin.log_start_offset,
        recovery_point=0,
        epoch_assigned=epoch_assigned,
        checkpoints_changed=checkpoints_changed,
        put_aside=put_aside,
        rules=rules,
        producer_history=ProducerHistory(storage, folder, rules, expired_ms),
        cleaned_to=origin.cleaned_to,
        folder_name=origin.folder_name,
    )
    trusted = (origin.clean and epochs_known) or not rules.recovery_checks_batches
    checked_from, truncated_bytes = _check(log, 0 if not epochs_known else origin.recovery_point, trusted=trusted)
    if truncated_bytes:
        logger.warning("log.truncated log=%s end=%d bytes=%d", folder, log.log_end_offset, truncated_bytes)
    log.log_start_offset = max(origin.log_start_offset, log.segments[0].base_offset)
    without_index = [each.base_offset for each in log.segments if not each.aborted.is_sound(each.base_offset)]
    # Kafka recovers a segment without an index (`LogSegment.sanityCheck`). Only a large last segment has one.
    without_index += [each.base_offset for each in log.segments[:-1] if not each.has_index]
    if unindexed_from is not None:
        without_index.append(unindexed_from)
    expired = log.producer_history.load(log.segments, min([checked_from, *without_index]))
    # Kafka recovers into a snapshot, from which it loads no producer that has expired
    expired += log.producer_history.expire(expired_ms())
    if log.log_end_offset < log.log_start_offset:
        logger.warning("log.emptied log=%s end=%d start=%d", folder, log.log_end_offset, log.log_start_offset)
        log.truncate_fully_and_start_at(log.log_start_offset)
    log.epochs.truncate_from_end(log.log_end_offset)
    log.epochs.truncate_from_start(log.log_start_offset)
    if list(log.epochs) != saved_epochs:
        write_epochs(storage, epoch_path, log.epochs.entries)
    log.recovery_point = min(origin.recovery_point, log.log_end_offset)
    if not trusted:
        log.flush()
    return log, LoadedLog(
        topic=log.topic,
        partition=log.partition,
        clean=origin.clean,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        recovery_point=origin.recovery_point,
        truncated_bytes=truncated_bytes,
        expired_producers=expired,
    )


def _segments(storage: Storage, folder: str, first_offset: int, settings: LogSettings) -> list[Segment]:
    """Open every segment; those before the last are indexed when they are read. Files put aside are removed."""
    for name in storage.list(folder):
        if name.endswith(DELETED):
            storage.remove(f"{folder}/{name}")
    offsets = [int(match[1]) for name in storage.list(folder) if (match := SEGMENT_NAME.fullmatch(name))]
    segments = [Segment(storage, folder, offset, settings.index_interval_bytes) for offset in offsets or [first_offset]]
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset
    return segments


def _check(log: Log, recovery_point: int, *, trusted: bool) -> tuple[int, int]:
    """Drop invalid data, and add missing leader epochs to the cache.

    Return the offset from which the log was checked, its end if it is trusted, and the number of dropped bytes. A
    rolled segment that ends before the next one begins has lost its tail, unless a cleaner leaves gaps.
    """
    segments, gaps = log.segments, log.cleaned_to is not None
    first = len(segments) - 1
    while not trusted and first > 0 and segments[first].base_offset > recovery_point:
        first -= 1
    checked_from, dropped = segments[first].base_offset, 0
    for index in range(first, len(segments)):
        segment = segments[index]
        size = segment.size
        sound = segment.resume() if trusted else segment.scan(lambda header: _note_epoch(log.epochs, header), gaps=gaps)
        if sound < size:
            segment.cut(sound)
            dropped += size - sound
        later = segments[index + 1 :]
        if later and gaps and segment.next_offset < later[0].base_offset:
            segment.next_offset = later[0].base_offset
        if later and (sound < size or segment.next_offset != later[0].base_offset):
            dropped += sum(lost.size for lost in later)
            del segments[index + 1 :]
            for lost in reversed(later):
                lost.delete()
            break
    if dropped:
        segments[-1].sync()
    return segments[-1].next_offset if trusted else checked_from, dropped


def _note_epoch(epochs: LeaderEpochCache, header: BatchHeader) -> None:
    """Add entries that a crash kept out of the checkpoint; epoch 0 counts (KAFKA-10432)."""
    if header.leader_epoch >= 0 and header.leader_epoch > epochs.latest_epoch:
        epochs.assign(header.leader_epoch, header.base_offset)

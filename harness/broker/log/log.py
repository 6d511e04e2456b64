"""The log of one replica: an append-only sequence of batches, cut into segments, with its leader-epoch history.

What it knows of replication is the leader epoch of each batch; high watermark, ISR and roles belong to its owner.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.broker.log.batch import (
    BatchHeader,
    CorruptBatch,
    assign,
    iter_batches,
    parse_header,
    recompressed,
    record_reaching,
    stamp_append_time,
)
from harness.broker.log.checkpoint import LEADER_EPOCHS, write_epochs
from harness.broker.log.compression import COMPRESSION_TYPES
from harness.broker.log.epoch_cache import LeaderEpochCache
from harness.broker.log.markers import read_marker
from harness.broker.log.producer_history import ProducerHistory
from harness.broker.log.producers import ProducerStates, RememberedBatch, WrittenMarker
from harness.broker.log.rolling import must_roll
from harness.broker.log.segment import Segment
from harness.broker.log.settings import NO_LIMIT, LogSettings
from harness.broker.log.storage import Storage
from harness.broker.log.transaction_index import AbortedTransaction
from harness.broker.log.validation import (
    InvalidRecords,
    check_size,
    check_timestamps,
    validate_for_follower,
    validate_for_leader,
)
from harness.broker.log.verification import Verification
from harness.broker.rules import ProtocolRules
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import NO_TIMESTAMP
from harness.values import value_class

__all__ = [
    "AppendInfo",
    "EpochListener",
    "InvalidRecords",
    "Log",
    "LogSettings",
    "OffsetOutOfRange",
    "OffsetsOutOfOrder",
    "PutAside",
]

EpochListener = Callable[[str, int, int, int], None]
"""Called with topic, partition, leader epoch and its start offset when a log has noted a new epoch."""


PutAside = Callable[[str, int], None]
"""Called with the path of a file that is no part of its log any more, and its delay before removal in milliseconds."""

_READ_AT_START_BYTES = 1 << 20
"""Bytes of a last segment that a start reads through instead of trusting an index."""


class LogClosed(Exception):
    """A log was closed, or deleted, while a read of it waited."""


class OffsetOutOfRange(Exception):
    """An offset is before the log's start or after its end."""


class OffsetsOutOfOrder(Exception):
    """A follower received a batch that does not follow its log end; nothing was written."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(message)
        self.first_offset = first_offset
        """Of all batches that were received."""
        self.last_offset = last_offset


@value_class(frozen=True, slots=True, kw_only=True)
class AppendInfo:
    """The place of records in a log."""

    base_offset: int
    last_offset: int
    batches: list[BatchHeader]
    """What was written; empty for a batch that the log already has."""
    markers: Sequence[WrittenMarker] = ()
    """The transaction markers among it."""
    append_time_ms: int = NO_TIMESTAMP
    """The broker's own time, if the records got that; for a duplicate the batch's largest timestamp."""


@dataclass(slots=True, kw_only=True, eq=False)
class Log:
    """One log, open; `segments` is never empty and its last takes the appends."""

    storage: Storage
    topic: str
    partition: int
    settings: LogSettings
    segments: list[Segment]
    epochs: LeaderEpochCache
    log_start_offset: int
    recovery_point: int
    """The first offset that is not known to survive a power loss."""
    epoch_assigned: EpochListener
    checkpoints_changed: Callable[[], None]
    """Called before a truncation below the recovery point (the checkpointed one would hide unsynced data later), and
    when `cleaned_to` is set first or lowered."""
    put_aside: PutAside
    rules: ProtocolRules
    producer_history: ProducerHistory
    cleaned_to: int | None = None
    """Start of the next cleaning; None while no batch was ever removed from between others, here or at a leader."""
    folder_name: str = ""
    """Of a log that is not that of its partition yet; empty for the partition's own."""
    cuts: int = 0
    """How often the log has lost its end or its start, or was closed: a cleaner at work on it must give up then."""

    @property
    def folder(self) -> str:
        """The folder of the log's files, below the data directory."""
        return self.folder_name or f"{self.topic}-{self.partition}"

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.segments[-1].next_offset

    @property
    def size_bytes(self) -> int:
        """Bytes in all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def producers(self) -> ProducerStates:
        """The log's producers with an id."""
        return self.producer_history.states

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the first offset of a transaction that is open, or whose end is not committed; None without any."""
        offset = self.producer_history.states.first_unstable_offset(high_watermark)
        return None if offset is None else max(offset, self.log_start_offset)

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that have an offset from `start` on, before `end`."""
        transactions: list[AbortedTransaction] = []
        for segment in self._segments_from(start):
            of_segment, whole = segment.aborted.overlapping(start, end)
            transactions += of_segment
            if whole:
                break
        return transactions

    def append_as_leader(
        self,
        records: bytes,
        leader_epoch: int,
        *,
        now_ms: int = 0,
        internal: bool = False,
        verification: Verification | None = None,
    ) -> AppendInfo:
        """Write the one batch that a producer sent, with the next offset and this leader epoch stamped on it.

        A batch that an idempotent producer sends again is not written again: its first place is returned. `now_ms` is
        wall time. `internal`: a coordinator of this cluster writes, which may write markers. `verification` is the
        pending question to the transaction coordinator before the first batch of a transaction.

        Raises:
            InvalidRecords: the batch is refused, with Kafka's error code.
            OSError: the disk failed; the log is unchanged.
        """
        settings = self.settings
        sent = validate_for_leader(
            records, max_batch_bytes=settings.max_batch_bytes, keys_needed=settings.compacts, internal=internal
        )
        if not settings.append_time and min(settings.oldest_ms, settings.youngest_ms) < NO_LIMIT:
            batch_sent = memoryview(records)[: sent.size]
            check_timestamps(batch_sent, now_ms, oldest_ms=settings.oldest_ms, youngest_ms=settings.youngest_ms)
        batch = self._compressed(memoryview(records)[: sent.size], sent)
        check_size(len(batch), settings.max_batch_bytes)
        if len(batch) > settings.segment_bytes:
            raise InvalidRecords(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a segment has at most {settings.segment_bytes} bytes, the batch {len(batch)}",
            )
        if sent.producer_id >= 0:
            marker = read_marker(memoryview(records)[: sent.size], sent) if sent.is_control else None
            duplicate = self.producer_history.admit(
                sent,
                marker,
                verification,
                self.segments,
                internal=internal,
                verified_only=settings.verify_transactions,
            )
            if duplicate is not None:
                return _as_before(duplicate)
        if settings.append_time:
            stamp_append_time(batch, now_ms)
        assign(batch, self.log_end_offset, leader_epoch)
        header = parse_header(batch)
        self.assign_epoch(leader_epoch, header.base_offset)
        return AppendInfo(
            base_offset=header.base_offset,
            last_offset=header.last_offset,
            markers=self._write(batch, [header]),
            batches=[header],
            append_time_ms=now_ms if settings.append_time else NO_TIMESTAMP,
        )

    def append_as_follower(self, records: bytes) -> AppendInfo:
        """Write the leader's batches, byte for byte, as far as they are complete.

        Raises:
            InvalidRecords: a batch is corrupt; nothing was written.
            OffsetsOutOfOrder: a batch starts before the log end; nothing was written.
            OSError: the disk failed; the log is unchanged.
        """
        headers: list[BatchHeader] = []
        markers: Sequence[WrittenMarker] = ()
        first = expected = self.log_end_offset
        gaps = False
        try:
            for header, batch in iter_batches(records):
                validate_for_follower(batch, header)
                gaps |= header.base_offset > expected
                if header.base_offset < expected:
                    received = [each for each, _ in iter_batches(records)]
                    raise OffsetsOutOfOrder(
                        f"{self.folder}: the leader sent offset {header.base_offset}, expected {expected} or later",
                        received[0].base_offset,
                        received[-1].last_offset,
                    )
                headers.append(header)
                expected = header.last_offset + 1
        except CorruptBatch as error:
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"{self.folder}: from the leader: {error}") from error
        if headers:
            if gaps:
                self.expect_gaps()
            for header in headers:
                if header.leader_epoch >= 0:
                    self.assign_epoch(header.leader_epoch, header.base_offset)
            markers = self._write(records, headers)
            first = headers[0].base_offset
        return AppendInfo(base_offset=first, last_offset=self.log_end_offset - 1, batches=headers, markers=markers)

    def expect_gaps(self) -> None:
        """Record on disk that offsets of this log may be missing, before the first one is; raises OSError."""
        if self.cleaned_to is None:
            self.cleaned_to = self.log_start_offset
            self.checkpoints_changed()

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """Record that `leader_epoch` starts at `start_offset`; a new leader does so before its first append.

        Raises:
            OSError: the disk failed; the epochs are unchanged.
        """
        before = self.epochs.entries
        if self.epochs.assign(leader_epoch, start_offset):
            try:
                if self.rules.epochs_are_checkpointed:
                    self._save_epochs()
            except OSError:
                self.epochs = LeaderEpochCache(before)
                raise
            self.epoch_assigned(self.topic, self.partition, leader_epoch, start_offset)

    def replace_epochs(self, epochs: LeaderEpochCache) -> None:
        """Take over the leader epochs of the log of which this is a copy; raises OSError."""
        self.epochs = epochs
        self._save_epochs()

    async def read_off_loop(self, offset: int, *, max_bytes: int, up_to: int, at_least_one: bool) -> bytes:
        """Return the same as `read`, without blocking the loop.

        Raises:
            LogClosed: its files may have other names now, or be gone, which is no failure of the disk.
        """
        await self.storage.ready()
        if self.segments[-1].closed:
            raise LogClosed(f"{self.folder} was closed")
        return self.read(offset, max_bytes=max_bytes, up_to=up_to, at_least_one=at_least_one)

    def read(self, offset: int, *, max_bytes: int, up_to: int, at_least_one: bool) -> bytes:
        """Return whole batches; the first may start before `offset`, none ends after `up_to`.

        They have at most `max_bytes` together, except the first one with `at_least_one`.

        Raises:
            OffsetOutOfRange: there is no such offset, and it is not the next one either.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(
                f"{self.folder}: offset {offset} is not within {self.log_start_offset} to {self.log_end_offset}"
            )
        if offset >= up_to:
            return b""
        if offset >= self.segments[-1].base_offset:  # nearly always: followers and consumers are close behind
            return self.segments[-1].read(offset, max_bytes=max_bytes, up_to=up_to, at_least_one=at_least_one)[0]
        parts: list[bytes] = []
        for segment in self._segments_from(offset):
            part, exhausted = segment.read(
                offset, max_bytes=max_bytes, up_to=up_to, at_least_one=at_least_one and not parts
            )
            if part:
                parts.append(part)
                max_bytes -= len(part)
            if not exhausted or max_bytes <= 0:
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int] | None:
        """Return offset and timestamp of the first record with `timestamp_ms` or later.

        For an opaque batch, return its first offset, with its largest timestamp.
        """
        start = self.log_start_offset if self.rules.lookups_skip_deleted_records else 0
        for segment in self._segments_from(self.log_start_offset):
            if segment.max_timestamp >= timestamp_ms:
                for batch in segment.batches_reaching(timestamp_ms):
                    if not self.rules.lookups_find_records:
                        header = parse_header(batch)
                        return max(header.base_offset, start), header.max_timestamp
                    record = record_reaching(batch, timestamp_ms, start)
                    if record is not None:
                        return record
        return None

    def youngest_record(self) -> tuple[int, int] | None:
        """Return offset and timestamp of the first record that has the largest timestamp."""
        youngest_ms = max(segment.max_timestamp for segment in self.segments)
        return self.offset_for_timestamp(youngest_ms) if youngest_ms >= 0 else None

    def truncate_to(self, offset: int) -> None:
        """Drop every batch with `offset` or a later one; the log end may become lower, at the start of a batch.

        Epochs that start at or after the new end are dropped even if no record is (KAFKA-10706). It is synced at once:
        after a power loss dropped records would be under later epochs.
        """
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        if offset < self.log_end_offset:
            self._lower_recovery_point(offset)
            producers_reach_it = self.producer_history.truncating(offset)
            self._drop_from(offset)
            self.segments[-1].sync()
            if producers_reach_it:
                self.producer_history.load(self.segments, self.log_end_offset)
            offset = self.log_end_offset
            self.recovery_point = min(self.recovery_point, offset)
            self.log_start_offset = min(self.log_start_offset, offset)
            self._lower_cleaned_to()
        if self.epochs.truncate_from_end(offset):
            self._save_epochs()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything, for good; the next record gets `offset`."""
        self.cuts += 1
        self._lower_recovery_point(offset)
        self.producer_history.starting_over()
        for segment in reversed(self.segments):
            segment.delete()
        self.segments = [self._new_segment(offset)]
        self.segments[-1].sync()
        self.log_start_offset = offset
        self.recovery_point = offset
        self._lower_cleaned_to()
        if self.epochs.clear():
            self._save_epochs()

    def delete_oldest(self, count: int) -> None:
        """Delete that many segments from the front; when none is left, a new one begins at the log's end.

        Their files stay for a while under other names (`file.delete.delay.ms`).

        Raises:
            OSError: the disk refused.
        """
        self.cuts += 1
        if count == len(self.segments):
            self._roll(self.log_end_offset)
        doomed = self.segments[:count]
        if self.rules.log_start_moves_with_segments:
            self.advance_log_start(self.segments[count].base_offset)
        del self.segments[:count]
        self.producer_history.segments_deleted([segment.base_offset for segment in doomed])
        for segment in doomed:
            for path in segment.put_aside():
                self.put_aside(path, self.settings.file_delete_delay_ms)

    def advance_log_start(self, offset: int) -> None:
        """Move the log's start to `offset`, if that is later; the records before it are no longer served.

        Raises:
            OffsetOutOfRange: the log ends before it.
        """
        if offset > self.log_end_offset:
            raise OffsetOutOfRange(f"{self.folder}: cannot start at {offset}, it ends at {self.log_end_offset}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            if self.rules.epochs_end_with_records and self.epochs.truncate_from_start(offset):
                self._save_epochs()

    def flush(self) -> None:
        """Return when all records survive a power loss."""
        self._sync(self.segments)
        self.recovery_point = self.log_end_offset

    async def flush_rolled(self) -> None:
        """Return when all records except those of the last segment survive a power loss; their indexes leave memory.

        The loop is not blocked. If the last segment is cut off meanwhile, newer records may be unsynced.
        """
        *rolled, last = self.segments
        for segment in rolled:
            if segment.next_offset > self.recovery_point and not segment.closed:
                await segment.sync_off_loop()
        if last.closed:
            return
        self.recovery_point = max(self.recovery_point, last.base_offset)
        for segment in rolled:
            if not segment.closed:
                await segment.seal_off_loop()

    def seal(self) -> None:
        """Write the indexes and the producers to disk, after `flush`.

        A last segment that is faster to read than its index is to sync gets none.
        """
        self.producer_history.closing(self.log_end_offset)
        for segment in self.segments:
            if segment is not self.segments[-1] or segment.size > _READ_AT_START_BYTES:
                segment.seal()

    def close(self) -> None:
        """Close the files; nothing is synced."""
        self.cuts += 1
        for segment in self.segments:
            segment.close()

    def _segments_from(self, offset: int) -> Iterator[Segment]:
        following = bisect_right(self.segments, offset, key=lambda segment: segment.base_offset)
        for index in range(max(following - 1, 0), len(self.segments)):
            yield self.segments[index]

    def _compressed(self, batch: memoryview, sent: BatchHeader) -> bytearray:
        """Return a valid batch in the topic's compression; its size is checked again then, as in Kafka.

        A marker is never compressed.
        """
        codec = COMPRESSION_TYPES.get(self.settings.compression, sent.codec)
        if codec == sent.codec or sent.is_control:
            return bytearray(batch)
        new = recompressed(batch, sent, codec)
        check_size(len(new), self.settings.max_batch_bytes)
        return new

    def _write(self, data: bytes | bytearray, headers: Sequence[BatchHeader]) -> list[WrittenMarker]:
        """Append batches, rolling to new segments between them; all of them or, raising OSError, none."""
        before = self.log_end_offset
        view = memoryview(data)
        markers: list[WrittenMarker] = []
        try:
            start = end = run = 0
            for index, header in enumerate(headers):
                if must_roll(self.segments[-1], self.settings, headers[run:index], end - start, header):
                    if end > start:
                        markers += self._append(view[start:end], headers[run:index])
                    self._roll(header.base_offset)
                    start, run = end, index
                end += header.size
            markers += self._append(view[start:end], headers[run:])
        except OSError:
            self.producer_history.truncating(before)
            self._drop_from(before)
            self.producer_history.load(self.segments, before)
            if self.epochs.truncate_from_end(before + 1):
                self._save_epochs()
            raise
        if self.log_end_offset - self.recovery_point >= self.settings.flush_messages:
            self.flush()
        return markers

    def _append(self, data: memoryview, headers: Sequence[BatchHeader]) -> list[WrittenMarker]:
        self.segments[-1].append(data, headers)
        return self.producer_history.written(data, headers, self.segments[-1])

    def _roll(self, base_offset: int) -> None:
        self.producer_history.rolled(base_offset)
        self.segments.append(self._new_segment(base_offset))

    def _new_segment(self, base_offset: int) -> Segment:
        return Segment(self.storage, self.folder, base_offset, self.settings.index_interval_bytes)

    def _drop_from(self, offset: int) -> None:
        self.cuts += 1
        while len(self.segments) > 1 and self.segments[-1].base_offset >= offset:
            self.segments.pop().delete()
        self.segments[-1].drop_from(offset)

    def _lower_recovery_point(self, offset: int) -> None:
        if offset < self.recovery_point:
            self.recovery_point = offset
            self.checkpoints_changed()

    def _lower_cleaned_to(self) -> None:
        """Set the cleaner's start to the last segment at the latest (`LogCleanerManager.maybeTruncateCheckpoint`)."""
        if self.cleaned_to is not None and self.cleaned_to > self.segments[-1].base_offset:
            self.cleaned_to = self.segments[-1].base_offset
            self.checkpoints_changed()

    def _sync(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            if segment.next_offset > self.recovery_point:
                segment.sync()

    def _save_epochs(self) -> None:
        write_epochs(self.storage, f"{self.folder}/{LEADER_EPOCHS}", self.epochs.entries)


def _as_before(duplicate: RememberedBatch) -> AppendInfo:
    return AppendInfo(
        base_offset=duplicate.base_offset,
        last_offset=duplicate.last_offset,
        batches=[],
        append_time_ms=duplicate.timestamp_ms,
    )

"""Cleans one log: the last record of each key stays, in as few segments as possible (Kafka's `Cleaner`).

It works on the loop, in small steps; between two steps appends and reads continue, and a log can be truncated, closed
or reconfigured. So after each step, and before segments are replaced, it checks for that.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from harness.broker.cleaner.choosing import Cleanable, between, groups
from harness.broker.cleaner.filtering import Filter
from harness.broker.cleaner.offset_map import OffsetMap
from harness.broker.cleaner.pace import STEP_BYTES, Pace
from harness.broker.cleaner.raw_records import raw_records
from harness.broker.cleaner.transactions import CleanedTransactions
from harness.broker.log.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    crc_matches,
    iter_batches,
    parse_header,
    records_section,
)
from harness.broker.log.log import Log
from harness.broker.log.markers import read_marker
from harness.broker.log.segment import Segment
from harness.broker.log.swap import CLEANED, replace_segments

_WRITE_BYTES = 8 * STEP_BYTES
"""Bytes gathered before a write."""


class Abandoned(Exception):
    """The log was truncated, shortened or closed meanwhile, or is not compacted any more; nothing of it is lost."""


@dataclass(slots=True, kw_only=True)
class Cleaned:
    """The result of a cleaning."""

    end_offset: int = 0
    """Start of the next cleaning."""
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    without_key: int = 0
    buffer_utilization: float = 0.0
    """How full the map of keys was, from 0 to 1."""


@dataclass(slots=True, kw_only=True)
class Cleaning:
    """One cleaning of one log."""

    chosen: Cleanable
    capacity: int
    """Limit of keys; the rest waits for the next cleaning."""
    read_bytes: int
    now_ms: int
    pace: Pace
    replacing: Callable[[Log, int, int], None]
    """Called just before segments are replaced: from their first offset on, records go that have a later one with their
    key before the second offset, which is where the cleaning ends."""
    result: Cleaned = field(default_factory=Cleaned)
    _cuts: int = field(init=False)

    def __post_init__(self) -> None:
        """Remember the log's state."""
        self._cuts = self.chosen.log.cuts

    async def run(self) -> Cleaned:
        """Clean, and return the result.

        Raises:
            Abandoned: it cannot continue.
            CorruptBatch, MalformedRecords: the log has unreadable content, and keeps it.
            OSError: the disk failed.
        """
        log, result = self.chosen.log, self.result
        offsets = await self._last_offsets()
        for _ in offsets.find_stretches():
            await self._step(0)
        result.end_offset = offsets.latest + 1
        result.buffer_utilization = offsets.size / self.capacity
        rules = Filter(
            offsets=offsets,
            needed=await self._needed_batches(),
            needed_markers=log.producers.without_batches(),
            transactions=CleanedTransactions(rules=log.rules),
            now_ms=self.now_ms,
            delete_retention_ms=log.settings.delete_retention_ms,
            rules=log.rules,
        )
        log.expect_gaps()
        segments = between(log, 0, result.end_offset)
        for group in groups(segments, log, self.chosen.end_offset):
            await self._replace(group, rules)
        result.records_read, result.records_written = rules.records_read, rules.records_written
        result.without_key = offsets.without_key + rules.without_key
        return result

    async def _last_offsets(self) -> OffsetMap:
        """Return the last offset of each key of the dirty part, or of as much of it as the map holds."""
        first, end = self.chosen.first_dirty_offset, self.chosen.end_offset
        offsets = OffsetMap(self.capacity, first)
        transactions = CleanedTransactions()
        transactions.expect(self.chosen.log.aborted_transactions(first, end))
        segments = between(self.chosen.log, first, end)
        for number, segment in enumerate(segments, start=1):
            position = segment.position_before(first)
            while position < segment.size:
                data = await self._read(segment, position)
                for header, batch in _sound_batches(data):
                    if header.last_offset >= first and not self._note(batch, header, offsets, transactions):
                        return offsets
                position += len(data)
            offsets.latest = (segments[number].base_offset if number < len(segments) else end) - 1
        return offsets

    def _note(
        self, batch: memoryview, header: BatchHeader, offsets: OffsetMap, transactions: CleanedTransactions
    ) -> bool:
        """Put a batch's records into the map; return whether all fit."""
        first = self.chosen.first_dirty_offset
        records = []
        if header.is_control:
            transactions.ends_nothing(header, read_marker(batch, header))
        elif not transactions.is_aborted(header):
            records = raw_records(records_section(batch, header), header.records_count)
        for record in records:
            offset = header.base_offset + record.offset_delta
            if offset >= first and not offsets.put(record.key, offset):
                return False
        offsets.latest = header.last_offset
        return True

    async def _needed_batches(self) -> set[int]:
        """Return the base offsets of the last batches of each producer, of as many as a log remembers (KIP-98).

        Kafka keeps only the last one; a restarted log here finds the others among its batches.
        """
        log = self.chosen.log
        for _ in log.producer_history.recall(list(log.segments)):
            await self._step(0)
        return log.producers.remembered()

    async def _replace(self, group: Sequence[Segment], rules: Filter) -> None:
        log = self.chosen.log
        first = group[0].base_offset
        log.storage.remove(f"{group[0].path}{CLEANED}")
        cleaned = Segment(log.storage, log.folder, first, log.settings.index_interval_bytes, CLEANED)
        cleaned.aborted.reset()
        rules.transactions.index = cleaned.aborted
        try:
            for segment in group:
                rules.transactions.expect(log.aborted_transactions(segment.base_offset, segment.next_offset))
                await self._filter(segment, cleaned, rules)
            await cleaned.sync_off_loop()
            self._check()
            self.replacing(log, first, self.result.end_offset)
            replace_segments(log, group, cleaned)
        finally:
            if cleaned.path.endswith(CLEANED):  # once swapped in, it counts
                with suppress(OSError):  # leftovers are removed at the next start
                    cleaned.delete()

    async def _filter(self, segment: Segment, cleaned: Segment, rules: Filter) -> None:
        """Write the remaining records of a segment to the new one."""
        position = size = 0
        retained: list[bytes | memoryview] = []
        while position < segment.size:
            data = await self._read(segment, position)
            position += len(data)
            for header, batch in _sound_batches(data):
                rest = rules.apply(batch, header)
                if rest is not None:
                    retained.append(rest)
                    size += len(rest)
            if size >= _WRITE_BYTES or position >= segment.size:
                self._write(cleaned, retained)
                retained, size = [], 0

    def _write(self, cleaned: Segment, retained: Sequence[bytes | memoryview]) -> None:
        if retained:
            cleaned.append(b"".join(retained), [parse_header(each) for each in retained])
            self.result.bytes_written += sum(map(len, retained))

    async def _read(self, segment: Segment, position: int) -> bytes:
        """Return whole batches, at least one, after others had the loop.

        Raises:
            CorruptBatch: there is no whole batch.
        """
        await self._step(self.read_bytes)
        data = segment.bytes_at(position, self.read_bytes)
        if len(data) >= HEADER_BYTES and parse_header(data).size > len(data):
            data = segment.bytes_at(position, parse_header(data).size)
        size = sum(header.size for header, _ in iter_batches(data))
        if not size:
            raise CorruptBatch(f"{segment.path}: no whole batch at byte {position}")
        self.result.bytes_read += size
        return data[:size]

    async def _step(self, size: int) -> None:
        await self.pace.step(size)
        self._check()

    def _check(self) -> None:
        log = self.chosen.log
        if log.cuts != self._cuts or not log.settings.compacts:
            raise Abandoned(log.folder)


def _sound_batches(data: bytes) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield header and bytes of every batch.

    Raises:
        CorruptBatch: one does not fit its CRC.
    """
    for header, batch in iter_batches(data):
        if not crc_matches(batch, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} does not fit its CRC")
        yield header, batch

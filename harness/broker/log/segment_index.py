"""The index of one segment wherever it is: in memory while the segment grows, in two files once it is sealed.

A sealed index is searched on disk and needs no memory. It can be missing, or wrong on a disk that returns wrong data,
so an entry is used only if the batch at its position matches; otherwise the segment is read through once, and its index
is in memory until it is sealed again. The index of a segment that reaches past the recovery point is never used:
recovery reads such a segment through and drops its index.
"""

import logging
import struct
from collections.abc import Callable, Iterator

from harness.broker.log.offset_index import OFFSET_ENTRY, TIME_ENTRY, BatchPosition, OffsetIndex
from harness.broker.log.storage import Storage

_log = logging.getLogger(__name__)

OFFSETS, TIMES = ".index", ".timeindex"
_PAGE_ENTRIES = 128
"""Entries read at once at the end of a search."""
_END = 1 << 62

Entry = tuple[int, int]
BatchPositions = Callable[[int], Iterator[BatchPosition]]
"""Yields the batches of the segment from a position on, up to the first invalid one."""


class SegmentIndex:
    """Lookups in a segment's index, in memory or on disk."""

    __slots__ = ("_batches", "_checked", "_first_offset", "_interval_bytes", "_live", "_stem", "_storage", "_turns")

    def __init__(
        self, storage: Storage, stem: str, first_offset: int, interval_bytes: int, batches: BatchPositions
    ) -> None:
        """`stem` is the path of the segment without `.log`."""
        self._storage = storage
        self._stem = stem
        self._first_offset = first_offset
        self._interval_bytes = interval_bytes
        self._batches = batches
        self._live: OffsetIndex | None = None
        self._checked = False
        """Whether the files were checked against the segment, since the broker's start."""
        self._turns = 0
        """Counts changes that make the index on disk, or on its way there, outdated."""

    # --- while the segment grows ---

    def begin(self) -> OffsetIndex:
        """Start an empty index, with nothing on disk; return it."""
        self.remove()
        self._live = OffsetIndex(self._interval_bytes)
        return self._live

    def live(self) -> OffsetIndex:
        """Return the index in memory; loaded from disk as far as it is valid, and from the segment otherwise."""
        if self._live is None:
            self._live = self._loaded()
        return self._live

    def rewind(self, position: int) -> int:
        """Drop entries at `position` and later, on disk too; return from where batches must be added again."""
        live = self.live()
        self.remove()
        return live.rewind(position)

    def seal(self) -> None:
        """Move the index to disk; raises OSError, and then it stays in memory."""
        if self._live is not None and len(self._live):
            offsets, times = self._live.encoded(self._first_offset)
            self._storage.replace(self._stem + TIMES, times)
            self._storage.replace(self._stem + OFFSETS, offsets)
            self._live = None
            self._checked = True

    async def seal_off_loop(self) -> None:
        """Like `seal`, without blocking the loop; an index that changes meanwhile stays in memory."""
        live, turn = self._live, self._turns
        if live is None or not len(live):
            return
        content = len(live), live.newest
        offsets, times = live.encoded(self._first_offset)
        for ending, data in ((TIMES, times), (OFFSETS, offsets)):
            in_place = await self._storage.replace_off_loop(self._stem + ending, data)
            if not in_place or turn != self._turns:
                return
        if self._live is live and content == (len(live), live.newest):
            self._live = None
            self._checked = True

    def remove(self) -> None:
        """Remove the files."""
        self._checked = False
        self._turns += 1
        for path in self.files():
            self._storage.remove(path)

    def files(self) -> list[str]:
        """Return the paths of the files."""
        return [path for path in (self._stem + OFFSETS, self._stem + TIMES) if self._storage.exists(path)]

    @property
    def is_on_disk(self) -> bool:
        """Whether the file with offsets is there."""
        return self._storage.exists(self._stem + OFFSETS)

    def close(self) -> None:
        """Stop writing."""
        self._turns += 1

    def move(self, stem: str) -> None:
        """Set the segment's new name; there are no files yet."""
        self._stem = stem

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of the index by offset and of the one by time, on disk or once they are."""
        if self._live is not None:
            return len(self._live) * OFFSET_ENTRY.size, len(self._live) * TIME_ENTRY.size
        return self._file_size(OFFSETS), self._file_size(TIMES)

    def _file_size(self, ending: str) -> int:
        if not self._storage.exists(self._stem + ending):
            return 0
        file = self._storage.open_append(self._stem + ending)
        try:
            return file.size
        finally:
            file.close()

    # --- questions ---

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of all batches; -1 when there are none."""
        if self._is_sealed():
            newest = self._last_time(lambda _: True)
            return -1 if newest is None else newest[0]
        return self.live().newest[0]

    def before_offset(self, offset: int) -> int:
        """Return the position of a batch at or before the one that holds `offset`."""
        if self._live is not None:
            return self._live.before_offset(offset)
        sealed = self._sealed_position(lambda entry: entry[0] <= offset)
        return self.live().before_offset(offset) if sealed is None else sealed

    def before_limits(self, position: int, offset: int) -> int:
        """Return the position of the last known batch that neither starts after `position` nor ends after `offset`."""
        if self._live is not None:
            return self._live.before_limits(position, offset)
        sealed = self._sealed_position(lambda entry: entry[0] <= offset and entry[1] <= position)
        return self.live().before_limits(position, offset) if sealed is None else sealed

    def before_timestamp(self, timestamp_ms: int) -> int:
        """Return the position of a batch before which everything is older than `timestamp_ms`."""
        if self._is_sealed():
            older = self._last_time(lambda entry: entry[0] < timestamp_ms)
            if older is None:
                return 0
            batch = self._batch_ending(older[1])
            if batch is not None and batch.max_timestamp == older[0]:
                return batch.position
            self._distrust("a batch has another time")
        return self.live().before_timestamp(timestamp_ms)

    # --- on disk ---

    def _is_sealed(self) -> bool:
        """Whether there are files to use; otherwise the index is in memory afterwards."""
        if self._live is not None:
            return False
        if not self._checked:
            self._checked = self._fits()
        if not self._checked:
            self._live = self._loaded()
        return self._checked

    def _sealed_position(self, holds: Callable[[Entry], bool]) -> int | None:
        """Return the start of the batch of the last entry that `holds`; None without such an entry, or batch."""
        if not self._is_sealed():
            return None
        entry = self._last_offset(holds)
        if entry is None:
            return 0
        batch = next(self._batches(entry[1]), None)
        if batch is not None and batch.last_offset == entry[0]:
            return entry[1]
        self._distrust("a batch is not where it should be")
        return None

    def _fits(self) -> bool:
        """Whether both files exist, begin and end as the segment does, and lack nothing at the end."""
        if not all(self._storage.exists(self._stem + ending) for ending in (OFFSETS, TIMES)):
            return False
        last, newest = self._last_offset(lambda _: True), self._last_time(lambda _: True)
        tail = [] if last is None else list(self._batches(last[1]))
        if last is None or not tail or tail[0].last_offset != last[0]:
            return False
        if tail[-1].position - last[1] > self._interval_bytes:
            return False
        if newest is None:
            return max(batch.max_timestamp for batch in tail) < 0
        batch = self._batch_ending(newest[1])
        return (
            batch is not None
            and batch.max_timestamp == newest[0]
            and max(each.max_timestamp for each in tail) <= newest[0]
        )

    def _loaded(self) -> OffsetIndex:
        """Return the whole index: from the files except the last entry's batches, which are read again."""
        live = None
        if self._checked or self._fits():
            try:
                live = OffsetIndex.decoded(
                    self._storage.read(self._stem + OFFSETS),
                    self._storage.read(self._stem + TIMES),
                    self._first_offset,
                    self._interval_bytes,
                )
            except ValueError as error:
                _log.warning("index.wrong segment=%s reason=%s", self._stem, error)
        live = live or OffsetIndex(self._interval_bytes)
        for batch in self._batches(live.rewind(_END)):
            live.add(batch.last_offset, batch.position, batch.max_timestamp)
        return live

    def _distrust(self, reason: str) -> None:
        _log.warning("index.wrong segment=%s reason=%s", self._stem, reason)
        self.remove()
        self._live = self._loaded()

    def _batch_ending(self, last_offset: int) -> BatchPosition | None:
        """Return the batch that ends with this offset, if there is one."""
        entry = self._last_offset(lambda entry: entry[0] <= last_offset)
        for batch in self._batches(0 if entry is None else entry[1]):
            if batch.last_offset >= last_offset:
                return batch if batch.last_offset == last_offset else None
        return None

    def _last_offset(self, holds: Callable[[Entry], bool]) -> Entry | None:
        """Return the last offset and the position of the last entry for which `holds`; it holds for none after it."""
        first = self._first_offset
        last = self._last(OFFSETS, OFFSET_ENTRY, lambda entry: holds((entry[0] + first, entry[1])))
        return None if last is None else (last[0] + first, last[1])

    def _last_time(self, holds: Callable[[Entry], bool]) -> Entry | None:
        """Return timestamp and last offset of the last entry for which `holds`; it holds for none after it."""
        first = self._first_offset
        last = self._last(TIMES, TIME_ENTRY, lambda entry: holds((entry[0], entry[1] + first)))
        return None if last is None else (last[0], last[1] + first)

    def _last(self, ending: str, form: struct.Struct, holds: Callable[[Entry], bool]) -> Entry | None:
        file = self._storage.open_append(self._stem + ending)
        try:
            low, high = 0, file.size // form.size
            while high - low > _PAGE_ENTRIES:
                middle = (low + high) // 2
                if holds(form.unpack(file.read(middle * form.size, form.size))):
                    low = middle
                else:
                    high = middle
            page = file.read(low * form.size, (high - low) * form.size)
        finally:
            file.close()
        last = None
        for entry in form.iter_unpack(page):
            if not holds(entry):
                break
            last = entry
        return last

"""A sparse index of one segment: about one entry every `index.interval.bytes`, by offset, position and time.

In memory while the segment grows. On disk it has the form of Kafka's `.index` and `.timeindex`: offsets relative to the
segment's first, of a batch its last one, big endian.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

OFFSET_ENTRY = struct.Struct(">ii")
"""Last offset of a batch, and the position of the batch."""
TIME_ENTRY = struct.Struct(">qi")
"""The largest timestamp up to some batch, and the last offset of the batch with it."""


class BatchPosition(NamedTuple):
    """The place of one batch in the file, from the first bytes of its header."""

    position: int
    end: int
    base_offset: int
    last_offset: int
    max_timestamp: int


class OffsetIndex:
    """Positions of some batches of a segment; the first batch always has an entry."""

    __slots__ = ("_interval_bytes", "_last_offsets", "_positions", "_timestamps", "_timestamps_at", "newest")

    def __init__(self, interval_bytes: int) -> None:
        self._interval_bytes = interval_bytes
        self._last_offsets = array("q")
        self._positions = array("q")
        self._timestamps = array("q")
        """The largest timestamp before the entry's batch: never falling, so it can be searched."""
        self._timestamps_at = array("q")
        """The last offset of the batch that has it."""
        self.newest = (-1, -1)
        """The largest timestamp of all batches, and the last offset of the first batch with it."""

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._positions)

    def add(self, last_offset: int, position: int, max_timestamp: int) -> None:
        """Add the batch written at `position`, after all others."""
        if not self._positions or position - self._positions[-1] > self._interval_bytes:
            self._last_offsets.append(last_offset)
            self._positions.append(position)
            self._timestamps.append(self.newest[0])
            self._timestamps_at.append(self.newest[1])
        if max_timestamp > self.newest[0]:
            self.newest = (max_timestamp, last_offset)

    def before_offset(self, offset: int) -> int:
        """Return the position of a batch at or before the one with `offset`."""
        return self._position(bisect_right(self._last_offsets, offset))

    def before_timestamp(self, timestamp_ms: int) -> int:
        """Return the position of a batch before which everything is older than `timestamp_ms`."""
        return self._position(bisect_left(self._timestamps, timestamp_ms))

    def before_limits(self, position: int, offset: int) -> int:
        """Return the position of the last known batch that neither starts after `position` nor ends after `offset`."""
        return self._position(min(bisect_right(self._positions, position), bisect_right(self._last_offsets, offset)))

    def rewind(self, position: int) -> int:
        """Drop all entries from some batch at or before `position` on; return where that batch starts.

        What lies between there and the new end must be added again.
        """
        remaining = max(bisect_left(self._positions, position) - 1, 0)
        start = self._positions[remaining] if remaining < len(self._positions) else 0
        if remaining < len(self._positions):
            self.newest = (self._timestamps[remaining], self._timestamps_at[remaining])
        for column in (self._last_offsets, self._positions, self._timestamps, self._timestamps_at):
            del column[remaining:]
        return start

    def encoded(self, first_offset: int) -> tuple[bytes, bytes]:
        """Return the indexes by offset and by time, in their disk format, of a segment that starts there."""
        offsets = b"".join(
            OFFSET_ENTRY.pack(last_offset - first_offset, position)
            for last_offset, position in zip(self._last_offsets, self._positions, strict=True)
        )
        maxima = [(-1, -1), *zip(self._timestamps, self._timestamps_at, strict=True), self.newest]
        times = b"".join(
            TIME_ENTRY.pack(timestamp, offset - first_offset)
            for (before, _), (timestamp, offset) in pairwise(maxima)
            if timestamp > before
        )
        return offsets, times

    @classmethod
    def decoded(cls, offsets: bytes, times: bytes, first_offset: int, interval_bytes: int) -> "OffsetIndex":
        """Return what was `encoded`, without bytes after its last entry.

        Raises:
            ValueError: these are no indexes.
        """
        index = cls(interval_bytes)
        maxima = list(_increasing(TIME_ENTRY, times))
        known = 0
        for last_offset, position in _increasing(OFFSET_ENTRY, offsets):
            while known < len(maxima) and maxima[known][1] < last_offset:
                index.newest = (maxima[known][0], maxima[known][1] + first_offset)
                known += 1
            index._last_offsets.append(last_offset + first_offset)
            index._positions.append(position)
            index._timestamps.append(index.newest[0])
            index._timestamps_at.append(index.newest[1])
        return index

    def _position(self, following: int) -> int:
        return self._positions[following - 1] if following else 0


def _increasing(form: struct.Struct, data: bytes) -> Iterator[tuple[int, int]]:
    before = (-1, -1)
    try:
        entries = list(form.iter_unpack(data))
    except struct.error as error:
        raise ValueError(f"not a whole number of entries: {error}") from error
    for entry in entries:
        if not (entry[0] > before[0] and entry[1] > before[1]):
            raise ValueError(f"{entry} does not come after {before}")
        before = (entry[0], entry[1])
        yield before

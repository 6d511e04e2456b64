"""A sparse index of one segment, in memory: about one entry every `index.interval.bytes`.

It is rebuilt from the segment when the log is loaded, never written: `.index` and `.timeindex` files would be two more
things that can be wrong after a power loss, and Kafka's own tools and brokers rebuild them when they are missing.
"""

from array import array
from bisect import bisect_left, bisect_right


class OffsetIndex:
    """Where some batches of a segment start, by offset, position and time; the first batch always has an entry."""

    __slots__ = ("_interval_bytes", "_offsets", "_positions", "_timestamps", "max_timestamp")

    def __init__(self, interval_bytes: int) -> None:
        self._interval_bytes = interval_bytes
        self._offsets = array("q")
        self._positions = array("q")
        self._timestamps = array("q")
        """The largest timestamp before the entry's batch: never falling, so it can be searched."""
        self.max_timestamp = -1
        """The largest timestamp of all batches."""

    def add(self, base_offset: int, position: int, max_timestamp: int) -> None:
        """Note the batch that was written at `position`, after all others."""
        if not self._positions or position - self._positions[-1] > self._interval_bytes:
            self._offsets.append(base_offset)
            self._positions.append(position)
            self._timestamps.append(self.max_timestamp)
        self.max_timestamp = max(self.max_timestamp, max_timestamp)

    def before_offset(self, offset: int) -> int:
        """Return the position of a batch at or before the one that holds `offset`."""
        return self._position(bisect_right(self._offsets, offset))

    def before_timestamp(self, timestamp_ms: int) -> int:
        """Return the position of a batch before which everything is older than `timestamp_ms`."""
        return self._position(bisect_left(self._timestamps, timestamp_ms))

    def before_limits(self, position: int, offset: int) -> int:
        """Return the position of the last known batch that neither starts after `position` nor after `offset`."""
        return self._position(min(bisect_right(self._positions, position), bisect_right(self._offsets, offset)))

    def rewind(self, position: int) -> int:
        """Forget everything from some batch at or before `position` on; return where that batch starts.

        What lies between there and the new end must be added again.
        """
        kept = max(bisect_left(self._positions, position) - 1, 0)
        start = self._positions[kept] if kept < len(self._positions) else 0
        self.max_timestamp = self._timestamps[kept] if kept < len(self._timestamps) else -1
        del self._offsets[kept:], self._positions[kept:], self._timestamps[kept:]
        return start

    def _position(self, following: int) -> int:
        return self._positions[following - 1] if following else 0

"""The last offset of each key in the dirty part of a log, in bounded memory."""

from collections.abc import Iterator
from hashlib import blake2b

ENTRY_BYTES = 200
"""What an entry takes at most, measured: key, offset, and the table's share while it grows."""
_LONGEST_KEY = 31
"""Longer keys stand by a digest, which has one byte more, so that neither is taken for the other."""
_PARTS = 64
"""A table that grows is copied; one of many, a small one."""
_KEYS_A_STRETCH = 8
_MOST_STRETCHES = 64
"""More are not looked through for one batch: it is read instead."""


class OffsetMap:
    """Offsets by keys, `capacity` at most, of the records from offset `first` on."""

    __slots__ = ("_parts", "_shift", "_stretches", "capacity", "first", "latest", "size", "without_key")

    def __init__(self, capacity: int, first: int = 0) -> None:
        self.capacity = capacity
        self.first = first
        self.latest = first - 1
        """The map knows every record up to here."""
        self.size = 0
        """How many keys there are."""
        self.without_key = 0
        """How many records had none."""
        self._parts: tuple[dict[bytes, int], ...] = tuple({} for _ in range(_PARTS))
        self._shift = 0
        self._stretches: set[int] | None = None

    def put(self, key: bytes | None, offset: int) -> bool:
        """Take note of a record; False when the map is full (`Cleaner.buildOffsetMapForSegment`)."""
        if self.size >= self.capacity:
            return False
        self.latest = offset
        if key is None:
            self.without_key += 1
            return True
        short = _short(key)
        part = self._parts[hash(short) % _PARTS]
        self.size += short not in part
        part[short] = offset
        return True

    def get(self, key: bytes) -> int:
        """Return the last offset of a key; -1 for a key that is not there."""
        short = _short(key)
        return self._parts[hash(short) % _PARTS].get(short, -1)

    def find_stretches(self) -> Iterator[None]:
        """Find out in many small steps about where the last records stand; the map is whole by now.

        A stretch is so long that eight keys stand in one if they stand evenly: that keeps the set of stretches small
        beside the map.
        """
        self._shift = ((self.latest - self.first + 1) * _KEYS_A_STRETCH // max(1, self.size)).bit_length()
        stretches: set[int] = set()
        for part in self._parts:
            stretches.update(offset >> self._shift for offset in part.values())
            yield
        self._stretches = stretches

    def none_is_last(self, first: int, last: int) -> bool:
        """Return whether surely none of these offsets is a key's last one; False also where that is not known."""
        if self._stretches is None or first < self.first or last > self.latest:
            return False
        stretches = range(first >> self._shift, (last >> self._shift) + 1)
        return len(stretches) <= _MOST_STRETCHES and self._stretches.isdisjoint(stretches)


def capacity_of(buffer_bytes: int, load_factor: float) -> int:
    """Return how many keys fit into so much memory (`log.cleaner.dedupe.buffer.size`), filled up to that factor."""
    return int(buffer_bytes * load_factor) // ENTRY_BYTES


def _short(key: bytes) -> bytes:
    return key if len(key) <= _LONGEST_KEY else blake2b(key, digest_size=_LONGEST_KEY + 1).digest()

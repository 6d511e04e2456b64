"""The last offset of each key in the dirty part of a log, in bounded memory."""

from collections.abc import Iterator
from hashlib import blake2b

ENTRY_BYTES = 200
"""Most bytes of an entry, measured: key, offset, and the table's share while it grows."""
_LONGEST_KEY = 31
"""Longer keys are stored as a digest with one byte more, so that the two kinds never collide."""
_PARTS = 64
"""A growing table is copied; with many small tables a copy is small."""
_KEYS_A_STRETCH = 8
_MOST_STRETCHES = 64
"""With more, a batch is read instead of checked by stretches."""


class OffsetMap:
    """Offsets by keys, `capacity` at most, of the records from offset `first` on."""

    __slots__ = ("_parts", "_shift", "_stretches", "capacity", "first", "latest", "size", "without_key")

    def __init__(self, capacity: int, first: int = 0) -> None:
        self.capacity = capacity
        self.first = first
        self.latest = first - 1
        """The map has every record up to here."""
        self.size = 0
        """Number of keys."""
        self.without_key = 0
        """Number of records without a key."""
        self._parts: tuple[dict[bytes, int], ...] = tuple({} for _ in range(_PARTS))
        self._shift = 0
        self._stretches: set[int] | None = None

    def put(self, key: bytes | None, offset: int) -> bool:
        """Add a record; False when the map is full (`Cleaner.buildOffsetMapForSegment`)."""
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
        """Return the last offset of a key; -1 for an unknown key."""
        short = _short(key)
        return self._parts[hash(short) % _PARTS].get(short, -1)

    def find_stretches(self) -> Iterator[None]:
        """Find, in many small steps, the stretches with last records; the map is complete by now.

        A stretch is long enough for eight keys if they are spread evenly, which keeps the set of stretches small beside
        the map.
        """
        self._shift = ((self.latest - self.first + 1) * _KEYS_A_STRETCH // max(1, self.size)).bit_length()
        stretches: set[int] = set()
        for part in self._parts:
            stretches.update(offset >> self._shift for offset in part.values())
            yield
        self._stretches = stretches

    def none_is_last(self, first: int, last: int) -> bool:
        """Return whether certainly none of these offsets is a key's last one; False also if unknown."""
        if self._stretches is None or first < self.first or last > self.latest:
            return False
        stretches = range(first >> self._shift, (last >> self._shift) + 1)
        return len(stretches) <= _MOST_STRETCHES and self._stretches.isdisjoint(stretches)


def capacity_of(buffer_bytes: int, load_factor: float) -> int:
    """Return how many keys fit into this memory (`log.cleaner.dedupe.buffer.size`), at this load factor."""
    return int(buffer_bytes * load_factor) // ENTRY_BYTES


def _short(key: bytes) -> bytes:
    return key if len(key) <= _LONGEST_KEY else blake2b(key, digest_size=_LONGEST_KEY + 1).digest()

"""The last offset of each key in the dirty part of a log, in bounded memory."""

from hashlib import blake2b

ENTRY_BYTES = 200
"""What an entry takes at most, measured: key, offset, and the table's share while it grows."""
_LONGEST_KEY = 31
"""Longer keys stand by a digest, which has one byte more, so that neither is taken for the other."""
_PARTS = 64
"""A table that grows is copied; one of many, a small one."""


class OffsetMap:
    """Offsets by keys, `capacity` at most."""

    __slots__ = ("_parts", "capacity", "latest", "size")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.latest = -1
        """The map knows every record up to here, from where it began."""
        self.size = 0
        """How many keys there are."""
        self._parts: tuple[dict[bytes, int], ...] = tuple({} for _ in range(_PARTS))

    def put(self, key: bytes, offset: int) -> bool:
        """Take note of a record; False when the map is full (`Cleaner.buildOffsetMapForSegment`)."""
        if self.size >= self.capacity:
            return False
        short = _short(key)
        part = self._parts[hash(short) % _PARTS]
        self.size += short not in part
        part[short] = self.latest = offset
        return True

    def get(self, key: bytes) -> int:
        """Return the last offset of a key; -1 for a key that is not there."""
        short = _short(key)
        return self._parts[hash(short) % _PARTS].get(short, -1)


def capacity_of(buffer_bytes: int, load_factor: float) -> int:
    """Return how many keys fit into so much memory (`log.cleaner.dedupe.buffer.size`), filled up to that factor."""
    return int(buffer_bytes * load_factor) // ENTRY_BYTES


def _short(key: bytes) -> bytes:
    return key if len(key) <= _LONGEST_KEY else blake2b(key, digest_size=_LONGEST_KEY + 1).digest()

"""The aborted transactions that end in a segment, in Kafka's `.txnindex` format (`TransactionIndex`, `AbortedTxn`).

There is a file only if a transaction was aborted. Each replica writes its own when it appends the marker. Entries are
in the order of the markers; recovery rebuilds the index of a segment that it reads through.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from harness.broker.log.storage import AppendFile, Storage

TRANSACTIONS = ".txnindex"
_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """One aborted transaction of a partition."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Of the marker."""
    stable_offset: int
    """The last stable offset after the marker: transactions of later entries begin there or after it."""


class TransactionIndex:
    """The index of one segment; its entries are in memory after the first use."""

    __slots__ = ("_entries", "_file", "_path", "_storage", "_unsynced")

    def __init__(self, storage: Storage, stem: str) -> None:
        """`stem` is the path of the segment without `.log`."""
        self._storage = storage
        self._path = stem + TRANSACTIONS
        self._file: AppendFile | None = None
        self._entries: list[AbortedTransaction] | None = None
        self._unsynced = False

    def __iter__(self) -> Iterator[AbortedTransaction]:
        """Iterate over the entries, in the order of their markers."""
        return iter(self._known())

    def overlapping(self, start: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the transactions with an offset from `start` to `end`, and whether later segments can have none."""
        entries = self._known()
        overlapping: list[AbortedTransaction] = []
        for entry in entries[bisect_left(entries, start, key=lambda each: each.last_offset) :]:
            if entry.first_offset < end:
                overlapping.append(entry)
            if entry.stable_offset >= end:
                return overlapping, True
        return overlapping, False

    def append(self, entry: AbortedTransaction) -> None:
        """Add an entry; raises OSError with nothing added."""
        entries = self._known()
        self._opened().append(_ENTRY.pack(_VERSION, *entry))
        entries.append(entry)
        self._unsynced = True

    def truncate(self, offset: int) -> None:
        """Drop the entries whose marker is at `offset` or later."""
        entries = self._known()
        count = bisect_left(entries, offset, key=lambda each: each.last_offset)
        if count < len(entries):
            self._opened().truncate(count * _ENTRY.size)
            del entries[count:]
            self._unsynced = True

    def reset(self) -> None:
        """Remove the entries, valid or not."""
        self.remove()
        self._entries = []

    def is_sound(self, base_offset: int) -> bool:
        """Whether the file can be the index of a segment that begins at `base_offset` (`sanityCheck`)."""
        size = len(self._storage.read(self._path)) if self._storage.exists(self._path) else 0
        if size % _ENTRY.size:
            return False
        offsets = [base_offset - 1, *(entry.last_offset for entry in self._known())]
        return all(later > earlier for earlier, later in pairwise(offsets))

    def sync(self) -> None:
        """Return when the entries survive a power loss; raises OSError."""
        if self._unsynced:
            self._opened().sync()
            self._unsynced = False

    def files(self) -> list[str]:
        """Return the path of the file, if there is one."""
        return [self._path] if self._storage.exists(self._path) else []

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Close the file and remove it; raises OSError."""
        self.close()
        self._storage.remove(self._path)
        self._unsynced = False

    def move(self, stem: str) -> None:
        """Rename the file as the segment is renamed."""
        path = stem + TRANSACTIONS
        if self._storage.exists(self._path):
            self.close()
            self._storage.move(self._path, path)
        self._path = path

    def _known(self) -> list[AbortedTransaction]:
        if self._entries is None:
            data = self._storage.read(self._path) if self._storage.exists(self._path) else b""
            whole = len(data) // _ENTRY.size * _ENTRY.size
            self._entries = [AbortedTransaction(*fields[1:]) for fields in _ENTRY.iter_unpack(data[:whole])]
        return self._entries

    def _opened(self) -> AppendFile:
        if self._file is None:
            self._file = self._storage.open_append(self._path)
        return self._file

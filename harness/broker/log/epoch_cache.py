"""The start of each leader epoch in one log, which a follower compares with its leader's before it truncates (KIP-101).

Pure: the owner of the cache writes it to `leader-epoch-checkpoint` when an operation says that it changed something.
The rules are those of Kafka's `LeaderEpochFileCache`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEntry(NamedTuple):
    """The first offset that a leader epoch wrote, or would have written."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The end of an epoch: the largest epoch not above the requested one, and the offset after its last."""

    epoch: int
    end_offset: int


UNDEFINED_END = EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)


class LeaderEpochCache:
    """Entries strictly increasing in both epoch and start offset."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._entries: list[EpochEntry] = []
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """All entries, oldest first."""
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int:
        """The newest epoch; -1 when there is none."""
        return self._entries[-1].epoch if self._entries else UNDEFINED_EPOCH

    def __iter__(self) -> Iterator[EpochEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self._entries)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record that `epoch` starts at `start_offset`, dropping contradicting entries; return whether one was added.

        The newest epoch again is no change, unless it started earlier.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch {epoch} cannot start at offset {start_offset}")
        if self._entries:
            last = self._entries[-1]
            if epoch == last.epoch and start_offset >= last.start_offset:
                return False
        self._entries = [e for e in self._entries if e.epoch < epoch and e.start_offset < start_offset]
        self._entries.append(EpochEntry(epoch, start_offset))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Return where `epoch` ended: the newest ends at `log_end_offset`, one not seen yet is undefined."""
        if epoch == UNDEFINED_EPOCH or epoch > self.latest_epoch:
            return UNDEFINED_END
        if epoch == self.latest_epoch:
            return EpochEnd(epoch, log_end_offset)
        following = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        if following == 0:
            return EpochEnd(epoch, self._entries[0].start_offset)
        return EpochEnd(self._entries[following - 1].epoch, self._entries[following].start_offset)

    def epoch_at(self, offset: int) -> int:
        """Return the epoch that wrote `offset`; -1 when it is older than the first entry."""
        following = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[following - 1].epoch if following else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drop every epoch that starts at or after `end_offset`; return whether there was one."""
        remaining = [entry for entry in self._entries if entry.start_offset < end_offset]
        changed = len(remaining) != len(self._entries)
        self._entries = remaining
        return changed

    def truncate_from_start(self, start_offset: int) -> bool:
        """Drop the epochs that end before `start_offset`, and move the start of the one across it; return a change."""
        following = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if following == 0:
            return False
        entries = [EpochEntry(self._entries[following - 1].epoch, start_offset), *self._entries[following:]]
        changed = entries != self._entries
        self._entries = entries
        return changed

    def clear(self) -> bool:
        """Drop every entry; return whether there was one."""
        return self.truncate_from_end(0)

"""Replaces segments by cleaned ones, so that a crash at any point leaves a complete log.

The steps are Kafka's (`LocalLog.replaceSegments`, `LogLoader`). An unfinished segment ends in `.cleaned`, and is
ignored at a start. Once it is complete and synced it ends in `.swap`: from then on it counts, and the next start
finishes the rest: the old segments are removed, then the suffix. None of the steps is synced by itself; a file system
keeps the order of names.
"""

import re
from collections.abc import Sequence

from harness.broker.log.log import Log
from harness.broker.log.segment import Segment
from harness.broker.log.storage import Storage

CLEANED, SWAP = ".cleaned", ".swap"
_SWAP_NAME = re.compile(rf"(\d{{20}})\.log{re.escape(SWAP)}")
_SWAP_INDEX = re.compile(rf"(\d{{20}})\.log(?:{re.escape(CLEANED)}|{re.escape(SWAP)})\.txnindex")
_SEGMENT_FILE = re.compile(r"(\d{20})\.(?:log|index|timeindex|txnindex)")


def replace_segments(log: Log, old: Sequence[Segment], cleaned: Segment) -> None:
    """Replace neighbouring segments, which are not the last of the log, by a synced one.

    Raises:
        OSError: the disk refused; the next start finishes what was begun.
    """
    at = log.segments.index(old[0])
    cleaned.next_offset = log.segments[at + len(old)].base_offset
    cleaned.change_suffix(SWAP)
    for segment in old:
        segment.delete()
    log.producer_history.segments_deleted([segment.base_offset for segment in old[1:]])
    cleaned.change_suffix("")
    log.segments[at : at + len(old)] = [cleaned]


def finish_swap(storage: Storage, folder: str) -> int | None:
    """Remove a cleaner's unfinished segments, and finish a started swap.

    Return where the first segment begins whose index of aborted transactions may be gone; None for nowhere.

    Raises:
        OSError: the disk refused.
    """
    unindexed: list[int] = []
    for name in storage.list(folder):
        if name.endswith(CLEANED):
            storage.remove(f"{folder}/{name}")
    for name in storage.list(folder):
        match = _SWAP_NAME.fullmatch(name)
        if match is not None:
            _swap_in(storage, folder, int(match[1]))
            unindexed.append(int(match[1]))
    for name in storage.list(folder):
        match = _SWAP_INDEX.fullmatch(name)
        if match is not None:
            storage.remove(f"{folder}/{name}")
            unindexed.append(int(match[1]))
    return min(unindexed, default=None)


def _swap_in(storage: Storage, folder: str, base_offset: int) -> None:
    cleaned = Segment(storage, folder, base_offset, 0, SWAP)
    end = max((header.last_offset + 1 for header in cleaned.headers()), default=base_offset + 1)
    for name in storage.list(folder):
        match = _SEGMENT_FILE.fullmatch(name)
        if match is not None and base_offset <= int(match[1]) < end:
            storage.remove(f"{folder}/{name}")
    cleaned.change_suffix("")
    cleaned.close()

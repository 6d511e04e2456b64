"""How much of Kafka's logs is on the disk for certain? What is before the recovery points that it has written down.

It writes these once a minute, and syncs a segment when it is full: it may have synced more, and never less.
"""

import re
import struct
from collections.abc import Set
from itertools import pairwise
from pathlib import Path

from harness.broker.log.checkpoint import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    read_offsets,
)
from harness.broker.log.file_storage import FileStorage
from harness.broker.log.meta_properties import META_PROPERTIES
from harness.values import METADATA_TOPIC

_ENTRY = struct.Struct(">qi")
"""Of every format: the offset of a batch or message, and how many bytes follow."""
_CHECKPOINTS = (CLEANER_OFFSETS, HIGH_WATERMARKS, LEADER_EPOCHS, LOG_START_OFFSETS, RECOVERY_POINTS)
_SYNCED = re.compile(rf"\d{{20}}\.log|{'|'.join(_CHECKPOINTS)}")
_INDEXES = (".index", ".timeindex", ".txnindex", ".snapshot")


def beyond_recovery_points(folder: Path) -> dict[Path, int | None]:
    """Return the files that hold anything else, with how much of each is certain; None for those that begin later.

    Several data directories are folders in `folder`.
    """
    directories = [folder, *(path.parent for path in folder.glob(f"*/{META_PROPERTIES}"))]
    return {path: size for each in directories for path, size in _in_directory(each).items()}


def never_synced(folder: Path, synced: Set[Path]) -> list[Path]:
    """Return the segments and checkpoints that hold something and were never synced."""
    files = (path for path in sorted(folder.rglob("*")) if _SYNCED.fullmatch(path.name) and path.stat().st_size)
    return [path for path in files if path.resolve() not in synced and not path.parent.name.startswith(METADATA_TOPIC)]


def _in_directory(folder: Path) -> dict[Path, int | None]:
    file = folder / RECOVERY_POINTS
    nothing = not file.exists() or file.stat().st_size == 0  # Kafka makes it empty, and first writes it after a minute
    points = {} if nothing else read_offsets(FileStorage(folder), RECOVERY_POINTS)
    unsynced: dict[Path, int | None] = {}
    for log in sorted(path for path in folder.iterdir() if path.is_dir()):
        topic, _, partition = log.name.rpartition("-")
        if not partition.isdecimal() or topic == METADATA_TOPIC:
            continue  # deleted; or synced before anything in it counts
        point = points.get((topic, int(partition)), 0)
        segments = sorted(log.glob("*.log"))
        for segment, later in pairwise([*segments, None]):
            assert segment is not None
            if later is not None and int(later.stem) <= point:
                continue
            if segment is not segments[0] and int(segment.stem) > point:
                unsynced |= dict.fromkeys([segment, *_beside(segment)], None)
            elif (size := _before(segment, point)) < segment.stat().st_size:
                unsynced[segment] = size
    return unsynced


def _beside(segment: Path) -> list[Path]:
    return [path for suffix in _INDEXES if (path := segment.with_suffix(suffix)).exists()]


def _before(segment: Path, offset: int) -> int:
    """Return how many bytes of a segment are batches from before an offset."""
    data = segment.read_bytes()
    position = 0
    while position + _ENTRY.size <= len(data):
        first, length = _ENTRY.unpack_from(data, position)
        if first >= offset:
            break
        position += _ENTRY.size + length
    return min(position, len(data))

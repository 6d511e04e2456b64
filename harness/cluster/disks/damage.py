"""Damages files on the disk of a stopped broker, in a folder or a volume.

Formats and names are Kafka's: segments of batches, checkpoints, and indexes that can be rebuilt.
"""

import random
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.broker.log.batch import MAGIC, first_header
from harness.broker.log.checkpoint import HIGH_WATERMARKS, LEADER_EPOCHS, LOG_START_OFFSETS, RECOVERY_POINTS
from harness.broker.log.storage import Storage
from harness.errors import ClusterError
from harness.values import METADATA_TOPIC

_LOG = re.compile(rf"(?!{METADATA_TOPIC}-)[\w.-]+-\d+")
"""The folder of a partition. A broker of Kafka does not log that it opens the log of the quorum."""
_SEGMENT = re.compile(r"\d{20}\.log")
_INDEX = re.compile(r"\d{20}\.(?:index|timeindex|txnindex)")


class What(StrEnum):
    """Which files are hit, and how."""

    INDEXES = "indexes"
    """All indexes of a log are gone."""
    CHECKPOINT = "checkpoint"
    """A checkpoint is gone."""
    LOG = "log"
    """A log is gone, with its folder."""
    DISK = "disk"
    """Everything is gone: the disk was replaced by an empty one."""
    BIT_FLIP = "bit-flip"
    """One bit of a closed segment is flipped; recovery points are removed too, so that the segment is read again."""
    TAIL = "tail"
    """The end of a log is gone."""


class Checkpoint(StrEnum):
    """The checkpoints of Kafka."""

    RECOVERY_POINTS = RECOVERY_POINTS
    HIGH_WATERMARKS = HIGH_WATERMARKS
    LOG_STARTS = LOG_START_OFFSETS
    LEADER_EPOCHS = LEADER_EPOCHS


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One kind of damage to a disk."""

    what: What
    log: str = ""
    """As `orders-0`; empty for the largest one that can be damaged so."""
    checkpoint: Checkpoint = Checkpoint.RECOVERY_POINTS
    tail_bytes: int = 1


def do_damage(disks: Sequence[Storage], done: Damage) -> None:
    """Damage files in the data directories of a broker.

    Raises:
        ClusterError: no file in them can be damaged so.
    """
    if done.what is What.DISK:
        _remove([(disk, name) for disk in disks for name in disk.list("")], "file")
        return
    if done.what is What.CHECKPOINT and done.checkpoint is not Checkpoint.LEADER_EPOCHS:
        _remove([(disk, done.checkpoint) for disk in disks], done.checkpoint)
        return
    disk, log = _chosen(disks, done)
    match done.what:
        case What.INDEXES:
            _remove([(disk, path) for path in _files(disk, log, _INDEX)], "index")
        case What.CHECKPOINT:
            _remove([(disk, f"{log}/{done.checkpoint}")], done.checkpoint)
        case What.LOG:
            disk.remove(log)
        case What.BIT_FLIP:
            _flip(disk, log)
            disk.remove(RECOVERY_POINTS)
        case What.TAIL:
            _cut(disk, log, done.tail_bytes)


def torn(tail: bytes, rng: random.Random) -> bytes:
    """Return what a power loss may leave of unsynced bytes: a part, perhaps with a garbled end."""
    left = tail[: rng.randint(0, len(tail))]
    if left and rng.random() < 0.5:
        garbled = rng.randint(1, min(len(left), 512))
        left = left[:-garbled] + bytes(garbled)
    return left


def states(disk: Storage) -> dict[str, str]:
    """Return size and checksum of every file by its path, in words."""
    return {path: f"{len(data)} bytes, CRC {zlib.crc32(data):08x}" for path, data in _contents(disk, "")}


def logs_in(files: dict[str, str]) -> set[str]:
    """Return the names of the partitions whose logs these files belong to; deleted logs are left out."""
    parts = (path.rpartition("/") for path in files)
    logs = ((folder.rpartition("/")[2], name) for folder, _, name in parts)
    return {log for log, name in logs if _LOG.fullmatch(log) and _SEGMENT.fullmatch(name)}


def _contents(disk: Storage, folder: str) -> Iterator[tuple[str, bytes]]:
    for name in disk.list(folder):
        path = f"{folder}/{name}".lstrip("/")
        try:
            yield path, disk.read(path)
        except IsADirectoryError:
            yield from _contents(disk, path)
        except FileNotFoundError:  # a folder, if the disk is in memory, or a file that a live broker removed
            yield from _contents(disk, path)


def _chosen(disks: Sequence[Storage], done: Damage) -> tuple[Storage, str]:
    """Return the log to damage, with its data directory: the named one, else the largest."""
    least = 2 if done.what is What.BIT_FLIP else 1
    logs = {name: disk for disk in disks for name in disk.list("") if _LOG.fullmatch(name)}
    sizes = {log: _size(disk, log) for log, disk in logs.items() if len([*_files(disk, log, _SEGMENT)]) >= least}
    if done.what is What.INDEXES:
        sizes = {log: size for log, size in sizes.items() if [*_files(logs[log], log, _INDEX)]}
    if (done.log and done.log not in sizes) or not sizes:
        raise ClusterError(f"no {done.what} of {done.log or 'any log'} here: there is {', '.join(sizes) or 'none'}")
    chosen = done.log or max(sizes, key=lambda log: (sizes[log], log))
    return logs[chosen], chosen


def _files(disk: Storage, log: str, name: re.Pattern[str]) -> Iterator[str]:
    return (f"{log}/{each}" for each in disk.list(log) if name.fullmatch(each))


def _size(disk: Storage, log: str) -> int:
    return sum(len(disk.read(path)) for path in _files(disk, log, _SEGMENT))


def _remove(files: Sequence[tuple[Storage, str]], what: str) -> None:
    if not any(disk.exists(path) for disk, path in files):
        raise ClusterError(f"there is no {what} to lose")
    for disk, path in files:
        disk.remove(path)


def _flip(disk: Storage, log: str) -> None:
    """Change a bit in the middle of a batch in the middle of the closed segments, where its checksum covers it."""
    closed = [*_files(disk, log, _SEGMENT)][:-1]
    path = closed[len(closed) // 2]
    data = bytearray(disk.read(path))
    batches = [*_batches(data)]
    if not batches:
        raise ClusterError(f"{path} has no batch of format {MAGIC}")
    position, size = batches[len(batches) // 2]
    data[position + size // 2] ^= 1
    disk.replace(path, bytes(data))


def _batches(data: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """Yield position and size of each whole batch."""
    position = 0
    while (header := first_header(memoryview(data)[position:])) and position + header.size <= len(data):
        yield position, header.size
        position += header.size


def _cut(disk: Storage, log: str, size: int) -> None:
    """Cut up to this many bytes from the end of the last segment that is not empty."""
    path = next((path for path in reversed([*_files(disk, log, _SEGMENT)]) if disk.read(path)), None)
    if path is None:
        raise ClusterError(f"{log} is empty")
    file = disk.open_append(path)
    file.truncate(max(file.size - size, 0))
    file.sync()
    file.close()

"""Checkpoint files: a version, a count, and that many lines, replaced as a whole (Kafka's `CheckpointFile`)."""

from collections.abc import Iterable, Mapping

from harness.broker.log.epoch_cache import EpochEntry
from harness.broker.log.storage import Storage, StorageError

LEADER_EPOCHS = "leader-epoch-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"

_VERSION = "0"

PartitionOffsets = dict[tuple[str, int], int]


class MalformedCheckpoint(StorageError):
    """A checkpoint file is not what this broker or Kafka writes; the message names the file and the line."""


def write_epochs(storage: Storage, path: str, entries: Iterable[EpochEntry]) -> None:
    """Replace a leader-epoch checkpoint: `epoch start_offset` a line."""
    storage.replace(path, _encoded([f"{entry.epoch} {entry.start_offset}" for entry in entries]))


def read_epochs(storage: Storage, path: str) -> list[EpochEntry]:
    """Return the entries of a leader-epoch checkpoint; an absent file has none.

    Raises:
        MalformedCheckpoint: the file is not one, or its entries do not increase.
    """
    entries: list[EpochEntry] = []
    for number, line in enumerate(_read(storage, path), start=3):
        fields = _fields(path, number, line, count=2)
        entry = EpochEntry(_integer(path, number, fields[0]), _integer(path, number, fields[1]))
        if entries and not (entry.epoch > entries[-1].epoch and entry.start_offset > entries[-1].start_offset):
            raise MalformedCheckpoint(f"{path} line {number}: {line!r} does not come after the line before it")
        entries.append(entry)
    return entries


def write_offsets(storage: Storage, path: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Replace an offset checkpoint: `topic partition offset` a line, sorted."""
    storage.replace(path, _encoded_offsets(offsets))


async def write_offsets_off_loop(storage: Storage, path: str, offsets: Mapping[tuple[str, int], int]) -> bool:
    """Like `write_offsets`, without blocking the loop; return whether they were put in place, or overtaken."""
    return await storage.replace_off_loop(path, _encoded_offsets(offsets))


def read_offsets(storage: Storage, path: str) -> PartitionOffsets:
    """Return offsets by topic and partition; an absent file has none.

    Raises:
        MalformedCheckpoint: the file is not one.
    """
    offsets: PartitionOffsets = {}
    for number, line in enumerate(_read(storage, path), start=3):
        topic, partition, offset = _fields(path, number, line, count=3)
        offsets[topic, _integer(path, number, partition)] = _integer(path, number, offset)
    return offsets


def _encoded_offsets(offsets: Mapping[tuple[str, int], int]) -> bytes:
    return _encoded([f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())])


def _encoded(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in (_VERSION, str(len(lines)), *lines)).encode()


def _read(storage: Storage, path: str) -> list[str]:
    if not storage.exists(path):
        return []
    try:
        lines = storage.read(path).decode().splitlines()
    except UnicodeDecodeError as error:
        raise MalformedCheckpoint(f"{path}: not text: {error}") from error
    if not lines or lines[0] != _VERSION:
        raise MalformedCheckpoint(f"{path} line 1: expected version {_VERSION}, saw {lines[:1]}")
    count = _integer(path, 2, lines[1] if len(lines) > 1 else "")
    if count != len(lines) - 2:
        raise MalformedCheckpoint(f"{path} line 2: announces {count} lines, {len(lines) - 2} follow")
    return lines[2:]


def _fields(path: str, number: int, line: str, *, count: int) -> list[str]:
    fields = line.split(" ")
    if len(fields) != count:
        raise MalformedCheckpoint(f"{path} line {number}: expected {count} fields, saw {line!r}")
    return fields


def _integer(path: str, number: int, text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise MalformedCheckpoint(f"{path} line {number}: expected a number, saw {text!r}")
    return int(text)

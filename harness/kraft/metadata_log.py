"""What did the quorum decide in a run? The metadata logs of all controllers, read from their disks and compared.

What a majority has is committed, unless somebody who lacks it may still be elected. The log of the last leader is what
all others are, or become, a beginning of.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.errors import EvidenceError
from harness.kraft.image import MetadataImage
from harness.kraft.records import LeaderChange, MetadataEntry, entries
from harness.store.history import ZnodeChange

FOLDER = "__cluster_metadata-0"
SEGMENTS = "[0-9]" * 20 + ".log"

RectifiedMs = Callable[[int, int], int]
"""From a controller's id and what its wall clock showed to what the machine's did; called in the log's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumLog:
    """What became of znodes, by the log of the quorum."""

    changes: list[ZnodeChange] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    """Sentences on what is wrong with logs of a minority."""


def read_quorum_log(data_dirs: Sequence[Path], rectified_ms: RectifiedMs = lambda _, time_ms: time_ms) -> QuorumLog:
    """Return every change that is committed, in time as the machine's clock has it; the controllers may still run.

    Args:
        data_dirs: Those of the voters.
        rectified_ms: What the clock of a controller says; as it is, unless that was set.

    Raises:
        EvidenceError: no majority of the logs can be read to its end, or nobody can say from them what is committed.
    """
    damage: list[str] = []
    logs = [log for log in (_read(folder, damage) for folder in data_dirs) if log]
    majority = len(data_dirs) // 2 + 1
    if len(data_dirs) - len(damage) < majority:
        raise EvidenceError(f"no majority of the metadata logs can be read: {'; '.join(damage)}")
    last = max(logs, key=lambda log: (log[-1].epoch, log[-1].offset))
    _must_agree(last, logs)
    committed = _committed(last, logs, majority)
    if not committed:
        raise EvidenceError("no majority has the same first record of the metadata log")
    image = MetadataImage()
    try:
        changes = list(image.apply(list(_rectified(last[:committed], rectified_ms))))
    except KeyError as error:
        raise EvidenceError(f"the metadata log speaks of what it never made: {error}") from error
    return QuorumLog(changes=changes, damage=damage)


def _read(data_dir: Path, damage: list[str]) -> list[MetadataEntry]:
    """Return a controller's log by offset, up to where it is damaged; at most one sentence says that it is.

    Of its last segment a batch may be half written.
    """
    folder = next(data_dir.glob(f"*/{FOLDER}"), data_dir / FOLDER)  # of several data directories it is in the first
    log: list[MetadataEntry] = []
    try:
        for segment in sorted(folder.glob(SEGMENTS)):
            if int(segment.stem) != len(log):
                raise EvidenceError(f"a segment of its log begins at {int(segment.stem)}, after {len(log)} records")
            for batch in entries(segment.read_bytes()):
                for entry in batch:
                    _must_follow(log, entry)
                    log.append(entry)
        if not log:
            raise EvidenceError("its log has no record")
    except (EvidenceError, OSError) as error:
        damage.append(f"{data_dir.parent.name}: {error}")
    return log


def _must_follow(log: Sequence[MetadataEntry], entry: MetadataEntry) -> None:
    if entry.offset != len(log) or (log and entry.epoch < log[-1].epoch):
        after = f"{log[-1].offset} of epoch {log[-1].epoch}" if log else "none"
        raise EvidenceError(f"the metadata log has offset {entry.offset} of epoch {entry.epoch} after {after}")


def _committed(last: Sequence[MetadataEntry], logs: Sequence[Sequence[MetadataEntry]], majority: int) -> int:
    """Return how many entries of the last leader's log will never be replaced.

    One that a majority has may be, by a voter that lacks it and has an entry of a later epoch (Raft, 5.4.2).
    """
    shared = [(_common(last, log), log[-1].epoch) for log in logs]
    committed = sorted((length for length, _ in shared), reverse=True)[majority - 1]
    while rivals := [length for length, epoch in shared if length < committed and epoch > last[committed - 1].epoch]:
        committed = min(rivals)
    return committed


def _common(one: Sequence[MetadataEntry], other: Sequence[MetadataEntry]) -> int:
    """Return how many entries two logs begin with that have the same epochs."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (mine, yours) in enumerate(pairs) if mine.epoch != yours.epoch), min(len(one), len(other)))


def _must_agree(last: Sequence[MetadataEntry], logs: Iterable[Sequence[MetadataEntry]]) -> None:
    """Raise where a log has something else than the last leader's under the same offset and epoch."""
    for log in logs:
        for mine, yours in zip(last, log, strict=False):
            if mine.epoch == yours.epoch and _text(mine) != _text(yours):
                raise EvidenceError(f"two controllers have different records at offset {mine.offset} of the log")


def _text(entry: MetadataEntry) -> str:
    return f"{entry.time_ms} {entry.record!r}"


def _rectified(log: Iterable[MetadataEntry], rectified_ms: RectifiedMs) -> Iterator[MetadataEntry]:
    """Put what the leader of each epoch wrote on the machine's wall clock."""
    leader = None
    for entry in log:
        if isinstance(entry.record, LeaderChange):
            leader = entry.record.leader_id
        yield entry if leader is None else replace(entry, time_ms=rectified_ms(leader, entry.time_ms))

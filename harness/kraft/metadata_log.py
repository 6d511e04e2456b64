"""What did the quorum decide in a run? The metadata logs of all controllers, read from their disks and compared.

A record is committed when a majority has it, unless a controller without it may still be elected. Every other log is,
or becomes, a prefix of the log of the last leader.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.errors import EvidenceError
from harness.kraft.image import MetadataImage
from harness.kraft.records import LeaderChange, MetadataEntry, entries
from harness.kraft.snapshots import Snapshot, snapshot_of, stored_snapshots
from harness.store.history import ZnodeChange
from harness.values import METADATA_TOPIC

FOLDER = f"{METADATA_TOPIC}-0"
SEGMENTS = "[0-9]" * 20 + ".log"

RectifiedMs = Callable[[int, int], int]
"""From a controller's id and what its wall clock showed to what the machine's did; called in the log's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumLog:
    """What became of znodes, by the log of the quorum."""

    changes: list[ZnodeChange] = field(default_factory=list)
    """Those of a snapshot have the source `snapshot`."""
    damage: list[str] = field(default_factory=list)
    """Sentences on what is wrong with logs of a minority."""
    begins: int = 0
    """The first offset whose record is known; what lies before is known by a snapshot alone."""


@dataclass(slots=True)
class _Log:
    """What one controller has: entries without gaps, from the end of its snapshot on."""

    snapshot: Snapshot | None = None
    entries: list[MetadataEntry] = field(default_factory=list)

    @property
    def start(self) -> int:
        return self.snapshot.end_offset if self.snapshot else 0

    @property
    def end(self) -> int:
        return self.start + len(self.entries)

    @property
    def last_epoch(self) -> int:
        return self.epoch_at(self.end - 1)

    def epoch_at(self, offset: int) -> int:
        """Return the epoch of a record; of one that the snapshot stands for, at most this."""
        return self.entries[offset - self.start].epoch if offset >= self.start else self.snapshot_epoch

    @property
    def snapshot_epoch(self) -> int:
        return self.snapshot.epoch if self.snapshot else -1


def read_quorum_log(data_dirs: Sequence[Path], rectified_ms: RectifiedMs = lambda _, time_ms: time_ms) -> QuorumLog:
    """Return every change that is committed, in time as the machine's clock has it; the controllers may still run.

    Args:
        data_dirs: Those of the voters.
        rectified_ms: What the clock of a controller says; as it is, unless that was set.

    Raises:
        EvidenceError: no majority of the logs can be read to its end, or they do not show what is committed.
    """
    damage: list[str] = []
    logs = [log for log in (_read(folder, damage) for folder in data_dirs) if log.end]
    majority = len(data_dirs) // 2 + 1
    if len(data_dirs) - len(damage) < majority:
        raise EvidenceError(f"no majority of the metadata logs can be read: {'; '.join(damage)}")
    last = max(logs, key=lambda log: (log.last_epoch, log.end))
    _must_agree(last, logs)
    committed = _committed(last, logs, majority)
    if not committed:
        raise EvidenceError("no majority has the same first record of the metadata log")
    longest = min((log for log in logs if _common(last, log) >= committed), key=lambda log: log.start)
    image = MetadataImage()
    try:
        changes = list(image.load(longest.snapshot)) if longest.snapshot else []
        known = longest.entries[: max(committed - longest.start, 0)]
        changes += image.apply(list(_rectified(known, rectified_ms)))
    except KeyError as error:
        raise EvidenceError(f"the metadata log refers to something that it never created: {error}") from error
    return QuorumLog(changes=changes, damage=damage, begins=longest.start)


def _read(data_dir: Path, damage: list[str]) -> _Log:
    """Return a controller's log by offset, up to where it is damaged; at most one sentence says that it is.

    Of its last segment a batch may be half written. Where its beginning was trimmed, the earliest snapshot from which
    on nothing is missing stands for it.
    """
    folder = next(data_dir.glob(f"*/{FOLDER}"), data_dir / FOLDER)  # of several data directories it is in the first
    log = _Log()
    try:
        segments = sorted(folder.glob(SEGMENTS))
        if segments and int(segments[0].stem):
            log.snapshot = _first_snapshot(folder, int(segments[0].stem))
        first = int(segments[0].stem) if segments else 0
        for segment in segments:
            if log.entries and int(segment.stem) != log.end:
                raise EvidenceError(f"a segment of its log begins at {int(segment.stem)}, after {log.end} records")
            for batch in entries(segment.read_bytes()):
                for entry in batch:
                    if first <= entry.offset < log.start:
                        continue
                    _must_follow(log, entry)
                    log.entries.append(entry)
        if not log.end:
            raise EvidenceError("its log has no record")
    except (EvidenceError, OSError) as error:
        damage.append(f"{data_dir.parent.name}: {error}")
    return log


def _first_snapshot(folder: Path, first: int) -> Snapshot:
    """Return the earliest snapshot that ends at a log's first offset or later; raises EvidenceError without one."""
    problems = [f"a segment of its log begins at {first}, and no snapshot stands for what was before"]
    for end_offset, epoch, path in stored_snapshots(folder):
        if end_offset >= first:
            try:
                return snapshot_of(path.read_bytes(), end_offset, epoch)
            except EvidenceError as error:
                problems.append(str(error))
    raise EvidenceError("; ".join(problems))


def _must_follow(log: _Log, entry: MetadataEntry) -> None:
    if entry.offset != log.end or (log.end and entry.epoch < log.last_epoch):
        after = f"{log.end - 1} of epoch {log.last_epoch}" if log.end else "none"
        raise EvidenceError(f"the metadata log has offset {entry.offset} of epoch {entry.epoch} after {after}")


def _committed(last: _Log, logs: Sequence[_Log], majority: int) -> int:
    """Return before which offset of the last leader's log nothing will ever be replaced.

    A record that a majority has may be, by a voter that lacks it and has an entry of a later epoch (Raft, 5.4.2). What
    a snapshot stands for is committed.
    """
    shared = [(_common(last, log), log.last_epoch) for log in logs]
    committed = sorted((end for end, _ in shared), reverse=True)[majority - 1]
    while rivals := [end for end, epoch in shared if end < committed and epoch > last.epoch_at(committed - 1)]:
        committed = min(rivals)
    return committed


def _common(one: _Log, other: _Log) -> int:
    """Return before which offset two logs have records of the same epochs."""
    end = min(one.end, other.end)
    both = range(max(one.start, other.start), end)
    return next((at for at in both if one.epoch_at(at) != other.epoch_at(at)), end)


def _must_agree(last: _Log, logs: Iterable[_Log]) -> None:
    """Raise where a log has something else than the last leader's under the same offset and epoch."""
    for log in logs:
        for offset in range(max(last.start, log.start), min(last.end, log.end)):
            mine, yours = (each.entries[offset - each.start] for each in (last, log))
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

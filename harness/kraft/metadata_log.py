"""What did the quorum decide in a run? The metadata logs of all controllers, read from their disks and compared.

What a majority has is committed. The log of the last leader is what all others are, or become, a beginning of.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import EvidenceError
from harness.kraft.image import MetadataImage
from harness.kraft.records import Entry, entries
from harness.store.history import ZnodeChange

FOLDER = "__cluster_metadata-0"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumLog:
    """What became of znodes, by the log of the quorum."""

    changes: list[ZnodeChange] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    """Sentences on what is odd with the logs."""


def read_quorum_log(data_dirs: Sequence[Path]) -> QuorumLog:
    """Return every change that is committed; the controllers may still run.

    Args:
        data_dirs: Those of the voters.

    Raises:
        EvidenceError: no log begins at its first record, or one contradicts itself.
    """
    damage: list[str] = []
    logs = [log for log in (_read(folder, damage) for folder in data_dirs) if log]
    if not logs:
        raise EvidenceError(f"no metadata log that begins at offset 0: {'; '.join(damage)}")
    longest = max(logs, key=lambda log: (log[-1][-1].epoch, log[-1][-1].offset))
    ends = sorted((log[-1][-1].offset + 1 for log in logs), reverse=True)
    majority = len(data_dirs) // 2 + 1
    committed = ends[majority - 1] if len(ends) >= majority else 0
    damage += _contradictions(longest, logs)
    image = MetadataImage()
    decided = [batch for batch in longest if batch[-1].offset < committed]
    try:
        return QuorumLog(changes=[change for batch in decided for change in image.apply(batch)], damage=damage)
    except KeyError as error:
        raise EvidenceError(f"the metadata log speaks of what it never made: {error}") from error


def _read(data_dir: Path, damage: list[str]) -> list[list[Entry]]:
    """Return the batches of one controller's log; none, and a sentence, where it does not begin at its beginning."""
    folder = next(data_dir.glob(f"*/{FOLDER}"), data_dir / FOLDER)  # of several data directories it is in the first
    segments = sorted(folder.glob("*.log"))
    if not segments or int(segments[0].stem):
        damage.append(f"{data_dir.parent.name}: its log begins at {int(segments[0].stem) if segments else 'no offset'}")
        return []
    batches: list[list[Entry]] = []
    try:
        for segment in segments:
            batches += entries(segment.read_bytes())
    except EvidenceError as error:
        damage.append(f"{data_dir.parent.name}: {error}")
    return batches


def _contradictions(longest: Iterable[Sequence[Entry]], logs: Iterable[Sequence[Sequence[Entry]]]) -> list[str]:
    """Return where logs have something else than the longest under the same offset and epoch."""
    stated = {(entry.offset, entry.epoch): _text(entry) for batch in longest for entry in batch}
    others = ((entry, stated.get((entry.offset, entry.epoch))) for log in logs for batch in log for entry in batch)
    wrong = sorted({entry.offset for entry, text in others if text is not None and text != _text(entry)})
    return [f"two controllers have different records at offset {offset} of the metadata log" for offset in wrong[:1]]


def _text(entry: Entry) -> str:
    return f"{entry.time_ms} {entry.record!r}"

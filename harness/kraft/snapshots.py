"""What does a snapshot of the metadata log say? It stands for all records before its end, which the log may have lost.

A snapshot has the state, and not when it began. Only a broker's registration has its own offset: the broker's epoch.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import EvidenceError
from harness.kraft.records import (
    LeaderChange,
    MetadataEntry,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    SnapshotEnd,
    entries,
)
from harness.values import NO_BROKER

_FILE = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
FILES = "*.checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state before an offset, as records that make it."""

    end_offset: int
    """Of the first record of the log that it does not stand for."""
    epoch: int
    """Of the last record that it stands for."""
    entries: tuple[MetadataEntry, ...]
    """Each at the last offset that the snapshot stands for, but for brokers, which are at their epochs."""

    def led_by(self, leader: int) -> "Snapshot":
        """Return it with the controller that led in its epoch, which it does not tell itself."""
        if leader == NO_BROKER:
            return self
        time_ms = self.entries[0].time_ms if self.entries else 0
        elected = MetadataEntry(
            offset=self.end_offset - 1, epoch=self.epoch, time_ms=time_ms, record=LeaderChange(leader)
        )
        return replace(self, entries=(elected, *self.entries))


def snapshot_of(data: bytes, end_offset: int, epoch: int) -> Snapshot:
    """Return what the bytes of a snapshot say.

    Raises:
        EvidenceError: they are damaged, or end before the snapshot does.
    """
    everything = [entry for batch in entries(data) for entry in batch]
    if not everything or not isinstance(everything[-1].record, SnapshotEnd):
        raise EvidenceError(f"the snapshot of the metadata at {end_offset} is cut short")
    placed = tuple(_placed(everything, end_offset, epoch))
    return Snapshot(end_offset=end_offset, epoch=epoch, entries=placed)


def _placed(everything: Iterable[MetadataEntry], end_offset: int, epoch: int) -> Iterable[MetadataEntry]:
    for entry in everything:
        record = entry.record
        if record is None or isinstance(record, SnapshotEnd | ProducerIdsRecord):  # whose block it was is not told
            continue
        offset = record.broker_epoch if isinstance(record, RegisterBrokerRecord) else end_offset - 1
        yield replace(entry, offset=offset, epoch=epoch)


def stored_snapshots(folder: Path) -> list[tuple[int, int, Path]]:
    """Return end, epoch and file of each snapshot beside a metadata log, the earliest first."""
    found = ((_FILE.fullmatch(path.name), path) for path in folder.glob(FILES))
    return sorted((int(match[1]), int(match[2]), path) for match, path in found if match)

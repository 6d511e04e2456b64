"""Writes a simulated history as the run folder that a real run leaves, for the same judges and the same report."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from harness.evidence.replicas import dump_replicas
from harness.evidence.segments import Batches
from harness.progress import Silent
from harness.simulation.disk import MemoryStorage
from harness.simulation.schedule import SimulatedHistory
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, PhaseNotes, Quiescence, record_phase
from harness.system.chain import all_chained


def write_evidence(history: SimulatedHistory, folder: RunFolder) -> None:
    """Write what there is to judge, and how its phases went. Disks are dumped by the parser of real runs."""
    with record_phase(folder, Phase.DRIVE, Silent()) as notes:
        leave_evidence(history, folder, notes, chain=list)
    with record_phase(folder, Phase.COLLECT, Silent()) as notes:
        known: Batches = {}
        for broker_id in history.disks:
            for replica in dump_replicas(folder, broker_id, disk_of(folder, broker_id), known=known):
                if replica.damage:
                    notes.remark(replica.damage, subject=f"replica of {replica.topic}-{replica.partition}")
        notes.quiescence = Quiescence()
        shutil.rmtree(folder.cluster)


def leave_evidence(
    history: SimulatedHistory,
    folder: RunFolder,
    notes: PhaseNotes,
    chain: Callable[[Iterable[bytes]], Iterable[bytes]] = all_chained,
) -> None:
    """Write what a driven cluster leaves: operations, journal, logs, and disks, which are still to be dumped."""
    for path, lines in history.files.items():
        (folder.root / path).parent.mkdir(parents=True, exist_ok=True)
        (folder.root / path).write_bytes(b"".join(chain(lines)))
    for broker_id, disk in history.disks.items():
        _lay_out(disk, disk_of(folder, broker_id))
    notes.remarks += history.remarks


def disks_in(folder: RunFolder) -> Path:
    """Return the folder of all disks."""
    return folder.cluster / "disks"


def disk_of(folder: RunFolder, broker_id: int) -> Path:
    """Return the folder with what was on a broker's disk when the load had ended."""
    return disks_in(folder) / str(broker_id)


def _lay_out(disk: MemoryStorage, root: Path) -> None:
    """Put a disk's files where the parser of real runs finds them."""
    for folder in sorted(disk.folders):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for path, file in disk.files.items():
        (root / path).write_bytes(file.data)

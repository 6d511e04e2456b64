"""Writes a simulated history as the run folder that a real run leaves, for the same judges and the same report."""

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from harness.evidence.replicas import dump_replicas
from harness.history import JournalEntry, Operation, ZnodeChange
from harness.phase_log import Phase, PhaseNotes, entered
from harness.progress import Progress, Silent
from harness.scenario.file import scenario_yaml
from harness.simulation.disk import MemoryStorage
from harness.simulation.schedule import SimulatedHistory
from harness.store import RunFolder


def write_run_folder(history: SimulatedHistory, folder: RunFolder, progress: Progress | None = None) -> None:
    """Write everything that the history holds; the folder exists. Disks are dumped by the parser of real runs."""
    folder.scenario.write_text(scenario_yaml(history.scenario), encoding="utf-8")
    folder.plan.write_text(history.plan.to_json(), encoding="utf-8")
    with entered(folder, Phase.DRIVE, progress or Silent()) as notes:
        leave_evidence(history, folder, notes)
    with entered(folder, Phase.COLLECT, progress or Silent()) as notes:
        for broker_id in history.disks:
            for replica in dump_replicas(folder, broker_id, disk_of(folder, broker_id)):
                if replica.damage:
                    notes.remark(f"the replica of {replica.topic}-{replica.partition}: {replica.damage}")
        shutil.rmtree(folder.cluster)


def leave_evidence(history: SimulatedHistory, folder: RunFolder, notes: PhaseNotes) -> None:
    """Write what a driven cluster leaves: operations, journal, logs, and disks, which are still to be dumped."""
    for path, lines in evidence(history):
        (folder.root / path).parent.mkdir(parents=True, exist_ok=True)
        (folder.root / path).write_bytes(b"".join(lines))
    for broker_id, disk in history.disks.items():
        _lay_out(disk, disk_of(folder, broker_id))
    for remark in history.remarks:
        notes.remark(remark, damaged=True)


def disks_in(folder: RunFolder) -> Path:
    """Return the folder of all disks."""
    return folder.cluster / "disks"


def disk_of(folder: RunFolder, broker_id: int) -> Path:
    """Return the folder with what was on a broker's disk when the load had ended."""
    return disks_in(folder) / str(broker_id)


def evidence(history: SimulatedHistory) -> Iterator[tuple[Path, list[bytes]]]:
    """Yield every file of lines but the dumps of replicas: where it lies within a run folder, and its lines."""
    within = RunFolder(Path())
    for process, operations in history.operations.items():
        yield within.operations_of(process), _lines(operations)
    for broker_id, log in history.logs.items():
        yield within.state_change_log(broker_id), log.lines()
    yield within.zookeeper, _lines(history.znodes)
    yield within.journal, _lines(history.journal)


def _lines(values: Iterable[Operation | ZnodeChange | JournalEntry]) -> list[bytes]:
    return [json.dumps(asdict(value), separators=(",", ":"), ensure_ascii=False).encode() + b"\n" for value in values]


def _lay_out(disk: MemoryStorage, root: Path) -> None:
    """Put a disk's files where the parser of real runs finds them."""
    for folder in sorted(disk.folders):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for path, file in disk.files.items():
        (root / path).write_bytes(file.data)

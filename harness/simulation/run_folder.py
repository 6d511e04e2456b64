"""Writes a simulated history as the run folder that a real run leaves, for the same judges and the same report."""

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from harness.evidence.replicas import dump_replicas
from harness.history import JournalEntry, Operation, ZnodeChange
from harness.phase_log import Phase, entered
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
        for path, lines in evidence(history):
            (folder.root / path).parent.mkdir(parents=True, exist_ok=True)
            (folder.root / path).write_bytes(b"".join(lines))
        for remark in history.remarks:
            notes.remark(remark, damaged=True)
    with entered(folder, Phase.COLLECT, progress or Silent()) as notes:
        for broker_id, disk in history.disks.items():
            log_dir = folder.cluster / "disks" / str(broker_id)
            _lay_out(disk, log_dir)
            for replica in dump_replicas(folder, broker_id, log_dir):
                if replica.damage:
                    notes.remark(f"the replica of {replica.topic}-{replica.partition}: {replica.damage}")
        shutil.rmtree(folder.cluster)


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

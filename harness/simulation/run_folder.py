"""Writes a simulated history as the run folder that a real run leaves, for the same judges and the same report."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.evidence.replicas import dump_replicas
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
        for process, operations in history.operations.items():
            _write(folder.operations_of(process), map(asdict, operations))
        for broker_id, log in history.logs.items():
            _write_bytes(folder.state_change_log(broker_id), b"".join(log.lines()))
        _write(folder.zookeeper, map(asdict, history.znodes))
        _write(folder.journal, map(asdict, history.journal))
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


def _write(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
    _write_bytes(path, text.encode())


def _write_bytes(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _lay_out(disk: MemoryStorage, root: Path) -> None:
    """Put a disk's files where the parser of real runs finds them."""
    for folder in sorted(disk.folders):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for path, file in disk.files.items():
        (root / path).write_bytes(file.data)

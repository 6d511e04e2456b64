"""A schedule that has lost a record, as a broker might lose one."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.analysis.sources.sealing.packed import packed
from harness.sweep.executor import Lines, SimulatedSchedule


def lost(schedule: SimulatedSchedule) -> SimulatedSchedule:
    """Take the first record that a producer was told of out of every log and every poll."""
    sent = [json.loads(line) for path, lines in schedule.evidence["operations"] for line in lines if "producer" in path]
    gone = next(each["value"] for each in sent if each["kind"] == "send" and each["type"] == "ok")
    evidence = dict(schedule.evidence)
    evidence["replicas"] = [
        (path, [line for line in lines if f'"value":"{gone}"' not in line]) for path, lines in evidence["replicas"]
    ]
    evidence["operations"] = [
        (path, lines if "producer" in path else [line for line in lines if f'"value":"{gone}"' not in line])
        for path, lines in evidence["operations"]
    ]
    with TemporaryDirectory() as folder:
        return replace(schedule, evidence=evidence, tables=packed(schedule.run_id, _files(evidence, Path(folder))))


def _files(evidence: dict[str, Lines], root: Path) -> dict[str, list[tuple[Path, int]]]:
    """Write the lines down, as packing takes them."""
    files: dict[str, list[tuple[Path, int]]] = {kind: [] for kind in evidence}
    for kind, of_kind in evidence.items():
        for name, lines in of_kind:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            files[kind].append((path, len(lines)))
    return files

"""The phases up to the judgement on a real cluster: what they leave in the run folder, and nothing else is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import phases
from harness.run.journal import fault_results, read_journal
from harness.scenario.file import read_scenario
from harness.scenario.plan import load_plan
from harness.store.folder import RunFolder
from harness.store.history import InjectionStep, OpKind, OpType, read_jsonl
from harness.store.phase_log import Phase, ends
from tests.verdicts import CONFIRMED

pytestmark = pytest.mark.cluster

SCENARIO = """\
name: brief
description: Two faults at overlapping times, and one more
topics: [{name: orders, partitions: 2, config: {min.insync.replicas: 2}}]
workloads: [{kind: produce-consume, parameters: {producers: 1, consumers: 1, acks: all, rate_per_s: 50}}]
faults:
  - {kind: pause, at_s: 0.2, duration_s: 4, target: "followers(orders,0)"}
  - {kind: kill, at_s: 0.7, duration_s: 1, target: "leader(orders,0)"}
  - {kind: expire-session, at_s: 9, target: controller}
duration_s: 10
"""


def end_of_phases(folder: RunFolder) -> dict[Phase, str]:
    return {phase: end.error for phase, end in ends(folder).items()}


def test_a_run_with_overlapping_faults_leaves_whole_evidence_and_nothing_else(tmp_path: Path) -> None:
    folder = phases.create_from(read_scenario(SCENARIO, "brief.yaml"), 1, tmp_path)
    try:
        phases.start(folder, owner_pid=os.getpid())
        phases.drive(folder)
        phases.collect(folder)
    finally:
        phases.stop(folder)
    assert end_of_phases(folder) == dict.fromkeys((Phase.START, Phase.DRIVE, Phase.COLLECT, Phase.STOP), "")
    assert [remark for end in ends(folder).values() for remark in (*end.remarks, *end.residue)] == []
    results = fault_results(load_plan(folder.plan), read_journal(folder.journal))
    assert [(result.fault, result.verdict) for result in results] == [
        ("pause", CONFIRMED),
        ("kill", CONFIRMED),
        ("expire-session", CONFIRMED),
    ]
    assert not set(results[0].targets) & set(results[1].targets)

    sends = [line for line in read_jsonl(folder.operations_of("producer-1")) if line["type"] == OpType.OK]
    reader = list(read_jsonl(folder.operations_of("consumer-1")))
    read = {record["value"] for line in reader if line["type"] == OpType.OK for record in line["records"]}
    assert len(sends) > 100
    assert {line["value"] for line in sends} <= read, "everything acknowledged was read by the end"
    final = {(line["kind"], line["partition"]): line["offset"] for line in reader if line["type"] == OpType.OK}
    for partition in (0, 1):
        assert final[OpKind.FETCH_COMMITTED, partition] == final[OpKind.END_OFFSET, partition] > 0

    for broker in range(3):
        assert folder.state_change_log(broker).exists()
        assert folder.replica_dump(broker, "orders", 1).exists()
    assert any(line["path"] == "/controller_epoch" for line in read_jsonl(folder.zookeeper))


def test_a_signal_in_the_middle_of_a_fault_heals_stops_and_keeps_the_history(tmp_path: Path) -> None:
    folder = phases.create_from(read_scenario(SCENARIO, "brief.yaml"), 1, tmp_path)
    program = (
        "import os, sys; from pathlib import Path\n"
        "from harness import phases; from harness.store.folder import RunFolder\n"
        "folder = RunFolder(Path(sys.argv[1]))\n"
        "try:\n"
        "    phases.start(folder, owner_pid=os.getpid()); phases.drive(folder)\n"
        "finally:\n"
        "    phases.collect(folder); phases.stop(folder)\n"
    )
    running = subprocess.Popen([sys.executable, "-c", program, str(folder.root)], stderr=subprocess.DEVNULL)
    deadline_s = time.monotonic() + 300
    begun = ("kill", InjectionStep.INTENDED)
    while not any((entry.fault, entry.step) == begun for entry in read_journal(folder.journal)):
        assert time.monotonic() < deadline_s
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGTERM)
    assert running.wait(300) != 0
    assert end_of_phases(folder) == {Phase.START: "", Phase.DRIVE: "interrupted", Phase.COLLECT: "", Phase.STOP: ""}
    assert [end.residue for end in ends(folder).values() if end.residue] == []
    steps = {(entry.fault, str(entry.step)) for entry in read_journal(folder.journal)}
    assert {("pause", "healed"), ("kill", "healed")} <= steps
    assert folder.replica_dump(0, "orders", 0).exists()

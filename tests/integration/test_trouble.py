"""Trouble in the middle of a run: each ends with an honest verdict, never PASS, and leaves nothing after the reaper.

Phases run in processes of their own, as a scheduler's tasks do, and die where the test says: a process that is told to
die at a place kills itself when it comes by there, as surely as an out-of-memory killer and at a known instant.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness import phases
from harness.cluster.pids import ProcessIdentity, read_pid_file
from harness.cluster.reaper.reap import reap
from harness.cluster.reaper.result import Fate, Kind
from harness.cluster.reaper.standing import supervised
from harness.history import InjectionStep
from harness.journal import read_journal
from harness.phase_log import ends
from harness.progress import Silent
from harness.result import RunResult
from harness.scenario.file import read_scenario
from harness.store import RunFolder
from harness.verdict import EnvironmentVerdict, ExitCode, SystemVerdict
from harness.waiting import until

pytestmark = pytest.mark.cluster

SCENARIO = """\
name: brief
description: One fault, quickly
topics: [{name: orders, partitions: 1, config: {min.insync.replicas: 2}}]
workloads: [{kind: produce-consume, parameters: {producers: 1, consumers: 1, acks: all, rate_per_s: 50}}]
faults: [{kind: kill, at_s: 0.2, duration_s: 0.5, target: "leader(orders,0)"}]
duration_s: 1
"""

TASK = """
import os, pkgutil, signal, sys
from pathlib import Path
from harness import phases
from harness.store import RunFolder

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

folder, *names = sys.argv[1:]
for place in filter(None, os.environ.get("DIES_AT", "").split()):
    owner, _, name = place.rpartition(".")
    setattr(pkgutil.resolve_name(owner), name, die)
for name in names:
    getattr(phases, name)(RunFolder(Path(folder)))
"""
HEALING = "harness.nemesis.heal"
"""With the fault in force."""
COLLECTING = "harness.collecting._collect_evidence"
STOPPING = "harness.cluster.supervision:Supervision.end"
"""With everything still up."""


def task(run: RunFolder, *names: str, dies_at: str = "", **environment: str) -> int:
    """Carry out phases as a task of a scheduler does, in a process of their own; return its exit status."""
    command = [sys.executable, "-c", TASK, str(run.root), *names]
    variables = {**os.environ, "DIES_AT": dies_at, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 or done.returncode == -signal.SIGKILL or not dies_at, done.stderr[-3000:]
    return done.returncode


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Path]:
    """A folder of runs of which nothing lives when the test is over, however it ends."""
    runs = tmp_path / "runs"
    yield runs
    for folder in runs.iterdir() if runs.exists() else ():
        if supervisor := read_pid_file(RunFolder(folder).cluster / "pids" / "supervisor.pid"):
            supervisor.send(signal.SIGKILL)


def brief(runs: Path) -> RunFolder:
    return phases.create_from(read_scenario(SCENARIO, "brief.yaml"), 1, runs)


def processes_of(runs: Path) -> list[str]:
    """Return the command lines of live processes that name a run of ours."""
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    return [line for line in lines if str(runs) in line]


def supervisor_gone(run: RunFolder) -> None:
    async def alive() -> bool:
        return supervised(run)

    asyncio.run(until(alive, lambda still: not still, what="end of the supervisor", timeout_s=15))


def closed(run: RunFolder) -> RunResult:
    """Return what a run came to that the reaper has just brought to its end."""
    result = RunResult.load(run.verdict)
    assert result.verdicts.system is SystemVerdict.UNKNOWN
    assert result.verdicts.environment is EnvironmentVerdict.CLEAN
    assert result.verdicts.exit_code is ExitCode.INCONCLUSIVE
    assert processes_of(run.root) == []
    assert not (run.cluster / "supervisor.sock").exists()
    return result


def test_a_start_that_is_killed_takes_its_cluster_with_it_and_the_run_is_not_lost(runs: Path) -> None:
    run = brief(runs)
    assert task(run, "start", dies_at="harness.cluster.readiness.cluster_ready") == -signal.SIGKILL
    supervisor_gone(run)
    reaped = reap([runs], progress=Silent())
    assert [item.fate for item in reaped.items if item.kind is Kind.RUN] == [Fate.CLOSED]
    assert "the phase start was cut off" in closed(run).evidence
    assert reap([runs]).items == []


@pytest.mark.parametrize(
    ("before", "killed", "dies_at"),
    [
        pytest.param([], "drive", HEALING, id="drive"),
        pytest.param(["drive"], "collect", COLLECTING, id="collect"),
        pytest.param(["drive", "collect"], "stop", STOPPING, id="stop"),
    ],
)
def test_a_worker_that_is_killed_and_a_teardown_that_never_comes(
    runs: Path, before: list[str], killed: str, dies_at: str
) -> None:
    run = brief(runs)
    for name in ("start", *before):
        assert task(run, name) == 0
    assert task(run, killed, dies_at=dies_at) == -signal.SIGKILL

    early = reap([runs], progress=Silent())
    assert [item.fate for item in early.items] == [Fate.KEPT], "its scheduler has some time to go on"
    assert supervised(run)

    late = reap([runs], patience_s=0, progress=Silent())
    assert [item.fate for item in late.items if item.kind is Kind.RUN] == [Fate.CLOSED]
    assert {item.fate for item in late.items if item.kind is Kind.PROCESS} == {Fate.REMOVED}
    assert late.exit_code is ExitCode.HELD
    result = closed(run)
    assert f"the phase {killed} was cut off" in result.evidence or killed in ("collect", "stop")
    assert run.replica_dump(1, "orders", 0).exists()
    if killed == "drive":
        steps = [entry.step for entry in read_journal(run.journal)]
        assert InjectionStep.HEALED in steps, "what was in force is healed from the journal"
    assert reap([runs]).items == []


def test_a_cluster_that_waits_for_its_drive_phase_is_let_be_and_can_be_driven(runs: Path) -> None:
    run = brief(runs)
    assert task(run, "start") == 0
    for _ in range(2):
        assert [item.fate for item in reap([runs], patience_s=0).items] == [Fate.KEPT]
    assert task(run, "drive", "collect", "stop") == 0
    assert [end.error for end in ends(run).values()] == ["", "", "", ""]
    assert RunResult.load(run.verdict).faults[0].verdict == "CONFIRMED"
    assert reap([runs]).items == []


def test_reapers_beside_a_run_that_starts_do_it_no_harm(runs: Path) -> None:
    command = [sys.executable, "-m", "harness", "reap", "--runs", str(runs), "--patience", "0", "--json"]
    run = brief(runs)
    starting = subprocess.Popen([sys.executable, "-c", TASK, str(run.root), "start"], stderr=subprocess.DEVNULL)
    rounds = 0
    while starting.poll() is None:
        rounds += 1
        assert {item.fate for item in reap([runs], patience_s=0).items} <= {Fate.KEPT, Fate.CLOSED}
    assert rounds > 1
    assert starting.wait() == 0
    assert supervised(run)
    os.kill(supervisor_of(run).pid, signal.SIGKILL)
    supervisor_gone(run)
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL) for _ in range(2)]
    said = [json.loads(reaper.communicate(timeout=60)[0]) for reaper in both]
    assert [reaper.returncode for reaper in both] == [ExitCode.HELD, ExitCode.HELD]
    fates = [item["fate"] for answer in said for item in answer["items"] if item["kind"] == "run"]
    assert fates.count("closed") == 1
    assert closed(run).evidence[-1:] != []


def supervisor_of(run: RunFolder) -> ProcessIdentity:
    supervisor = read_pid_file(run.cluster / "pids" / "supervisor.pid")
    assert supervisor is not None
    return supervisor


def test_a_command_that_is_killed_in_the_middle_leaves_nothing_after_one_reap(runs: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "brief.yaml"
    scenario.write_text(SCENARIO.replace("duration_s: 1\n", "duration_s: 30\n"))
    command = [sys.executable, "-m", "harness", "run", str(scenario), "--seed", "1", "--runs", str(runs)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        run = the_run_once_a_fault_is_in_force(running, runs)
    finally:
        running.kill()
        running.wait()
    supervisor_gone(run)
    reaped = reap([runs], progress=Silent())
    assert [item.fate for item in reaped.items if item.kind is Kind.RUN] == [Fate.CLOSED]
    assert "the phase drive was cut off" in closed(run).evidence


def the_run_once_a_fault_is_in_force(running: subprocess.Popen[Any], runs: Path) -> RunFolder:
    deadline_s = time.monotonic() + 60
    while True:
        assert time.monotonic() < deadline_s
        assert running.poll() is None
        for folder in map(RunFolder, runs.glob("brief-*")):
            if any(entry.step is InjectionStep.INJECTED for entry in read_journal(folder.journal)):
                return folder
        time.sleep(0.02)

"""Trouble in the middle of a run: each ends with an honest verdict, never PASS, and leaves nothing after the reaper.

Phases run in processes of their own, as a scheduler's tasks do, and die where the test says: a process that is told to
die at a place kills itself when it comes by there, as surely as an out-of-memory killer and at a known instant.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness import phases
from harness.cluster.containers.engine import Engine
from harness.progress import Silent
from harness.reaper.abandoned_runs import supervised
from harness.reaper.reap import reap
from harness.reaper.result import Fate, ItemKind
from harness.run.journal import read_journal
from harness.scenario.file import read_scenario
from harness.store.folder import RunFolder
from harness.store.history import InjectionStep
from harness.store.phase_log import ends
from harness.store.reserve import give_back
from harness.store.result import RunResult
from harness.system.pids import ProcessIdentity, read_pid_file
from harness.system.waiting import until
from harness.verdict import EnvironmentVerdict, ExitCode, FaultVerdict, SystemVerdict
from tests.brief import BRIEF
from tests.cluster.containers.engine_proxy import EngineProxy
from tests.verdicts import CONFIRMED

pytestmark = [pytest.mark.cluster, pytest.mark.rotating(4)]

CUT_OFF = BRIEF.replace("kind: kill", "kind: isolate")

TASK = """
import os, pkgutil, signal, sys
from pathlib import Path
from harness import phases
from harness.store.folder import RunFolder

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

folder, prelude, *names = sys.argv[1:]
exec(prelude)
for place in filter(None, os.environ.get("DIES_AT", "").split()):
    owner, _, name = place.rpartition(".")
    setattr(pkgutil.resolve_name(owner), name, die)
for name in names:
    getattr(phases, name)(RunFolder(Path(folder)))
"""
HEALING = "harness.experiment.nemesis.heal"
"""With the fault in force."""
COLLECTING = "harness.experiment.collect._collect_logs"
STOPPING = "harness.cluster.supervision.supervision:Supervision.end"
"""With everything still up."""


def attempt(
    run: RunFolder, *names: str, dies_at: str = "", prelude: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Carry out phases as a task of a scheduler does, in a process of their own, after some lines of code."""
    command = [sys.executable, "-c", TASK, str(run.root), prelude, *names]
    variables = {**os.environ, "DIES_AT": dies_at, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, check=False)


def task(run: RunFolder, *names: str, dies_at: str = "", **environment: str) -> int:
    """Carry out phases that succeed, or die where they are told to; return the exit status."""
    done = attempt(run, *names, dies_at=dies_at, **environment)
    assert done.returncode == (-signal.SIGKILL if dies_at else 0), done.stderr[-3000:]
    return done.returncode


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where these runs' Spark has its scratch folders; a reaper in a test sees no others."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setenv("TMPDIR", str(scratch))
    return scratch


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Path]:
    """A folder of runs of which nothing lives when the test is over, however it ends."""
    runs = tmp_path / "runs"
    yield runs
    for folder in runs.iterdir() if runs.exists() else ():
        if supervisor := read_pid_file(RunFolder(folder).cluster / "pids" / "supervisor.pid"):
            supervisor.send(signal.SIGKILL)


def brief(runs: Path, scenario: str = BRIEF) -> RunFolder:
    return phases.create_from(read_scenario(scenario, "brief.yaml"), 1, runs)


def processes_of(runs: Path) -> list[str]:
    """Return the command lines of live processes that name a run of ours."""
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    return [line for line in lines if str(runs) in line]


def all_gone(runs: Path) -> None:
    """Wait until no process names a run of ours: a supervisor looks once a second whether it has still a folder."""

    async def left() -> list[str]:
        return processes_of(runs)

    asyncio.run(until(left, lambda seen: not seen, what="the end of all processes", timeout_s=120))


def supervisor_gone(run: RunFolder) -> None:
    async def alive() -> bool:
        return supervised(run)

    asyncio.run(until(alive, lambda still: not still, what="end of the supervisor", timeout_s=120))


def closed(run: RunFolder) -> RunResult:
    """Return what a run came to that the reaper has just brought to its end."""
    result = RunResult.load(run.verdict)
    assert result.verdicts.system is SystemVerdict.UNKNOWN
    assert result.verdicts.environment is EnvironmentVerdict.CLEAN
    assert result.verdicts.exit_code is ExitCode.INCONCLUSIVE
    assert processes_of(run.root) == []
    assert list(run.cluster.glob("*.sock")) == []
    return result


def test_a_start_that_is_killed_takes_its_cluster_with_it_and_the_run_is_not_lost(runs: Path) -> None:
    run = brief(runs)
    assert task(run, "start", dies_at="harness.cluster.readiness.cluster_ready") == -signal.SIGKILL
    supervisor_gone(run)
    reaped = reap([runs], progress=Silent())
    assert [item.fate for item in reaped.items if item.kind is ItemKind.RUN] == [Fate.CLOSED]
    assert "the phase start was cut off" in map(str, closed(run).remarks)
    assert reap([runs]).items == []


@pytest.mark.parametrize(
    ("scenario", "before", "killed", "dies_at"),
    [
        pytest.param(BRIEF, [], "drive", HEALING, id="drive"),
        pytest.param(CUT_OFF, [], "drive", HEALING, id="drive, with a broker cut off"),
        pytest.param(BRIEF, ["drive"], "collect", COLLECTING, id="collect"),
        pytest.param(BRIEF, ["drive", "collect"], "stop", STOPPING, id="stop"),
    ],
)
def test_a_worker_that_is_killed_and_a_teardown_that_never_comes(
    runs: Path, scenario: str, before: list[str], killed: str, dies_at: str
) -> None:
    run = brief(runs, scenario)
    for name in ("start", *before):
        assert task(run, name) == 0
    assert task(run, killed, dies_at=dies_at) == -signal.SIGKILL

    early = reap([runs], progress=Silent())
    assert [item.fate for item in early.items] == [Fate.KEPT], "its scheduler has some time to go on"
    assert supervised(run)

    late = reap([runs], patience_s=0, progress=Silent())
    assert [item.fate for item in late.items if item.kind is ItemKind.RUN] == [Fate.CLOSED]
    assert {item.fate for item in late.items if item.kind is ItemKind.PROCESS} == {Fate.REMOVED}
    assert late.exit_code is ExitCode.HELD
    result = closed(run)
    cut_off = f"the phase {killed} was cut off" in map(str, result.remarks)
    assert cut_off is (killed != "stop"), "what was cut off is evidence"
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
    assert RunResult.load(run.verdict).faults[0].verdict is CONFIRMED
    assert reap([runs]).items == []


def test_reapers_beside_a_run_that_starts_do_it_no_harm(runs: Path) -> None:
    command = [sys.executable, "-m", "harness", "reap", "--runs", str(runs), "--patience", "0", "--json"]
    run = brief(runs)
    starting = subprocess.Popen([sys.executable, "-c", TASK, str(run.root), "", "start"], stderr=subprocess.DEVNULL)
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
    answers = [json.loads(reaper.communicate(timeout=300)[0]) for reaper in both]
    assert [reaper.returncode for reaper in both] == [ExitCode.HELD, ExitCode.HELD]
    fates = [item["fate"] for answer in answers for item in answer["items"] if item["kind"] == "run"]
    assert fates.count("closed") == 1
    assert closed(run).remarks


def supervisor_of(run: RunFolder) -> ProcessIdentity:
    supervisor = read_pid_file(run.cluster / "pids" / "supervisor.pid")
    assert supervisor is not None
    return supervisor


def test_a_command_that_is_killed_in_the_middle_leaves_nothing_after_one_reap(runs: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "brief.yaml"
    scenario.write_text(BRIEF.replace("duration_s: 1\n", "duration_s: 30\n"))
    command = [sys.executable, "-m", "harness", "run", str(scenario), "--seed", "1", "--runs", str(runs)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        run = the_run_once_a_fault_is_in_force(running, runs)
    finally:
        running.kill()
        running.wait()
    supervisor_gone(run)
    reaped = reap([runs], progress=Silent())
    assert [item.fate for item in reaped.items if item.kind is ItemKind.RUN] == [Fate.CLOSED]
    assert "the phase drive was cut off" in map(str, closed(run).remarks)


def test_a_run_folder_that_is_moved_ends_its_run_at_once_and_is_not_made_anew(runs: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "brief.yaml"
    scenario.write_text(BRIEF.replace("duration_s: 1\n", "duration_s: 60\n"))
    command = [sys.executable, "-m", "harness", "run", str(scenario), "--seed", "1", "--runs", str(runs)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        run = the_run_once_a_fault_is_in_force(running, runs)
        moved = RunFolder(run.root.rename(tmp_path / run.run_id))
        _, errors = running.communicate(timeout=300)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == ExitCode.ENVIRONMENT
    assert errors == f"{run.root} was moved or removed while it was in use; its cluster has ended itself\n"
    assert list(runs.iterdir()) == []
    all_gone(run.root)
    reap([tmp_path], progress=Silent())
    assert RunResult.load(moved.verdict).verdicts.system is SystemVerdict.UNKNOWN


def the_run_once_a_fault_is_in_force(running: subprocess.Popen[Any], runs: Path) -> RunFolder:
    deadline_s = time.monotonic() + 300
    while True:
        assert time.monotonic() < deadline_s
        assert running.poll() is None
        for folder in map(RunFolder, runs.glob("brief-*")):
            if any(entry.step is InjectionStep.INJECTED for entry in read_journal(folder.journal)):
                return folder
        time.sleep(0.02)


def test_a_worker_that_is_killed_after_the_cluster_was_stopped(runs: Path, scratch: Path) -> None:
    run = brief(runs)
    task(run, "start", "drive", "collect", "stop")

    def killed(phase: str, dies_at: str) -> RunResult:
        task(run, phase, dies_at=dies_at)
        nothing_runs_in(scratch)
        reaped = reap([runs], progress=Silent())
        assert [item.fate for item in reaped.items if item.kind is ItemKind.RUN] == [Fate.CLOSED]
        assert list(scratch.iterdir()) == [], "Spark's scratch folder went with its process"
        assert reap([runs]).items == []
        return RunResult.load(run.verdict)

    assert "the phase judge was cut off" in map(str, killed("judge", "harness.analysis.judge.judge").remarks)
    closed(run)
    task(run, "judge")
    assert "the phase expectations was cut off" in map(str, killed("expectations", "expectations.runner.run").remarks)
    closed(run)
    task(run, "expectations")
    assert RunResult.load(run.verdict).verdicts.exit_code is ExitCode.HELD
    assert killed("report", "harness.report.page.write").verdicts.exit_code is ExitCode.HELD, "all was judged"
    assert not run.report.exists()


@pytest.mark.jvm
def test_a_worker_that_is_killed_while_spark_starts_leaves_nothing_after_one_reap(
    runs: Path, scratch: Path, tmp_path: Path
) -> None:
    run, java = brief(runs), tmp_path / "java/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nexec sleep 600\n")
    java.chmod(0o755)
    task(run, "judge", dies_at="pyspark.java_gateway.time.sleep", JAVA_HOME=str(tmp_path / "java"))
    assert processes_of(scratch) != [], "spark-submit goes on without it"
    reaped = reap([runs], progress=Silent())
    assert {item.fate for item in reaped.items if item.kind is ItemKind.PROCESS} == {Fate.REMOVED}
    assert processes_of(scratch) == []
    assert list(scratch.iterdir()) == []
    assert reap([runs]).items == []


def nothing_runs_in(scratch: Path) -> None:
    """Return when the JVM of a killed process has ended, as it does when its standard input does."""

    async def jvms() -> list[str]:
        return processes_of(scratch)

    asyncio.run(until(jvms, lambda lines: not lines, what="end of the JVM", timeout_s=120))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own that has room for one short run."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(folder)]
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk takes root")
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_is_full_while_evidence_is_collected(small_disk: Path) -> None:
    runs, filler = small_disk / "runs", small_disk / "filler"
    run = brief(runs)
    try:
        task(run, "start", "drive")
        fill(filler)
        task(run, "collect", "stop")
        assert not supervised(run), "a full disk keeps no cluster up"
        result = closed(run)
        assert any(f"the disk {small_disk} is full: " in remark.text for remark in result.remarks)
        assert [fault.verdict for fault in result.faults] == [FaultVerdict.CONFIRMED]
        assert reap([runs]).items == []

        run.verdict.unlink()  # as if there had been no room for it either
        give_back(run)
        fill(filler)
        assert reap([runs]).exit_code is ExitCode.ENVIRONMENT, "it cannot be saved, and that is said"
        filler.unlink()
        assert [item.fate for item in reap([runs]).items] == [Fate.CLOSED]
        closed(run)
    finally:
        if (supervisor := read_pid_file(run.cluster / "pids" / "supervisor.pid")) is not None:
            supervisor.send(signal.SIGKILL)


def fill(path: Path) -> None:
    """Write a file until the disk has no byte left."""
    for size in (1 << 20, 1 << 12, 1):
        while appended(path, bytes(size)):
            pass


def appended(path: Path, data: bytes) -> bool:
    try:
        with path.open("ab", buffering=0) as file:
            return bool(file.write(data))
    except OSError:
        return False


TAKEN = """
from harness.cluster.supervision.supervision import Supervision
reserve = Supervision.reserve_ports

async def taken(self, count):
    return [{port}, *await reserve(self, count)][:count]

Supervision.reserve_ports = taken
"""


def test_a_port_that_somebody_takes_between_its_choice_and_its_use(runs: Path) -> None:
    run = brief(runs)
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        done = attempt(run, "start", prelude=TAKEN.format(port=port))
        assert f"port {port} of" in done.stderr
        assert "is taken by another program" in done.stderr
        assert not supervised(run)
        reaped = reap([runs], progress=Silent())
        assert [(item.kind, item.fate) for item in reaped.items] == [(ItemKind.RUN, Fate.CLOSED)]
        assert any("is taken by another program" in remark.text for remark in closed(run).remarks)
        socket.create_connection(("127.0.0.1", port)).close()


NO_ENGINE = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}


def chaos(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", *arguments]
    variables = {**os.environ, **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, check=False)


def test_without_an_engine_nothing_is_begun_and_the_reaper_says_what_it_could_not_look_at(runs: Path) -> None:
    refused = chaos("run", "smoke", "--driver", "docker", "--runs", str(runs), **NO_ENGINE)
    assert refused.returncode == ExitCode.USAGE, refused.stderr
    assert "no Docker engine answers" in refused.stderr
    assert "process" in refused.stderr, "it names a driver that could"
    assert not runs.exists() or not list(runs.iterdir())
    reaped = chaos("reap", "--runs", str(runs), "--json", **NO_ENGINE)
    assert reaped.returncode == ExitCode.HELD
    assert "no Docker engine answers" in json.loads(reaped.stdout)["remarks"][0]


ON_DOCKER = BRIEF + "driver: docker\n"
IMAGE_GONE = (
    "from harness.cluster.containers import images; images.missing = lambda engine: ['kafka-chaos-broker:gone']"
)


@pytest.fixture
def on_docker(docker_images: Engine, runs: Path) -> Iterator[RunFolder]:
    """A run whose containers are gone when the test is over, however it ends."""
    run = phases.create_from(read_scenario(ON_DOCKER, "brief.yaml"), 1, runs)
    yield run
    docker_images.remove_run(run.root)


@pytest.mark.docker
def test_an_image_that_is_gone_when_its_cluster_is_to_start(
    docker_images: Engine, on_docker: RunFolder, runs: Path
) -> None:
    done = attempt(on_docker, "start", prelude=IMAGE_GONE)
    assert "the Docker engine has no kafka-chaos-broker:gone; run: chaos images build" in done.stderr
    assert not supervised(on_docker)
    reap([runs], progress=Silent())
    closed(on_docker)
    assert docker_images.resources(on_docker.root) == []


@pytest.mark.docker
def test_a_worker_its_supervisor_and_its_guard_that_are_killed_leave_no_container_and_keep_their_data(
    docker_images: Engine, on_docker: RunFolder, runs: Path
) -> None:
    task(on_docker, "start")
    task(on_docker, "drive", dies_at=HEALING)
    for name in ("guard", "supervisor"):
        if (process := read_pid_file(on_docker.cluster / "pids" / f"{name}.pid")) is not None:
            process.send(signal.SIGKILL)
    supervisor_gone(on_docker)
    assert [item.fate for item in reap([runs], progress=Silent()).items] == [Fate.KEPT]
    reaped = reap([runs], patience_s=0, progress=Silent())
    kinds = {item.kind for item in reaped.items if item.fate is Fate.REMOVED}
    assert {ItemKind.CONTAINER, ItemKind.NETWORK, ItemKind.VOLUME} <= kinds
    closed(on_docker)
    assert on_docker.replica_dump(1, "orders", 0).exists()
    assert docker_images.resources(on_docker.root) == []


@pytest.mark.docker
def test_an_engine_that_goes_in_the_middle_of_a_run_and_comes_back_later(
    docker_images: Engine, on_docker: RunFolder, runs: Path, tmp_path: Path
) -> None:
    proxy = EngineProxy(tmp_path / "engine.sock")
    proxied = {"DOCKER_HOST": proxy.url}
    try:
        task(on_docker, "start", "drive", **proxied)
    finally:
        proxy.close()
    for phase in ("collect", "stop"):
        attempt(on_docker, phase, **proxied)
    result = RunResult.load(on_docker.verdict)
    assert result.verdicts.system is SystemVerdict.UNKNOWN
    assert result.verdicts.environment is EnvironmentVerdict.RESIDUE
    assert processes_of(on_docker.root) == []

    reaped_without = chaos("reap", "--runs", str(runs), "--json", **proxied)
    answer = json.loads(reaped_without.stdout)
    assert (reaped_without.returncode, answer["items"], len(answer["remarks"])) == (ExitCode.HELD, [], 1)
    assert docker_images.resources(on_docker.root) != []

    reaped = reap([runs], progress=Silent())
    assert {item.fate for item in reaped.items} == {Fate.REMOVED}
    assert docker_images.resources(on_docker.root) == []
    result = RunResult.load(on_docker.verdict)
    assert result.verdicts.system is SystemVerdict.UNKNOWN
    assert result.verdicts.environment is EnvironmentVerdict.RESIDUE, "it was left behind, and is gone only now"
    assert on_docker.replica_dump(1, "orders", 0).exists(), "its data was brought out before it was removed"
    assert reap([runs]).items == []

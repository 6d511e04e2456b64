# Small processes of the tests' own stand for supervisors, workers and what a killed run leaves.
import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness import phases
from harness.cli.app import app
from harness.cluster.containers.engine import Engine, EngineUnavailable, Resource
from harness.cluster.limits import resources
from harness.cluster.limits.control_groups import group_of, lacking
from harness.errors import ClusterError
from harness.judging.assessment import Checked, assemble
from harness.progress import Silent
from harness.reaper import closing
from harness.reaper.abandoned_runs import RUN_NAME, State, status_of
from harness.reaper.reap import reap
from harness.reaper.result import Fate, Item, ItemKind
from harness.run.run import Run
from harness.scenario.file import read_scenario
from harness.scenario.plan import make_plan
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase
from harness.store.result import CheckResult, RunResult, SuiteResult
from harness.system import scratch
from harness.system.pids import ProcessIdentity, environment_values, identify, write_pid_file
from harness.system.scratch import new_scratch_folder
from harness.verdict import EnvironmentVerdict, ExitCode, SystemVerdict
from tests.raising import raising
from tests.verdicts import PASS

SCENARIO = """\
name: short
description: One fault
topics: [{name: orders, partitions: 1}]
workloads: [{kind: produce-consume, parameters: {producers: 1, consumers: 1}}]
faults: [{kind: kill, at_s: 1, target: "1"}]
"""
PASSED = CheckResult(check="I1", promise="p", verdict=PASS)
SUITE = SuiteResult(suite="s", verdict=PASS, evaluated=1, unsuccessful=0)
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
GONE = ProcessIdentity(pid=os.getpid(), started="1")
"""A worker that is gone: its pid is another process's now."""
OTHER = ProcessIdentity(pid=os.getpid(), started="2")
LONG_AGO_S = 3600.0


@dataclass
class FakeEngine:
    """Holds what the test put there; a thing in `stuck` cannot be removed."""

    things: list[Resource] = field(default_factory=list)
    stuck: set[str] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)

    def __enter__(self) -> "FakeEngine":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def resources(self, root: Path | None = None) -> list[Resource]:
        return [made for made in self.things if root in (None, made.root)]

    def remove(self, made: Resource) -> None:
        self.requests.append(made.name)
        if made.name in self.stuck:
            raise ClusterError(f"removing the {made.kind} {made.name}: it is in use")
        self.things.remove(made)

    def add(self, root: Path, *names: str, host: str | None = None) -> "FakeEngine":
        for name in names:
            kind: Any = name.partition("-")[0]
            self.things.append(
                Resource(kind=kind, id=name, name=name, run_id=root.name, root=root, host=host or socket.gethostname())
            )
        return self


class World:
    """A folder of runs, and the processes that tests start for them."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.engine: FakeEngine | None = None
        self.processes: list[subprocess.Popen[bytes]] = []

    def run(self, *entries: list[Any]) -> RunFolder:
        """Make a run, which went through these phases."""
        scenario = read_scenario(SCENARIO, "short.yaml")
        run = phases.create(scenario, make_plan(scenario, 7), self.runs)
        if entries:
            went_through(run, *entries)
        return run

    def process(
        self, run: RunFolder | None = None, *, name: str = "", marked_as_ours: bool = True, **options: Any
    ) -> ProcessIdentity:
        """Start a process; marked as the run's, and named by a pid file if it has a name."""
        mark = {} if run is None or not marked_as_ours else {"CHAOS_CLUSTER": str(run.cluster)}
        process = subprocess.Popen(SLEEP, env={**os.environ, **mark}, **options)
        self.processes.append(process)
        identity = identify(process.pid)
        assert identity is not None
        while mark and process.pid not in dict(environment_values("CHAOS_CLUSTER")):
            assert process.poll() is None  # its environment shows a moment after Popen has returned
        if run is not None and name:
            (run.cluster / "pids").mkdir(parents=True, exist_ok=True)
            write_pid_file(run.cluster / "pids" / f"{name}.pid", identity)
        return identity

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Runs, scratch folders and an engine of the test's own: a reaper in a test sees nothing else."""
    made = World(tmp_path / "runs")
    made.runs.mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))

    def connect() -> FakeEngine:
        if made.engine is None:
            raise EngineUnavailable("no Docker engine answers: it is a test")
        return made.engine

    monkeypatch.setattr(Engine, "connect", connect)
    yield made
    made.end()


def entry(phase: Phase, process: ProcessIdentity | None = GONE, *, over: bool = True, **more: Any) -> list[Any]:
    """Return the lines of a phase that was entered, and left if it was not cut off."""
    owner = {"pid": process.pid, "pid_started": process.started} if process else {}
    host = more.pop("host", socket.gethostname())
    started = {"phase": phase, "event": "started", "utc": "2026-01-01T00:00:00+00:00", "host": host, **owner}
    ended = {"phase": phase, "event": "ended", "utc": "", "remarks": [], "damaged": False, "residue": [], "error": ""}
    return [started, {**ended, "duration_s": 1.0, **more}] if over else [started]


def went_through(run: RunFolder, *entries: list[Any]) -> None:
    run.phases.write_text("".join(json.dumps(line) + "\n" for lines in entries for line in lines))


def unattended_for_long(run: RunFolder) -> None:
    """Let a reaper have seen no process at work an hour ago, and the phase log be older."""
    before_s = time.time() - LONG_AGO_S
    os.utime(run.phases, (before_s - 1, before_s - 1))
    run.cluster.mkdir(exist_ok=True)
    (run.cluster / "unattended").touch()
    os.utime(run.cluster / "unattended", (before_s, before_s))


def fates(items: list[Item]) -> set[tuple[str, str, str]]:
    """Return what became of what, processes by kind only."""
    return {(item.fate, item.kind, "" if item.kind is ItemKind.PROCESS else item.name) for item in items}


START, DRIVE = entry(Phase.START), entry(Phase.DRIVE, OTHER)
STOPPED = [START, DRIVE, entry(Phase.COLLECT, OTHER), entry(Phase.STOP, OTHER)]
ALIVE, DEAD = True, False


@pytest.mark.parametrize(
    ("log", "supervisor", "long_ago", "state"),
    [
        pytest.param([entry(Phase.START, over=False)], DEAD, False, State.ABANDONED, id="killed while it was started"),
        pytest.param([entry(Phase.START, over=False)], ALIVE, False, State.ACTIVE,
                     id="killed while it was started, and its cluster is about to end"),
        pytest.param([entry(Phase.START, over=False)], ALIVE, True, State.ABANDONED,
                     id="killed when all was up, without a note"),
        pytest.param([entry(Phase.START, error="no")], DEAD, False, State.ABANDONED, id="it did not start"),
        pytest.param([START], ALIVE, True, State.ACTIVE, id="the cluster waits for its drive phase, however long"),
        pytest.param([START], DEAD, False, State.ACTIVE, id="the cluster died before the drive phase, just now"),
        pytest.param([START], DEAD, True, State.ABANDONED, id="the cluster died before the drive phase, long ago"),
        pytest.param([START, entry(Phase.DRIVE, over=False)], DEAD, False, State.ABANDONED,
                     id="one process did it all, and was killed"),
        pytest.param([START, entry(Phase.DRIVE, OTHER, over=False)], DEAD, False, State.ACTIVE,
                     id="a scheduler may not have seen yet that its worker was killed"),
        pytest.param([START, entry(Phase.DRIVE, OTHER, over=False)], ALIVE, False, State.ACTIVE,
                     id="the same with the cluster up"),
        pytest.param([START, entry(Phase.DRIVE, OTHER, over=False)], ALIVE, True, State.ABANDONED,
                     id="no teardown came for long"),
        pytest.param([START, DRIVE], ALIVE, False, State.ACTIVE, id="the teardown is about to come"),
        pytest.param([START, DRIVE], ALIVE, True, State.ABANDONED, id="the teardown never came"),
        pytest.param([START, DRIVE, entry(Phase.COLLECT, OTHER, over=False)], ALIVE, True, State.ABANDONED,
                     id="killed while collecting"),
        pytest.param([START, DRIVE, entry(Phase.STOP, OTHER, over=False)], DEAD, True, State.ABANDONED,
                     id="killed while stopping"),
        pytest.param(STOPPED, DEAD, False, State.ENDED, id="stopped"),
        pytest.param(STOPPED, ALIVE, True, State.ABANDONED, id="stopped, and yet the supervisor lives"),
        pytest.param([*STOPPED, entry(Phase.JUDGE, over=False)], DEAD, False, State.ENDED, id="killed while judging"),
        pytest.param([*STOPPED, entry(Phase.JUDGE, identify(os.getpid()), over=False)], DEAD, True, State.ACTIVE,
                     id="it is being judged"),
        pytest.param([START, entry(Phase.DRIVE, identify(os.getpid()), over=False)], DEAD, True, State.ACTIVE,
                     id="the cluster died, its worker is about to notice"),
        pytest.param([entry(Phase.START, identify(os.getpid()))], DEAD, True, State.ACTIVE,
                     id="between two phases of one process"),
        pytest.param([*STOPPED[:3], entry(Phase.STOP, identify(os.getpid()))], DEAD, True, State.ENDED,
                     id="stopped by a process that goes on with something else"),
        pytest.param([entry(Phase.START, host="far-away", over=False)], DEAD, True, State.ACTIVE,
                     id="another machine's run"),
        pytest.param([entry(Phase.START, None, host="", over=False)], DEAD, True, State.ABANDONED,
                     id="a log from before workers were noted"),
    ],
)  # fmt: skip
def test_state_of_a_run(world: World, log: list[list[Any]], supervisor: bool, long_ago: bool, state: State) -> None:
    run = world.run(*log)
    if supervisor:
        world.process(run, name="supervisor")
    if long_ago:
        unattended_for_long(run)
    assert status_of(run).state is state


def test_the_time_without_a_worker_counts_from_when_it_was_seen_and_anew_after_every_phase(world: World) -> None:
    run = world.run(START, entry(Phase.DRIVE, OTHER, over=False))
    assert status_of(run).state is State.ACTIVE
    assert status_of(run, patience_s=0).state is State.ABANDONED
    unattended_for_long(run)
    assert status_of(run).state is State.ABANDONED
    went_through(run, START, entry(Phase.DRIVE, OTHER, over=False), entry(Phase.COLLECT, OTHER, over=False))
    assert status_of(run).state is State.ACTIVE, "another process came and was killed too"


def test_a_rehearsal_remembers_nothing(world: World) -> None:
    run = world.run(START, entry(Phase.DRIVE, OTHER, over=False))
    assert status_of(run, remember=False).state is State.ACTIVE
    assert not run.cluster.exists()


def test_nothing_of_a_live_run_is_touched(world: World) -> None:
    run = world.run(START)
    living = [world.process(run, name="supervisor"), world.process(run, name="broker-0"), world.process(run)]
    world.engine = FakeEngine().add(run.root, "container-a", "volume-a")
    reaped = reap([world.runs], patience_s=0)
    assert fates(reaped.items) == {("kept", "run", run.run_id)}
    assert all(process.alive() for process in living)
    assert world.engine.requests == []
    assert reaped.exit_code is ExitCode.HELD


def killed_in_drive(world: World) -> RunFolder:
    """Return a run whose `chaos run` was killed in the drive phase, its supervisor too."""
    run = world.run(START, entry(Phase.DRIVE, over=False))
    os.kill(world.process(run, name="supervisor").pid, signal.SIGKILL)
    world.processes[-1].wait()
    (run.cluster / "supervisor.sock").touch()
    (run.cluster / "relay").mkdir()
    (run.cluster / "relay" / "relay.sock").touch()
    return run


def test_everything_of_a_dead_run_goes_and_the_run_gets_a_verdict_that_is_no_pass(world: World) -> None:
    run = killed_in_drive(world)
    left = [world.process(run, name="broker-0", marked_as_ours=False), world.process(run, start_new_session=True)]
    stranger = world.process()
    world.engine = FakeEngine().add(run.root, "container-a", "network-a", "volume-a")
    world.engine.add(world.runs.parent / "elsewhere" / "run", "volume-b")

    closed = []

    @contextmanager
    def credentials(run: RunFolder) -> Iterator[None]:
        yield
        closed.append((run.run_id, run.verdict.exists()))

    reaped = reap([world.runs], progress=Silent(), credentials=credentials)

    assert closed == [(run.run_id, True)], "credentials are there until the verdict is saved"
    assert not any(process.alive() for process in left)
    assert stranger.alive()
    assert list(run.cluster.rglob("*.sock")) == []
    assert [made.name for made in world.engine.things] == ["volume-b"]
    assert fates(reaped.items) == {
        ("closed", "run", run.run_id),
        ("removed", "process", ""),
        ("removed", "socket", str(run.cluster / "supervisor.sock")),
        ("removed", "socket", str(run.cluster / "relay" / "relay.sock")),
        ("removed", "container", "container-a"),
        ("removed", "network", "network-a"),
        ("removed", "volume", "volume-a"),
    }
    assert reaped.exit_code is ExitCode.HELD
    result = RunResult.load(run.verdict)
    assert (result.verdicts.system, result.verdicts.environment) == (SystemVerdict.UNKNOWN, EnvironmentVerdict.CLEAN)
    assert result.verdicts.exit_code is ExitCode.INCONCLUSIVE
    assert any("a reaper collected what was left" in remark.text for remark in result.remarks)
    assert reap([world.runs], progress=Silent()).items == [], "the second time there is nothing to do"


@pytest.mark.skipif(bool(lacking(resources.Resource.CPU)), reason=lacking(resources.Resource.CPU))
def test_the_control_group_of_a_limiter_that_was_killed_goes(world: World) -> None:
    run = killed_in_drive(world)
    group = group_of(run.root, "broker-0", resources.Resource.CPU)
    group.limit(0.5)
    reaped = reap([world.runs], progress=Silent())
    assert ("removed", "control group", str(group.folder)) in fates(reaped.items)
    assert not group.folder.exists()


def test_judging_a_reaped_run_again_passes_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def collect(*_: object) -> None:
        """Find everything in order."""

    monkeypatch.setattr(closing, "collect", collect)
    run = world.run(START, DRIVE)
    unattended_for_long(run)
    reap([world.runs], progress=Silent())
    judged = assemble(Run.load(run), checked=Checked(checks=[PASSED]), suites=[SUITE])
    assert len(judged.remarks) == 1
    assert judged.verdicts.system is SystemVerdict.UNKNOWN


def test_a_rehearsal_changes_nothing(world: World) -> None:
    run = killed_in_drive(world)
    left = world.process(run)
    before = sorted(path.name for path in run.root.rglob("*"))
    reaped = reap([world.runs], dry_run=True)
    assert {(item.fate, item.kind) for item in reaped.items} == {("due", kind) for kind in ("run", "process", "socket")}
    assert left.alive()
    assert sorted(path.name for path in run.root.rglob("*")) == before


def test_what_is_found_of_a_run_that_was_stopped_is_its_residue_too(world: World) -> None:
    run = world.run(*STOPPED[:3], entry(Phase.STOP, OTHER, residue=["port 1 was open"]), entry(Phase.JUDGE))
    assemble(Run.load(run)).save(run.verdict)
    world.engine = FakeEngine().add(run.root, "volume-a")
    assert fates(reap([world.runs], progress=Silent()).items) == {("removed", "volume", "volume-a")}
    assert RunResult.load(run.verdict).residue == [
        "port 1 was open",
        "volume volume-a was left until `chaos reap` or the reaper's DAG removed it",
    ]
    assert reap([world.runs], progress=Silent()).items == []
    assert RunResult.load(run.verdict).verdicts.environment is EnvironmentVerdict.RESIDUE


def test_a_process_that_only_a_pid_file_names_is_found(world: World) -> None:
    left = world.process(world.run(*STOPPED), name="broker-0", marked_as_ours=False)
    assert fates(reap([world.runs], progress=Silent()).items) == {("removed", "process", "")}
    assert not left.alive()


def test_what_cannot_be_removed_is_reported_and_the_rest_goes(world: World) -> None:
    run = world.run(*STOPPED)
    world.engine = FakeEngine(stuck={"volume-a"}).add(run.root, "volume-a", "network-a")
    reaped = reap([world.runs], progress=Silent())
    assert fates(reaped.items) == {("failed", "volume", "volume-a"), ("removed", "network", "network-a")}
    assert "it is in use" in reaped.of(Fate.FAILED)[0].detail
    assert reaped.exit_code is ExitCode.ENVIRONMENT


@pytest.mark.parametrize("phase", [Phase.JUDGE, Phase.EXPECTATIONS])
def test_a_verdict_from_before_judging_was_cut_off_does_not_stand(world: World, phase: Phase) -> None:
    run = world.run(*STOPPED)
    before = assemble(Run.load(run)).model_copy(update={"checks": [PASSED]})
    before.save(run.verdict)
    went_through(run, *STOPPED, entry(phase, over=False))
    assert fates(reap([world.runs], progress=Silent()).items) == {("closed", "run", run.run_id)}
    result = RunResult.load(run.verdict)
    assert result.verdicts.system is SystemVerdict.UNKNOWN
    assert result.checks == [PASSED]
    assert reap([world.runs], progress=Silent()).items == []


def test_a_verdict_that_was_never_saved_is_saved(world: World) -> None:
    run = world.run(*STOPPED)
    assert fates(reap([world.runs], progress=Silent()).items) == {("closed", "run", run.run_id)}
    assert RunResult.load(run.verdict).verdicts.system is SystemVerdict.UNKNOWN


def test_a_run_that_was_never_started_is_not_lost(world: World) -> None:
    run = world.run()
    assert fates(reap([world.runs]).items) == {("kept", "run", run.run_id)}
    before_s = time.time() - LONG_AGO_S
    os.utime(run.plan, (before_s, before_s))
    assert fates(reap([world.runs]).items) == {("closed", "run", run.run_id)}
    assert RunResult.load(run.verdict).verdicts.exit_code is ExitCode.INCONCLUSIVE


def test_a_run_that_cannot_be_read_loses_its_processes_and_nothing_else(world: World) -> None:
    run = killed_in_drive(world)
    left = world.process(run)
    run.scenario.write_text("name: x\n")
    reaped = reap([world.runs], progress=Silent())
    assert ("kept", "run", run.run_id) in fates(reaped.items)
    assert "topics: missing" in reaped.of(Fate.KEPT)[0].detail
    assert not left.alive()


HALF = "short-20260101T000000-00000007"


@pytest.mark.parametrize(
    ("name", "files", "age_s", "fate"),
    [
        pytest.param(HALF, {}, LONG_AGO_S, "removed", id="an empty folder"),
        pytest.param(f"{HALF}-2", {"scenario.yaml": "x"}, LONG_AGO_S, "removed", id="a folder without a plan"),
        pytest.param(HALF, {"scenario.yaml": "x", "plan.json": '{"seed"'}, LONG_AGO_S, "removed", id="half a plan"),
        pytest.param(HALF, {"scenario.yaml": "x"}, 0.0, "kept", id="one that is being made"),
        pytest.param(HALF, {"notes.txt": "mine"}, LONG_AGO_S, "kept", id="one with a stranger's file"),
        pytest.param(HALF, {"cluster/cluster.json": "{}"}, LONG_AGO_S, "kept", id="one with a cluster in it"),
        pytest.param("mine", {}, LONG_AGO_S, None, id="a folder that is not named like a run"),
        pytest.param("mine-20260101", {"scenario.yaml": "x"}, LONG_AGO_S, None, id="a name that is nearly a run's"),
    ],
)
def test_half_made_folders(world: World, name: str, files: dict[str, str], age_s: float, fate: str | None) -> None:
    folder = world.runs / name
    folder.mkdir()
    for file, text in files.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text)
    then_s = time.time() - age_s
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (then_s, then_s))
    reaped = reap([world.runs])
    assert [item.fate for item in reaped.items] == ([fate] if fate else [])
    assert folder.exists() is (fate != "removed")
    if "stranger" in str(files):
        assert "notes.txt" in reaped.items[0].detail


def test_run_folders_are_named_as_the_reaper_knows_them(world: World) -> None:
    assert RUN_NAME.fullmatch(world.run().run_id)
    assert RUN_NAME.fullmatch(world.run().run_id), "a second one in the same second"


def test_a_run_whose_folder_was_removed_leaves_nothing_either(world: World) -> None:
    run = RunFolder(world.runs / "short-20260101T000000-00000007")
    left = world.process(run)
    world.engine = FakeEngine().add(run.root, "container-a")
    assert ("removed", "container", "container-a") in fates(reap([world.runs]).items)
    assert not left.alive()


def test_what_belongs_to_a_folder_that_is_out_of_sight_is_kept(world: World) -> None:
    world.engine = FakeEngine().add(Path("/no/such/runs/short"), "container-a")
    (item,) = [item for item in reap([world.runs], everywhere=True, dry_run=True).items if item.name == "container-a"]
    assert (item.fate, item.detail) == (Fate.KEPT, "/no/such/runs does not exist on this machine")


def test_what_another_machine_made_on_the_same_engine_is_kept(world: World) -> None:
    run = killed_in_drive(world)
    world.engine = FakeEngine().add(run.root, "volume-a", host="far-away")
    assert ("kept", "volume", "volume-a") in fates(reap([world.runs], progress=Silent()).items)
    assert world.engine.requests == []


@pytest.mark.parametrize(
    "mark",
    [
        pytest.param("", id="empty"),
        pytest.param("production", id="a name"),
        pytest.param("runs/short/cluster", id="a relative path"),
        pytest.param("/opt/production", id="a folder that is no cluster's"),
    ],
)
def test_a_process_with_a_variable_that_no_harness_writes_is_left_alone(
    mark: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAOS_CLUSTER", mark)
    stranger = world.process()
    while (stranger.pid, mark) not in environment_values("CHAOS_CLUSTER"):
        assert stranger.alive()
    reaped = reap([world.runs], everywhere=True, dry_run=True)
    assert not [item for item in reaped.items if item.name.startswith(f"{stranger.pid} ")]


@pytest.mark.parametrize("root", [pytest.param("", id="none"), pytest.param("runs/short", id="a relative path")])
def test_labels_that_name_no_folder_are_not_ours(root: str, world: World) -> None:
    world.engine = FakeEngine().add(Path(root), "container-a")
    reaped = reap([world.runs], everywhere=True, dry_run=True)
    (item,) = [item for item in reaped.items if item.name == "container-a"]
    assert (item.fate, item.detail) == (Fate.KEPT, "its labels name no run folder of this machine")


@pytest.mark.parametrize(
    ("another", "fate"),
    [pytest.param(True, Fate.KEPT, id="another user's"), pytest.param(False, Fate.FAILED, id="this user's")],
)
def test_what_may_not_be_looked_at_is_a_failure_only_of_this_users_runs(
    another: bool, fate: Fate, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = killed_in_drive(world)
    monkeypatch.setattr(
        "harness.reaper.reap.status_of", raising(PermissionError(errno.EACCES, "Permission denied", "supervisor.pid"))
    )
    monkeypatch.setattr(os, "geteuid", lambda: run.root.stat().st_uid + another)
    (item,) = reap([world.runs]).items
    assert (item.fate, item.name) == (fate, run.run_id)
    assert "Permission denied" in item.detail


def test_a_missing_engine_is_a_remark_and_no_error(world: World) -> None:
    reaped = reap([world.runs])
    assert reaped.remarks == [
        "containers, networks and volumes were not looked at: no Docker engine answers: it is a test"
    ]
    assert reaped.exit_code is ExitCode.HELD


def test_a_folder_that_is_not_there_is_a_remark(world: World) -> None:
    assert f"{world.runs / 'x'}: no such folder" in reap([world.runs, world.runs / "x"]).remarks
    assert not any(
        "no such folder" in remark for remark in reap([world.runs / "x"], everywhere=True, dry_run=True).remarks
    )


@pytest.mark.parametrize(
    ("locked", "reason"),
    [
        pytest.param(lambda run: run.root, "another reaper works on it", id="another reaper is at it"),
        pytest.param(
            lambda run: run.cluster / "supervisor.lock", "a supervisor is starting there", id="a supervisor starts"
        ),
        pytest.param(
            lambda run: run.cluster / "containers.lock",
            "another process copies its containers' data or removes them",
            id="a guard is at work",
        ),
    ],
)
def test_a_run_that_another_process_holds_is_kept(
    world: World, locked: Callable[[RunFolder], Path], reason: str
) -> None:
    run = killed_in_drive(world)
    left = world.process(run)
    path = locked(run)
    if not path.exists():
        path.touch()
    held = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert [(item.fate, item.detail) for item in reap([world.runs]).items] == [(Fate.KEPT, reason)]
        assert left.alive()
    finally:
        os.close(held)


def test_a_scratch_folder_goes_with_its_process_and_not_before(world: World, tmp_path: Path) -> None:
    own = new_scratch_folder()
    (own / "jvm.log").touch()
    assert reap([world.runs]).items == []
    dead = own.rename(own.with_name(own.name.replace(f"-{os.getpid()}-", "-1-")))
    young, old = Path(tempfile.mkdtemp(prefix="chaos-spark-")), Path(tempfile.mkdtemp(prefix="chaos-spark-"))
    two_days_ago_s = time.time() - 2 * 24 * 3600
    os.utime(old, (two_days_ago_s, two_days_ago_s))
    (tmp_path / "tmp" / "chaos-spark-1-1-link").symlink_to(tmp_path)
    reaped = reap([world.runs])
    assert fates(reaped.items) == {("removed", "folder", str(dead)), ("removed", "folder", str(old))}
    assert sorted(path.name for path in (tmp_path / "tmp").iterdir()) == sorted([young.name, "chaos-spark-1-1-link"])
    assert world.runs.exists()


@pytest.mark.parametrize("folder_is_left", [True, False], ids=["with its folder", "after its folder"])
def test_what_works_in_a_scratch_folder_goes_when_its_owner_is_gone(
    world: World, monkeypatch: pytest.MonkeyPatch, folder_is_left: bool
) -> None:
    own = new_scratch_folder()
    dead = own.with_name(own.name.replace(f"-{os.getpid()}-", "-1-"))
    if folder_is_left:
        dead.mkdir()

    def working_in(folder: Path) -> ProcessIdentity:
        monkeypatch.setenv(scratch.SCRATCH_VARIABLE, str(folder))
        process = world.process()
        while (process.pid, str(folder)) not in environment_values(scratch.SCRATCH_VARIABLE):
            assert process.alive()
        return process

    orphan = working_in(dead)
    others = [working_in(own), working_in(dead.with_name("elsewhere")), working_in(Path("/elsewhere") / dead.name)]
    for _ in range(2):
        due = reap([world.runs], dry_run=True).items
        assert {(item.kind, item.fate) for item in due} >= {(ItemKind.PROCESS, Fate.DUE)}
    reaped = fates(reap([world.runs]).items)
    assert reaped == {("removed", "process", "")} | ({("removed", "folder", str(dead))} if folder_is_left else set())
    assert not orphan.alive()
    assert all(other.alive() for other in others)
    assert reap([world.runs]).items == []


def test_pid_files_go_when_their_processes_were_killed(world: World) -> None:
    run = world.run()
    for name in ("supervisor", "broker-1"):
        world.process(run, name=name)
    went_through(run, *STOPPED)
    elsewhere = run.cluster / "pids" / "copied.pid"
    elsewhere.write_text("1 1\n1\n")
    for process in world.processes:
        process.kill()
        process.wait()
    reap([world.runs], progress=Silent())
    assert [path.name for path in (run.cluster / "pids").iterdir()] == ["copied.pid"], "it is of another folder"


def test_a_scratch_folder_in_memory_goes_too(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr(scratch, "MEMORY", memory)
    monkeypatch.delenv("TMPDIR")
    with scratch.scratch_folder(small=True) as folder:
        assert folder.parent == memory
    assert not folder.exists()
    left = memory / "chaos-spark-1-1-x"
    left.mkdir()
    assert fates(reap([world.runs]).items) == {("removed", "folder", str(left))}


def test_the_command_prints_a_table_and_says_by_its_exit_code_whether_all_is_gone(world: World) -> None:
    run = world.run(*STOPPED)
    world.engine = FakeEngine(stuck={"volume-a"}).add(run.root, "volume-a")
    done = CliRunner().invoke(app, ["reap", "--runs", str(world.runs)])
    assert done.exit_code == ExitCode.ENVIRONMENT
    assert "volume-a" in done.output
    assert "failed" in done.output
    world.engine.stuck.clear()
    done = CliRunner().invoke(app, ["reap", "--runs", str(world.runs), "--json"])
    assert done.exit_code == ExitCode.HELD
    assert [item["fate"] for item in json.loads(done.stdout)["items"]] == ["removed"]
    assert "nothing is left" in CliRunner().invoke(app, ["reap", "--runs", str(world.runs)]).output

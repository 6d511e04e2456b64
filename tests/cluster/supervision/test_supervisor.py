# ruff: noqa: ASYNC220, ASYNC240 - starting processes and reading their small files is what is tested
import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.clocks import FOLDER as CLOCKS
from harness.cluster.clocks import SECOND_NS, Clock, read_clocks, setting_of
from harness.cluster.supervision.client import SupervisorGone, call, launch
from harness.cluster.supervision.supervisor import EVENTS_NAME
from harness.errors import ClusterError
from harness.store.history import read_jsonl
from harness.system.pids import ProcessIdentity, identify, read_pid_file, state_of
from harness.system.process_state import ProcessState
from harness.system.waiting import until

pytestmark = pytest.mark.cluster

PAUSED_S = 1.0
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)",
]


GUARD = [
    sys.executable,
    "-c",
    "import signal, time; print('waits', flush=True); signal.sigwait({signal.SIGTERM}); time.sleep(0.3); print('done')",
]
"""Has something to do after it was told to end, and asks for SIGTERM late."""


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    """A cluster folder far deeper than a socket address has room for, with a supervisor in it."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    await launch(deep, run_id="test", owner_pid=None)
    yield deep
    supervisor = supervisor_of(deep)
    supervisor.send(signal.SIGKILL)
    await gone(supervisor)


async def spawn(folder: Path, name: str, argv: list[str] = SLEEP, **options: Any) -> ProcessIdentity:
    await call(folder, "spawn", name=name, argv=argv, log=f"{name}.log", **options)
    identity = read_pid_file(folder / "pids" / f"{name}.pid")
    assert identity is not None
    return identity


def supervisor_of(folder: Path) -> ProcessIdentity:
    supervisor = read_pid_file(folder / "pids" / "supervisor.pid")
    assert supervisor is not None
    return supervisor


async def gone(*processes: ProcessIdentity) -> None:
    async def alive() -> list[int]:
        return [process.pid for process in processes if process.alive()]

    await until(alive, lambda still: not still, what="end of processes", timeout_s=120, every_s=0.01)


async def text_of(file: Path, expected: str) -> None:
    async def text() -> str:
        return file.read_text(encoding="utf-8")

    await until(text, lambda seen: expected in seen, what=expected, timeout_s=120, every_s=0.01)


async def process_status(folder: Path, name: str) -> dict[str, Any]:
    status: dict[str, Any] = (await call(folder, "status"))["processes"][name]
    return status


async def test_a_child_belongs_to_the_supervisors_group_and_its_pid_file_names_it(folder: Path) -> None:
    child = await spawn(folder, "a")
    supervisor, now = supervisor_of(folder), state_of(child.pid)
    assert now is not None
    assert now.group == supervisor.pid
    assert os.getsid(child.pid) == supervisor.pid != os.getsid(0)
    assert child == identify(child.pid)


async def test_output_and_exit_status_are_kept_and_the_pid_file_goes(folder: Path) -> None:
    program = [sys.executable, "-c", "import os; print(os.environ['WORD']); exit(7)"]
    await spawn(folder, "a", program, env={"WORD": "hi"})
    assert await call(folder, "wait", name="a", timeout_s=120) == {"exited": True, "status": 7}
    assert (folder / "a.log").read_text(encoding="utf-8") == "hi\n"
    assert not (folder / "pids" / "a.pid").exists()
    status = await process_status(folder, "a")
    assert (status["state"], status["status"], status["starts"]) == (ProcessState.STOPPED, 7, 1)
    assert [(line["event"], line["name"]) for line in read_jsonl(folder / "supervisor.jsonl")] == [
        ("spawned", "a"),
        ("exited", "a"),
    ]


async def test_a_name_may_be_started_again_after_its_end_and_starts_are_counted(folder: Path) -> None:
    await spawn(folder, "a")
    with pytest.raises(ClusterError, match="a runs already"):
        await spawn(folder, "a")
    await call(folder, "signal", name="a", signal="KILL")
    assert (await call(folder, "wait", name="a", timeout_s=120))["status"] == -signal.SIGKILL
    await spawn(folder, "a")
    assert (await process_status(folder, "a"))["starts"] == 2


async def test_a_paused_child_stands_still_and_is_resumed_by_the_supervisor_itself(folder: Path) -> None:
    child = await spawn(folder, "a")
    await call(folder, "pause", name="a", at_most_s=300)
    now = state_of(child.pid)
    assert now is not None
    assert now.state == "T"
    assert (await process_status(folder, "a"))["state"] == "paused"
    await call(folder, "pause", name="a", at_most_s=0.2)

    async def state() -> str:
        return str((await process_status(folder, "a"))["state"])

    await until(state, lambda seen: seen == "running", what="resumed", timeout_s=120, every_s=0.02)


async def test_resuming_twice_is_harmless_and_a_second_pause_has_its_own_limit(folder: Path) -> None:
    await spawn(folder, "a")
    await call(folder, "pause", name="a", at_most_s=PAUSED_S)
    await call(folder, "pause", name="a", at_most_s=60)
    assert (await call(folder, "wait", name="a", timeout_s=PAUSED_S + 0.1))["exited"] is False
    assert (await process_status(folder, "a"))["state"] == "paused"
    for _ in range(2):
        await call(folder, "resume", name="a")
    assert (await process_status(folder, "a"))["state"] == "running"


@pytest.mark.parametrize(
    ("name", "rate", "at_most_s", "message"),
    [
        pytest.param("a", 0, 1, "at_most_s and rate must be positive, not 1 and 0", id="a clock that stands still"),
        pytest.param("a", 1, 0, "at_most_s and rate must be positive, not 0 and 1", id="no time at all"),
        pytest.param("b", 1, 1, "no process b; there are: a", id="an unknown process"),
    ],
)
async def test_a_clock_that_cannot_be_is_refused(
    folder: Path, name: str, rate: float, at_most_s: float, message: str
) -> None:
    await spawn(folder, "a")
    with pytest.raises(ClusterError, match=message):
        await call(folder, "set_clock", name=name, step_s=1, rate=rate, at_most_s=at_most_s)


async def test_the_clock_of_a_process_that_is_no_child_counts_from_where_it_is_said_to_have_begun(folder: Path) -> None:
    def shown() -> str:
        return (folder / CLOCKS / "b").read_text()

    (folder / CLOCKS).mkdir()
    began_ns = time.monotonic_ns() - 100 * SECOND_NS
    await call(folder, "set_clock", name="b", step_s=5, rate=2, at_most_s=60, started_ns=began_ns)
    since_ns = read_clocks(folder / EVENTS_NAME, "b")[-1].since_ns
    assert shown() == setting_of(Clock(since_ns=since_ns, step_s=5, rate=2), began_ns)
    anew_ns = time.monotonic_ns()
    await call(folder, "clock_started", name="b", started_ns=anew_ns)
    assert shown() == setting_of(Clock(since_ns=since_ns, step_s=5, rate=2), anew_ns)
    await call(folder, "reset_clock", name="b")
    assert shown() == setting_of(Clock(since_ns=0), anew_ns)
    await call(folder, "clock_started", name="c", started_ns=anew_ns)
    await call(folder, "reset_clock", name="c")
    assert not (folder / CLOCKS / "c").exists(), "it was not set"


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        pytest.param("dance", {}, "unknown command 'dance'", id="an unknown command"),
        pytest.param("spawn", {"name": "a"}, "missing", id="a missing argument"),
        pytest.param("signal", {"name": "b", "signal": "TERM"}, "no process b", id="an unknown process"),
        pytest.param("spawn", {"name": "../a", "argv": SLEEP, "log": "l"}, "cannot name", id="a name that is a path"),
        pytest.param("spawn", {"name": "a", "argv": ["/no/such"], "log": "l"}, "No such file", id="a missing program"),
        pytest.param("ports", {"count": 1_000_000}, "may have 500", id="more ports than any cluster needs"),
    ],
)
async def test_a_command_that_cannot_be_carried_out_is_refused(
    folder: Path, command: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ClusterError, match=message):
        await call(folder, command, **arguments)
    assert (await call(folder, "status"))["processes"] == {}


async def test_what_is_no_json_is_refused_and_the_supervisor_goes_on(folder: Path, monkeypatch: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("json.dumps", lambda _: "{")
        with pytest.raises(ClusterError, match="not a JSON object"):
            await call(folder, "status")
    assert (await call(folder, "status"))["processes"] == {}


async def test_a_second_supervisor_is_refused(folder: Path) -> None:
    with pytest.raises(ClusterError, match="another supervisor runs in this folder"):
        await launch(folder, run_id="other", owner_pid=None)
    assert (await call(folder, "status"))["processes"] == {}


async def test_shutdown_ends_the_supervisor_and_children_that_obey_ignore_or_cannot_get_sigterm(folder: Path) -> None:
    children = [await spawn(folder, "polite"), await spawn(folder, "stubborn", STUBBORN), await spawn(folder, "paused")]
    await text_of(folder / "stubborn.log", "ready")
    await call(folder, "pause", name="paused", at_most_s=60)
    supervisor = supervisor_of(folder)

    assert await call(folder, "shutdown", timeout_s=3) == {"killed": ["stubborn"]}

    assert not any(child.alive() for child in children)
    await gone(supervisor)
    assert sorted(path.name for path in (folder / "pids").iterdir()) == ["supervisor.pid"]
    assert not (folder / "supervisor.sock").exists()
    assert (folder / "supervisor.log").read_text(encoding="utf-8") == ""
    with pytest.raises(SupervisorGone):
        await call(folder, "status")


async def test_a_later_stage_is_ended_after_an_earlier_one(folder: Path) -> None:
    await spawn(folder, "last", stage=1)
    await spawn(folder, "first", STUBBORN, stage=0)
    await text_of(folder / "first.log", "ready")
    await call(folder, "shutdown", timeout_s=0.1)
    exits = [line["name"] for line in read_jsonl(folder / "supervisor.jsonl") if line["event"] == "exited"]
    assert exits == ["first", "last"]


async def test_sigterm_is_a_shutdown(folder: Path) -> None:
    child = await spawn(folder, "a")
    supervisor = supervisor_of(folder)
    supervisor.send(signal.SIGTERM)
    await gone(child, supervisor)


async def test_a_killed_supervisor_takes_its_children_with_it(folder: Path) -> None:
    running, paused = await spawn(folder, "running", STUBBORN), await spawn(folder, "paused")
    await call(folder, "pause", name="paused", at_most_s=60)
    supervisor_of(folder).send(signal.SIGKILL)
    await gone(running, paused)


async def test_a_new_supervisor_can_follow_a_killed_one(folder: Path) -> None:
    supervisor = supervisor_of(folder)
    supervisor.send(signal.SIGKILL)
    await gone(supervisor)
    await launch(folder, run_id="again", owner_pid=None)
    assert (await call(folder, "status"))["processes"] == {}


async def test_everything_ends_with_the_owner(tmp_path: Path) -> None:
    owner = subprocess.Popen(SLEEP)
    try:
        await launch(tmp_path, run_id="owned", owner_pid=owner.pid)
        child = await spawn(tmp_path, "a")
        supervisor = supervisor_of(tmp_path)
        assert child.alive()
    finally:
        owner.kill()
        owner.wait()
    await gone(child, supervisor)


def put_elsewhere(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def link_to(folder: Path) -> None:
    put_elsewhere(folder)
    folder.symlink_to(folder.with_name("elsewhere"))


def replace_by_copy(folder: Path) -> None:
    copy = folder.with_name("copy")  # made first: once the folder is moved, the supervisor removes what is in it
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.sock"))
    put_elsewhere(folder)
    copy.rename(folder)


@pytest.mark.parametrize(
    "disturb",
    [
        pytest.param(shutil.rmtree, id="it is removed"),
        pytest.param(put_elsewhere, id="it is moved"),
        pytest.param(link_to, id="it is moved, and a link leads to it"),
        pytest.param(replace_by_copy, id="it is moved, and another one lies there"),
    ],
)
async def test_a_cluster_ends_when_its_folder_is_not_where_it_was(
    disturb: Callable[[Path], None], tmp_path: Path
) -> None:
    folder = tmp_path / "cluster"
    await launch(folder, run_id="test", owner_pid=None)
    supervisor, child = supervisor_of(folder), await spawn(folder, "a")
    disturb(folder)
    await gone(child, supervisor)


async def test_a_disowned_cluster_outlives_its_owner(tmp_path: Path) -> None:
    owner = subprocess.Popen(SLEEP)
    try:
        await launch(tmp_path, run_id="owned", owner_pid=owner.pid)
        child = await spawn(tmp_path, "a")
        await call(tmp_path, "disown")
    finally:
        owner.kill()
        owner.wait()
    assert not (await call(tmp_path, "wait", name="a", timeout_s=0.5))["exited"]
    assert child.alive()
    await call(tmp_path, "shutdown")


async def test_a_disowned_cluster_ends_when_its_time_is_up(folder: Path) -> None:
    child = await spawn(folder, "a")
    supervisor = supervisor_of(folder)
    await call(folder, "disown", expires_after_s=0.1)
    await gone(child, supervisor)


async def test_an_owner_that_is_gone_already_ends_everything_at_once(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", ""])
    owner.wait()
    await launch(tmp_path, run_id="owned", owner_pid=owner.pid)
    await gone(supervisor_of(tmp_path))


async def test_strangers_do_not_get_the_ports_that_a_supervisor_holds(folder: Path) -> None:
    chosen = await asyncio.gather(*(call(folder, "ports", count=50) for _ in range(4)))
    ports = [port for answer in chosen for port in answer["ports"]]
    assert len(set(ports)) == 200


@pytest.mark.parametrize(
    "await_the_child", [pytest.param(True, id="which waits"), pytest.param(False, id="which has hardly begun")]
)
async def test_a_child_with_a_grace_gets_sigterm_when_the_supervisor_is_killed_and_cleans_up(
    folder: Path, await_the_child: bool
) -> None:
    guard = await spawn(folder, "guard", GUARD, grace_s=5.0)
    plain = await spawn(folder, "plain")
    if await_the_child:
        await text_of(folder / "guard.log", "waits")
    supervisor_of(folder).send(signal.SIGKILL)
    await gone(plain, guard)
    assert (folder / "guard.log").read_text(encoding="utf-8") == "waits\ndone\n"


async def test_a_child_with_a_grace_has_it_at_the_shutdown_too(folder: Path) -> None:
    await spawn(folder, "guard", GUARD, grace_s=120, stage=1)
    assert await call(folder, "shutdown", timeout_s=0.05) == {"killed": []}
    assert (folder / "guard.log").read_text(encoding="utf-8") == "waits\ndone\n"


async def test_a_child_whose_grace_is_over_is_killed(folder: Path) -> None:
    await spawn(folder, "guard", SLEEP, grace_s=0.05)  # it never asks for SIGTERM
    assert await call(folder, "shutdown", timeout_s=0.05) == {"killed": ["guard"]}

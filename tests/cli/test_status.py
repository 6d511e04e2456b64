"""`chaos status` and `chaos abort`: how far a run is, and which runs can be ended."""

import json
import os
import signal
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.cli.options import refuse_running
from harness.store.folder import RunFolder
from harness.store.running import State, progressed
from harness.system.pids import ProcessIdentity, identify

HERE = socket.gethostname()
GONE = ProcessIdentity(pid=os.getpid(), started="never")


def own() -> ProcessIdentity:
    """Return this process."""
    found = identify(os.getpid())
    assert found is not None
    return found


def wrote(folder: RunFolder, phases: Iterable[tuple[str, bool]], process: ProcessIdentity, host: str = HERE) -> None:
    """Write the record of phases; the second value says whether one is over."""
    lines = []
    for phase, over in phases:
        lines.append(
            {"phase": phase, "event": "started", "host": host, "pid": process.pid, "pid_started": process.started}
        )
        lines += [{"phase": phase, "event": "ended", "error": "", "duration_s": 1.0}] if over else []
    folder.phases.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


ALL = [(phase, True) for phase in ("start", "drive", "collect", "stop", "judge", "expectations", "report")]


@pytest.mark.parametrize(
    ("phases", "process", "host", "state", "text"),
    [
        pytest.param([], None, HERE, State.NOT_STARTED, "not started", id="before the first phase"),
        pytest.param([("drive", False)], None, HERE, State.RUNNING, "running, in drive", id="in a phase"),
        pytest.param([("drive", True)], None, HERE, State.RUNNING, "running, after drive", id="between two phases"),
        pytest.param([("drive", False)], GONE, HERE, State.ABANDONED, "abandoned, in drive", id="its process is gone"),
        pytest.param(ALL[:4], GONE, HERE, State.OVER, "over", id="interrupted twice: nothing more is judged"),
        pytest.param(ALL, None, HERE, State.OVER, "over", id="after the last phase"),
        pytest.param(
            [("drive", False)], GONE, "else", State.ELSEWHERE, "elsewhere on else, in drive", id="on another machine"
        ),
    ],
)
def test_how_far_a_run_is(
    folder: RunFolder,
    phases: list[tuple[str, bool]],
    process: ProcessIdentity | None,
    host: str,
    state: State,
    text: str,
) -> None:
    if phases:
        wrote(folder, phases, process or own(), host)
    else:
        folder.phases.unlink(missing_ok=True)
    how = progressed(folder)
    assert (how.state, how.text) == (state, text)


def test_status_shows_runs_that_are_not_over(chaos: Any, folder: RunFolder, tmp_path: Path) -> None:
    folder.plan.touch()
    wrote(folder, [("drive", False)], GONE)
    code, out, _ = chaos("status", "--runs", str(folder.root.parent), "--json")
    (row,) = json.loads(out)["runs"]
    assert (code, row["run"], row["state"]) == (0, str(folder.root), "abandoned")
    wrote(folder, ALL, GONE)
    assert chaos("status", "--runs", str(folder.root.parent))[1] == f"every run in {folder.root.parent} is over\n"
    assert "over · " in chaos("status", str(folder.root))[1]


def test_status_of_no_runs(chaos: Any, tmp_path: Path) -> None:
    assert chaos("status", "--runs", str(tmp_path))[:2] == (0, f"there is no run in {tmp_path}\n")
    status, out, err = chaos("status", "--runs", str(tmp_path / "nowhere"))
    assert (status, out) == (2, "")
    assert f"{tmp_path / 'nowhere'} does not exist" in err


@pytest.mark.parametrize(
    ("phases", "host", "message"),
    [
        pytest.param(ALL, HERE, "cannot be aborted: over", id="one that is over"),
        pytest.param(
            [("drive", False)], HERE, "abandoned, in drive; `chaos reap` closes it", id="one that nothing runs"
        ),
        pytest.param([("drive", False)], "else", "cannot be aborted: elsewhere on else", id="one on another machine"),
    ],
)
def test_what_cannot_be_aborted_is_refused(
    chaos: Any, folder: RunFolder, phases: list[tuple[str, bool]], host: str, message: str
) -> None:
    folder.plan.touch()
    wrote(folder, phases, GONE, host)
    code, _, err = chaos("abort", str(folder.root))
    assert code == 2
    assert message in err


@pytest.mark.parametrize("command", ["why", "explain", "report", "rejudge"])
@pytest.mark.parametrize(
    ("phases", "how"),
    [
        pytest.param([("drive", False)], "running, in drive", id="under load"),
        pytest.param([("drive", True)], "running, after drive", id="before its evidence is collected"),
        pytest.param([*ALL[:4], ("judge", False)], "running, in judge", id="it is judged"),
    ],
)
def test_what_is_not_over_is_neither_judged_nor_told(
    chaos: Any, folder: RunFolder, phases: list[tuple[str, bool]], how: str, command: str
) -> None:
    folder.plan.touch()
    wrote(folder, phases, own())
    log = folder.phases.read_bytes()
    code, _, err = chaos(command, str(folder.root))
    assert (code, f"is not over: {how}" in err) == (2, True), err
    assert folder.phases.read_bytes() == log, "`chaos status` and the reaper go by its last line"


def test_what_is_stopped_may_be_judged_though_its_process_is_alive(folder: RunFolder) -> None:
    wrote(folder, ALL[:4], own())
    refuse_running(folder)


def test_a_run_of_airflow_is_ended_there(chaos: Any, folder: RunFolder) -> None:
    folder.plan.touch()
    folder.origin.write_text("{}", encoding="utf-8")
    wrote(folder, [("drive", False)], own())
    assert "mark that task as failed there" in chaos("abort", str(folder.root))[2]


def test_abort_interrupts_the_process_and_waits_for_its_end(
    chaos: Any, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.plan.touch()
    wrote(folder, [("drive", False)], own())
    sent = []
    monkeypatch.setattr(ProcessIdentity, "send", lambda _, number: sent.append(number))
    monkeypatch.setattr(ProcessIdentity, "alive", lambda _: not sent)
    code, out, _ = chaos("abort", str(folder.root))
    assert (sent, "heals, collects and judges" in out) == ([signal.SIGINT], True)
    assert code == json.loads(folder.verdict.read_text(encoding="utf-8"))["exit_code"]

"""What goes on, as it is seen: by a process of its own, on a real pseudo-terminal and through a pipe."""

import json
import os
import pty
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness.scenario.file import load_scenario
from harness.scenario.plan import make_plan
from harness.store.folder import RunFolder

DRIVEN = """
import sys, threading
from pathlib import Path
from rich.console import Console
from harness.cli import terminal
from harness.progress import step
from harness.report.live.watch import Watch
from harness.store.folder import RunFolder

class Counted(Watch):
    looks, enough = 0, threading.Event()
    def look(self):
        situation = super().look()
        self.looks += 1
        if self.looks == 4:  # what three before have seen is shown by now
            self.enough.set()
        return situation

terminal.REFRESH_HZ, terminal.EVERY_S = 50, 0.01
watch = Counted(RunFolder(Path(sys.argv[1])))
progress = terminal.TerminalProgress(Console(width=150), watch)
progress.phase_started("drive")
progress.message("kill broker 2: confirmed")
assert watch.enough.wait(120)
with Path(sys.argv[1], "phases.jsonl").open("a") as phases:
    print('{"phase": "drive", "event": "ended"}', file=phases)
progress.phase_finished("drive", 1.0, "")
progress.phase_started("judge")
with step(progress, "38 checks judge 12,345 rows of facts"):
    pass
progress.phase_finished("judge", 1.0, "")
"""
SWEPT = """
from rich.console import Console
from harness.cli.simulate import SweepBars
with SweepBars(Console(width=150)) as bars:
    for done in range(0, 201, 20):
        bars.done("simulated", done, 200)
    for done in range(0, 201, 20):
        bars.done("judged", done, 200, done // 50)
"""


def on_a_terminal(program: str, *arguments: str) -> str:
    """Return what a program draws on a pseudo-terminal."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=its, stderr=its, env={**os.environ, "TERM": "xterm"}
    )
    os.close(its)
    drawn = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        drawn += part
    os.close(ours)
    text = drawn.decode()
    assert process.wait(120) == 0, text
    return text


def through_a_pipe(program: str, *arguments: str) -> str:
    """Return what a program prints without a terminal."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.fixture
def driven(tmp_path: Path) -> str:
    """The folder of a run that is under load, with a fault in force and a broker gone."""
    folder = RunFolder(tmp_path)
    folder.plan.write_text(make_plan(load_scenario("smoke"), 7).to_json(), encoding="utf-8")
    start = {"phase": "drive", "event": "started", "utc": "2026-01-01T00:00:00+00:00", "host": socket.gethostname()}
    folder.phases.write_text(json.dumps(start) + "\n", encoding="utf-8")
    fault = {"time_ns": 1, "injection": 0, "fault": "kill", "step": "injected", "targets": ["2"]}
    folder.journal.write_text(json.dumps(fault) + "\n", encoding="utf-8")
    znodes = [{"type": "set", "path": "/brokers/ids/1"}, {"type": "delete", "path": "/brokers/ids/2"}]
    folder.zookeeper.write_text("".join(json.dumps(each) + "\n" for each in znodes), encoding="utf-8")
    return str(folder.root)


def test_a_terminal_shows_live_what_goes_on_and_takes_it_away_again(driven: str) -> None:
    drawn = on_a_terminal(DRIVEN, driven)
    live, _, after = drawn.partition("drive done in 1.0 s")
    for row in (r"drive: load and faults, \d+ s so far", r"in force +kill 2", r"brokers +1 of 2 registered: 1"):
        assert len(re.findall(row, live)) >= 2, f"{row} is drawn again and again"
        assert not re.search(row, after)
    assert "\x1b[2K" in live, "lines are drawn over"
    assert re.search(r"s {4}kill broker 2: confirmed", live), "what happened stays, as a line"
    assert "judge: checks" in after


def test_through_a_pipe_there_are_lines_and_nothing_is_drawn_over(driven: str) -> None:
    lines = through_a_pipe(DRIVEN, driven).splitlines()
    assert not any("\x1b" in line or "so far" in line for line in lines)
    in_force = [line for line in lines if "in force: kill 2" in line]
    assert len(in_force) >= 3
    assert "brokers: 1 of 2 registered: 1" in in_force[0]
    assert lines[-1].endswith("judge done in 1.0 s")


def test_a_sweep_shows_how_many_are_done_how_quick_and_what_was_found() -> None:
    drawn = on_a_terminal(SWEPT)
    assert re.search(r"judged.*200/200.*/s, 4 violated", drawn)
    assert re.search(r"simulated.*200/200.*/s", drawn)


def test_through_a_pipe_a_sweep_has_a_line_for_the_beginning_and_the_end_of_what_is_soon_done() -> None:
    lines = [line.split() for line in through_a_pipe(SWEPT).splitlines()]
    assert [line[:4] for line in lines] == [
        [what, done, "of", "200"] for what in ("simulated", "judged") for done in ("0", "200")
    ]
    assert lines[-1][-2:] == ["4", "violated"]

"""The keeper: whatever becomes of the launcher or of one process, nothing of the group is left."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from chaos_airflow.standalone.keeper import Keeper
from harness.system.pids import LINUX

MARK = "KEEPER_TEST"
TIMEOUT_S = 120.0

LAUNCHER = """
import os, sys, time
from pathlib import Path
from chaos_airflow.standalone.keeper import Keeper
commands = {"one": ["sleep", "60"], "two": ["sh", "-c", "setsid sleep 61 & wait"]}
keeper = Keeper(commands, log=Path(sys.argv[1]), environment=dict(os.environ))
time.sleep(60)
"""
STUBBORN = """
from chaos_airflow.standalone import keeper
keeper.GRACE_S = 0.3
print(keeper.keep({"stubborn": ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]}))
"""


@pytest.fixture
def marked() -> Iterator[dict[str, str]]:
    """An environment that marks whatever is started with it; what is left of that in the end is killed."""
    environment = os.environ | {MARK: uuid.uuid4().hex}
    yield environment
    for process in left(environment):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def left(environment: dict[str, str]) -> list[psutil.Process]:
    """Return what runs with this mark."""
    processes = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == environment[MARK] and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
        except psutil.Error:
            continue  # it has ended meanwhile
    return processes


def commands(environment: dict[str, str]) -> set[str]:
    running = set()
    for process in left(environment):
        with suppress(psutil.NoSuchProcess):  # a sleep of a tenth of a second ends between two looks
            running.add(" ".join(process.cmdline()))
    return running


def wait(look: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not look():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.mark.cluster
@pytest.mark.skipif(not LINUX, reason="only Linux lets a process adopt the orphans below it")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "terminated"])
def test_nothing_outlives_the_launcher(marked: dict[str, str], tmp_path: Path, number: int) -> None:
    launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER, str(tmp_path / "log")], env=marked)
    wait(lambda: commands(marked) >= {"sleep 60", "sleep 61"}, "both run, one of them in a session of its own")
    launcher.send_signal(number)
    launcher.wait(TIMEOUT_S)
    wait(lambda: not left(marked), "nothing is left")


@pytest.mark.cluster
def test_when_one_ends_the_others_are_ended_and_the_log_says_which(marked: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    keeper = Keeper({"long": ["sleep", "60"], "short": ["sh", "-c", "exit 3"]}, log=log, environment=marked)
    wait(lambda: not keeper.running, "the keeper ends by itself")
    keeper.stop()
    assert left(marked) == []
    assert "short ended by itself: 3" in log.read_text()


@pytest.mark.cluster
def test_what_does_not_listen_is_killed(marked: dict[str, str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=marked, text=True
    ) as keeping:
        wait(lambda: any(line.startswith("sh -c trap") for line in commands(marked)), "it runs")
        keeping.send_signal(signal.SIGINT)
        output, _ = keeping.communicate(timeout=TIMEOUT_S)
    assert output == "asked to stop: SIGINT\n"
    assert left(marked) == []

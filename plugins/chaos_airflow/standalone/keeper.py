"""Runs a group of processes, all or none, and ends everything that they start.

One process of its own stands between the launcher and what it starts. It ends everything below it when one of its
processes ends, when it gets a signal, and when the launcher is gone, even by SIGKILL: then its standard input, a pipe
that only the launcher holds, comes to an end. As a subreaper (Linux) it adopts what its processes leave behind, so a
task in a session of its own does not get away either.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 8.0
"""After SIGTERM, for tasks to heal faults and to stop what they run."""
GONE_TIMEOUT_S = 5.0
KILL_ROUNDS = 5
"""Each kills what was adopted in the round before."""

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
AWAITED = STOP_SIGNALS | {signal.SIGCHLD}

Commands = dict[str, list[str]]


class Keeper:
    """A started group, seen from the launcher."""

    def __init__(self, commands: Commands, *, log: Path, environment: dict[str, str]) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603  arguments of our own
                [sys.executable, "-m", __name__, json.dumps(commands)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the launcher alone
            )

    @property
    def pid(self) -> int:
        """The process that ends everything when it gets SIGTERM."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether all of them still run."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End all of them and everything they started; returns when they are gone."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(GRACE_S + (KILL_ROUNDS + 1) * GONE_TIMEOUT_S)


def keep(commands: Commands) -> str:
    """Run the commands until one ends, a signal comes or standard input ends; return why, with nothing left behind."""
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    _adopt_orphans()
    threading.Thread(target=_watch_launcher, daemon=True).start()
    try:
        names = {_start(command): name for name, command in commands.items()}
        while (number := signal.sigwait(AWAITED)) not in STOP_SIGNALS:
            if ended := {pid: status for pid, status in _ended().items() if pid in names}:
                return ", ".join(f"{names[pid]} ended by itself: {status}" for pid, status in ended.items())
        return f"asked to stop: {signal.Signals(number).name}"
    finally:
        end_descendants()


def _start(command: list[str]) -> int:
    """Start a command without this process's blocked signals; only `_ended` reads how it ends, as of every child."""
    no_input = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    return os.posix_spawnp(command[0], command, os.environ, file_actions=[no_input], setsigmask=())


def _adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends; elsewhere than on Linux nothing happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _watch_launcher() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _ended() -> dict[int, int]:
    """Return the exit code of every child that has ended since, adopted ones included."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = os.waitstatus_to_exitcode(status)


def end_descendants() -> None:
    """Ask everything below this process to end, then kill it, and what was adopted meanwhile."""
    me = psutil.Process()
    _send_to_all(me.children(recursive=True), signal.SIGTERM, timeout_s=GRACE_S)
    for _ in range(KILL_ROUNDS):
        if not (children := me.children(recursive=True)):
            return
        _send_to_all(children, signal.SIGKILL, timeout_s=GONE_TIMEOUT_S)


def _send_to_all(processes: list[psutil.Process], number: int, *, timeout_s: float) -> None:
    for process in processes:
        try:
            process.send_signal(number)
        except psutil.NoSuchProcess:
            continue  # it was quicker
    psutil.wait_procs(processes, timeout=timeout_s)


if __name__ == "__main__":
    sys.stderr.write(keep(json.loads(sys.argv[1])) + "\n")

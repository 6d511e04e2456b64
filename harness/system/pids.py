"""Which process is meant by a pid file: a pid together with the instant the kernel started it, so never a stranger.

Standard library only: the supervisor imports this module and must start fast.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LINUX: bool = sys.platform.startswith("linux")
GONE_STATES = frozenset("ZX")
"""Zombie and dead: no memory, no ports, only an entry that its parent has not read yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """One process as the kernel shows it now."""

    state: str
    """One letter: R, S, D, T (stopped), Z (zombie) …"""
    group: int
    started: str
    """When it was started, in whatever unit the kernel shows; only ever compared for equality."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """One process for ever: pids are used again, a pid with its start time is not."""

    pid: int
    started: str

    def alive(self) -> bool:
        """Return whether exactly this process still runs (a zombie does not)."""
        now = state_of(self.pid)
        return now is not None and now.started == self.started and now.state not in GONE_STATES

    def send(self, signal_number: int) -> None:
        """Send a signal unless the process is gone."""
        if self.alive():
            try:
                os.kill(self.pid, signal_number)
            except ProcessLookupError:
                return


def state_of(pid: int) -> ProcessState | None:
    """Return the process that has this pid now, or None."""
    if not LINUX:
        return _state_from_ps(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(")") + 2 :].split()  # the name before it may hold spaces and parentheses
    return ProcessState(state=fields[0], group=int(fields[2]), started=fields[19])


def _state_from_ps(pid: int) -> ProcessState | None:
    command = ["ps", "-o", "state=,pgid=,lstart=", "-p", str(pid)]
    line = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    if not line:
        return None
    state, group, started = line.split(None, 2)
    return ProcessState(state=state[0], group=int(group), started=started)


def identify(pid: int) -> ProcessIdentity | None:
    """Return the identity of the process that has this pid now, or None."""
    now = state_of(pid)
    return None if now is None else ProcessIdentity(pid=pid, started=now.started)


def write_pid_file(path: Path, identity: ProcessIdentity) -> None:
    """Write `pid start-time`, and the inode of the folder that it lies in; visible as a whole or not at all."""
    temporary = path.with_suffix(".tmp")
    text = f"{identity.pid} {identity.started}\n{path.parent.stat().st_ino}\n"
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def read_pid_file(path: Path) -> ProcessIdentity | None:
    """Return the identity that a pid file names; None when there is no such file or it is not one of ours.

    A copy of a folder holds none: its files name the processes of the folder that it was made from.
    """
    try:
        line, _, folder = path.read_text(encoding="utf-8").strip().partition("\n")
        if folder not in ("", str(path.parent.stat().st_ino)):  # older ones do not say where they lie
            return None
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    pid, _, started = line.partition(" ")
    return ProcessIdentity(pid=int(pid), started=started) if pid.isdecimal() and started else None


def group_members(leader: ProcessIdentity) -> Iterator[int]:
    """Yield the pids of all live processes in the group that `leader` founded, also when it is gone itself.

    A group id is not used again while the group has members, so only a new leader with that pid makes it a stranger's.
    """
    now = state_of(leader.pid)
    if (now is not None and now.started != leader.started) or not _group_exists(leader.pid):
        return
    for pid in _all_pids():
        process = state_of(pid)
        if process is not None and process.group == leader.pid and process.state not in GONE_STATES:
            yield pid


def _group_exists(group: int) -> bool:
    """Return whether a process group has members; it takes a look at none of them."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it has, and they are somebody else's
        return True
    return True


def with_environment(name: str, value: str) -> Iterator[int]:
    """Yield the pids of all live processes of this user that were started with this variable; none where not Linux."""
    return (pid for pid, found in marked(name) if found == value)


def marked(name: str) -> Iterator[tuple[int, str]]:
    """Yield the pid of every live process of this user that was started with this variable, and what it holds."""
    prefix = os.fsencode(f"{name}=")
    for pid in _all_pids() if LINUX else ():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:  # ended meanwhile, or somebody else's
            continue
        for entry in environment.split(b"\0"):
            if entry.startswith(prefix):
                yield pid, os.fsdecode(entry.removeprefix(prefix))


def _all_pids() -> list[int]:
    if LINUX:
        return sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208
    lines = subprocess.run(["ps", "-ax", "-o", "pid="], capture_output=True, text=True, check=True).stdout  # noqa: S607
    return sorted(int(line) for line in lines.split())

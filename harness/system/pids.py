"""Which process does a pid file name? A pid with the process's start time, so never another process of the same pid.

Standard library only: the supervisor imports this module and must start fast.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.system.whole_file import replace_text

LINUX: bool = sys.platform.startswith("linux")
GONE_STATES = frozenset("ZX")
"""Zombie and dead: no memory, no ports, only an exit status that the parent has not read yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """The kernel's present state of one process."""

    state: str
    """One letter: R, S, D, T (stopped), Z (zombie) …"""
    group: int
    started: str
    """Start time, in the kernel's own unit; compared for equality only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """One process for ever: a pid is used again, a pid with a start time is not."""

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
    fields = stat[stat.rindex(")") + 2 :].split()  # the name before may contain spaces and parentheses
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
    replace_text(path, f"{identity.pid} {identity.started}\n{path.parent.stat().st_ino}\n")


def read_pid_file(path: Path) -> ProcessIdentity | None:
    """Return the identity in a pid file; None when there is no such file or it is not one of ours.

    In a copy of a folder pid files are ignored: they name the processes of the original folder.
    """
    try:
        line, _, folder = path.read_text(encoding="utf-8").strip().partition("\n")
        if folder not in ("", str(path.parent.stat().st_ino)):  # older files have no inode
            return None
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    pid, _, started = line.partition(" ")
    return ProcessIdentity(pid=int(pid), started=started) if pid.isdecimal() and started else None


def remove_stale_pid_files(folder: Path) -> None:
    """Remove the pid files of a folder whose processes are gone; a killed process cannot remove its own."""
    for path in folder.glob("*.pid"):
        if (identity := read_pid_file(path)) and not identity.alive():
            path.unlink(missing_ok=True)


def group_members(leader: ProcessIdentity) -> Iterator[int]:
    """Yield the pids of all live processes in the process group of `leader`, also when the leader has ended.

    The kernel does not use a group id again while the group has members, so the group is another one only when another
    process has the leader's pid.
    """
    now = state_of(leader.pid)
    if (now is not None and now.started != leader.started) or not _group_exists(leader.pid):
        return
    for pid in _all_pids():
        process = state_of(pid)
        if process is not None and process.group == leader.pid and process.state not in GONE_STATES:
            yield pid


def _group_exists(group: int) -> bool:
    """Return whether a process group has members, without reading every process."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it has members, of another user
        return True
    return True


def pids_with_environment(name: str, value: str) -> Iterator[int]:
    """Yield the pids of this user's live processes that were started with `name=value`; none where not Linux."""
    return (pid for pid, own_value in environment_values(name) if own_value == value)


def environment_values(name: str) -> Iterator[tuple[int, str]]:
    """Yield pid and value for each live process of this user that was started with this environment variable."""
    prefix = os.fsencode(f"{name}=")
    for pid in _all_pids() if LINUX else ():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:  # ended meanwhile, or of another user
            continue
        for entry in environment.split(b"\0"):
            if entry.startswith(prefix):
                yield pid, os.fsdecode(entry.removeprefix(prefix))


def is_neighbour(pid: int) -> bool:
    """Return whether a process is this user's and has its pid in this process's namespace: none in a container has."""
    process = Path(f"/proc/{pid}")
    try:
        namespaces = {(each / "ns" / "pid").readlink() for each in (process, Path("/proc/self"))}
        return process.stat().st_uid == os.geteuid() and len(namespaces) == 1
    except OSError:  # ended meanwhile, or of another user
        return False


def _all_pids() -> list[int]:
    if LINUX:
        return sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208
    lines = subprocess.run(["ps", "-ax", "-o", "pid="], capture_output=True, text=True, check=True).stdout  # noqa: S607
    return sorted(int(line) for line in lines.split())

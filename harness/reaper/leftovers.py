"""Finds what is left of a cluster, and removes it.

Nothing is identified by a name that others might give it. A process is ours when a pid file has its pid and start
time, when it is in our supervisor's process group, or when our variable is in its environment; a container, network or
volume when it has our labels; a control group, which takes none, when a digest of the run folder's path is in its name.
A variable or label with a value that no harness writes is another program's.
"""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cluster.limits.control_groups import Group, groups_of
from harness.cluster.supervision.supervision import CLUSTER_VARIABLE, sockets_in
from harness.cluster.supervision.supervisor import PIDS_NAME, SUPERVISOR_PID_NAME
from harness.errors import ClusterError
from harness.reaper.result import ItemKind
from harness.store.folder import RunFolder
from harness.system.pids import ProcessIdentity, environment_values, group_members, identify, read_pid_file

if TYPE_CHECKING:
    from harness.cluster.containers.engine import Engine, Resource

GONE_TIMEOUT_S = 5.0
POLL_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """One leftover of a cluster."""

    kind: ItemKind
    name: str
    what: "ProcessIdentity | Resource | Group | Path"


@dataclass(slots=True, kw_only=True)
class Leftovers:
    """Marked processes and labelled resources by run folder, as listed once at the start of a reaper's round."""

    engine: "Engine | None" = None
    processes: dict[Path, list[ProcessIdentity]] = field(default_factory=dict)
    resources: dict[Path, list["Resource"]] = field(default_factory=dict)
    foreign: list["Resource"] = field(default_factory=list)
    """Created by a harness on another machine that may use the same engine, or without a run folder's path."""
    remarks: list[str] = field(default_factory=list)

    @property
    def roots(self) -> set[Path]:
        """The run folders that a variable or label names."""
        return {*self.processes, *self.resources}

    def of(self, root: Path) -> list[Leftover]:
        """Return the leftovers of one cluster: processes, containers, networks and volumes, control groups, sockets."""
        cluster = RunFolder(root).cluster
        left = [process_left(process) for process in _processes(cluster, self.processes.get(root, []))]
        if self.engine is not None and root in self.resources:  # listed again: a live run may have ended since
            left += [Leftover(kind=ItemKind(it.kind), name=it.name, what=it) for it in self.engine.resources(root)]
        left += [Leftover(kind=ItemKind.GROUP, name=str(it.folder), what=it) for it in groups_of(root)]
        return left + [Leftover(kind=ItemKind.SOCKET, name=str(it), what=it) for it in sockets_in(cluster)]

    def remove(self, leftover: Leftover) -> None:
        """Remove one thing and return when it is gone; it may be gone already.

        Raises:
            ClusterError: it still exists.
            OSError: the file, or the control group, cannot be removed.
        """
        if isinstance(leftover.what, ProcessIdentity):
            _kill(leftover.what)
        elif isinstance(leftover.what, Path):
            leftover.what.unlink(missing_ok=True)
        elif isinstance(leftover.what, Group):
            leftover.what.remove()
        else:
            assert self.engine is not None, "the resource was listed by it"
            self.engine.remove(leftover.what)


@contextmanager
def find_leftovers() -> Iterator[Leftovers]:
    """List the processes of this host and the resources on the engine; a remark says when there is none."""
    leftovers = Leftovers()
    for pid, cluster in environment_values(CLUSTER_VARIABLE):
        process, root = identify(pid), Path(cluster).parent
        ours = root.is_absolute() and cluster == str(RunFolder(root).cluster)
        if ours and process is not None and pid != os.getpid():
            leftovers.processes.setdefault(root, []).append(process)
    engine = _engine(leftovers.remarks)
    if engine is None:
        yield leftovers
        return
    with engine:
        leftovers.engine = engine
        try:
            for resource in engine.resources():
                if resource.host == socket.gethostname() and resource.root.is_absolute():
                    leftovers.resources.setdefault(resource.root, []).append(resource)
                else:
                    leftovers.foreign.append(resource)
        except ClusterError as error:
            leftovers.remarks.append(f"containers, networks and volumes were not looked at: {error}")
        yield leftovers


def _engine(remarks: list[str]) -> "Engine | None":
    from harness.cluster.containers.engine import Engine, EngineUnavailable

    try:
        return Engine.connect()
    except EngineUnavailable as error:
        remarks.append(f"containers, networks and volumes were not looked at: {error}")
        return None


def _processes(cluster: Path, marked: list[ProcessIdentity]) -> list[ProcessIdentity]:
    """Return the cluster's live processes: with a pid file, in the supervisor's group, or with our variable set."""
    named = [identity for path in sorted((cluster / PIDS_NAME).glob("*.pid")) if (identity := read_pid_file(path))]
    supervisor = read_pid_file(cluster / PIDS_NAME / SUPERVISOR_PID_NAME)
    group = map(identify, group_members(supervisor)) if supervisor is not None else ()
    every = {*named, *marked, *(identity for identity in group if identity is not None)}
    return sorted((process for process in every if process.alive()), key=lambda process: process.pid)


def process_left(process: ProcessIdentity) -> Leftover:
    """Return a process as a leftover."""
    return Leftover(kind=ItemKind.PROCESS, name=f"{process.pid} ({_program(process.pid)})", what=process)


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "a process"


def _kill(process: ProcessIdentity) -> None:
    process.send(signal.SIGKILL)
    deadline = time.monotonic() + GONE_TIMEOUT_S
    while process.alive():
        if time.monotonic() > deadline:
            raise ClusterError(f"still there {GONE_TIMEOUT_S:g} s after SIGKILL")
        time.sleep(POLL_S)

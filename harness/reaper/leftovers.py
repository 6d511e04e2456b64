"""What of one cluster is still there, found by pid file, mark and label alone, and how it is removed.

None of it is looked for by name: a process counts as ours when a pid file names it together with its start time, when
it is in the group that our supervisor founded, or when it was started with our variable in its environment; a
container, network or volume when it carries our labels. A mark or label that no harness writes is somebody else's.
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

from harness.cluster.supervision import CLUSTER_VARIABLE
from harness.cluster.supervisor import PIDS_NAME, SOCKET_NAME, SUPERVISOR_PID_NAME
from harness.errors import ClusterError
from harness.reaper.result import Kind
from harness.store.folder import RunFolder
from harness.system.pids import ProcessIdentity, group_members, identify, marked, read_pid_file

if TYPE_CHECKING:
    from harness.cluster.containers.engine import Engine, Made

GONE_TIMEOUT_S = 5.0
POLL_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """One thing of a cluster that is still there."""

    kind: Kind
    name: str
    what: "ProcessIdentity | Made | Path"


@dataclass(slots=True, kw_only=True)
class Finds:
    """All that the marks of processes and the labels on the engine point to, by run folder; looked for once a round."""

    engine: "Engine | None" = None
    processes: dict[Path, list[ProcessIdentity]] = field(default_factory=dict)
    made: dict[Path, list["Made"]] = field(default_factory=dict)
    elsewhere: list["Made"] = field(default_factory=list)
    """Not made by a harness on this machine: others may use the same engine."""
    remarks: list[str] = field(default_factory=list)

    @property
    def roots(self) -> set[Path]:
        """The run folders that something points to."""
        return {*self.processes, *self.made}

    def of(self, root: Path) -> list[Leftover]:
        """Return what is left of one cluster: processes, then containers before what they use, then the socket."""
        cluster = RunFolder(root).cluster
        left = [
            Leftover(kind=Kind.PROCESS, name=f"{process.pid} ({_program(process.pid)})", what=process)
            for process in _processes(cluster, self.processes.get(root, []))
        ]
        if self.engine is not None and root in self.made:  # asked again: a live run may have ended since
            left += [Leftover(kind=Kind(made.kind), name=made.name, what=made) for made in self.engine.made(root)]
        if (cluster / SOCKET_NAME).exists():
            left.append(Leftover(kind=Kind.SOCKET, name=str(cluster / SOCKET_NAME), what=cluster / SOCKET_NAME))
        return left

    def remove(self, leftover: Leftover) -> None:
        """Remove one thing, and return when it is gone, whoever was faster.

        Raises:
            ClusterError: it is still there.
            OSError: it is a file and stays.
        """
        if isinstance(leftover.what, ProcessIdentity):
            _kill(leftover.what)
        elif isinstance(leftover.what, Path):
            leftover.what.unlink(missing_ok=True)
        else:
            assert self.engine is not None, "what was made was listed by it"
            self.engine.remove(leftover.what)


@contextmanager
def looking() -> Iterator[Finds]:
    """Look at the processes of this host and at the engine; without one, say so and go on."""
    finds = Finds()
    for pid, cluster in marked(CLUSTER_VARIABLE):
        process, root = identify(pid), Path(cluster).parent
        ours = root.is_absolute() and cluster == str(RunFolder(root).cluster)
        if ours and process is not None and pid != os.getpid():
            finds.processes.setdefault(root, []).append(process)
    engine = _engine(finds.remarks)
    if engine is None:
        yield finds
        return
    with engine:
        finds.engine = engine
        try:
            for made in engine.made():
                if made.host == socket.gethostname() and made.root.is_absolute():
                    finds.made.setdefault(made.root, []).append(made)
                else:
                    finds.elsewhere.append(made)
        except ClusterError as error:
            finds.remarks.append(f"containers, networks and volumes were not looked at: {error}")
        yield finds


def _engine(remarks: list[str]) -> "Engine | None":
    from harness.cluster.containers.engine import Engine, EngineUnavailable

    try:
        return Engine.connect()
    except EngineUnavailable as error:
        remarks.append(f"containers, networks and volumes were not looked at: {error}")
        return None


def _processes(cluster: Path, found: list[ProcessIdentity]) -> list[ProcessIdentity]:
    """Return the cluster's live processes: named by a pid file, in the supervisor's group, or marked."""
    named = [identity for path in sorted((cluster / PIDS_NAME).glob("*.pid")) if (identity := read_pid_file(path))]
    supervisor = read_pid_file(cluster / PIDS_NAME / SUPERVISOR_PID_NAME)
    group = map(identify, group_members(supervisor)) if supervisor is not None else ()
    every = {*named, *found, *(identity for identity in group if identity is not None)}
    return sorted((process for process in every if process.alive()), key=lambda process: process.pid)


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

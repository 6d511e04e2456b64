"""How does a driver use its cluster's supervisor: launch it, have it run processes, and end it with all of them?"""
# ruff: noqa: ASYNC240 - small local files only; they take microseconds

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cluster.disks.small_disks import seen_through
from harness.cluster.supervision import client
from harness.cluster.supervision.client import SOURCE_ROOT, SupervisorGone
from harness.cluster.supervision.supervisor import PIDS_NAME, SUPERVISOR_PID_NAME
from harness.errors import ClusterError, DeadlineError
from harness.system.pids import (
    ProcessIdentity,
    group_members,
    pids_with_environment,
    read_pid_file,
    remove_stale_pid_files,
)
from harness.system.process_state import ProcessState
from harness.system.waiting import until

CLUSTER_VARIABLE = "CHAOS_CLUSTER"
"""Environment variable of a cluster's processes, with the cluster's folder: it marks those that left the group."""

BROKER_STAGE = 0
"""Brokers and clients are ended together, and before ZooKeeper, which they need for a clean shutdown."""
ZOOKEEPER_STAGE = 1
LAST_STAGE = 2

GRACE_S = 1.0
GONE_TIMEOUT_S = 5.0


def sockets_in(folder: Path) -> list[Path]:
    """Return the sockets in a cluster's folder over which its supervisor and that one's helpers take commands."""
    return sorted([*folder.glob("*.sock"), *folder.glob("*/*.sock")])


class Supervision:
    """The supervisor of the cluster in a folder; usable from any process."""

    def __init__(self, folder: Path, run_id: str) -> None:
        self._folder = folder
        self._run_id = run_id

    async def launch(self, owner_pid: int | None, behind: Sequence[str] = ()) -> None:
        """Start the supervisor; raises ClusterError when one runs already, or it does not get ready.

        `behind` is a command that starts the command that follows it.
        """
        await client.launch(self._folder, run_id=self._run_id, owner_pid=owner_pid, behind=behind)

    async def call(self, command: str, **arguments: Any) -> Any:
        """Send one command and return its answer; raises ClusterError."""
        return await client.call(self._folder, command, **arguments)

    async def spawn(
        self,
        name: str,
        argv: list[str],
        log: Path,
        stage: int,
        grace_s: float | None = None,
        besides: Mapping[str, str] | None = None,
    ) -> None:
        """Start a child process that can import this harness; `Supervisor.spawn` says what `stage` and `grace_s` do.

        `besides` goes into its environment too.
        """
        path = os.pathsep.join(filter(None, [str(SOURCE_ROOT), os.environ.get("PYTHONPATH")]))
        env = {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1", CLUSTER_VARIABLE: str(self._folder.resolve())}
        env |= besides or {}
        await self.call("spawn", name=name, argv=argv, log=str(log.resolve()), env=env, stage=stage, grace_s=grace_s)

    async def children(self) -> dict[str, Any]:
        """Return the state of every child by name, as `Supervisor.status` has it; empty when the supervisor is gone."""
        try:
            children: dict[str, Any] = (await self.call("status"))["processes"]
        except SupervisorGone:
            return {}
        return children

    async def signal_if_running(self, name: str, signal_name: str) -> None:
        """Send a signal to a child; nothing happens when it has ended or never was."""
        if await self._runs(name):
            try:
                await self.call("signal", name=name, signal=signal_name)
            except ClusterError:
                if await self._runs(name):  # else it has ended in between
                    raise

    async def _runs(self, name: str) -> bool:
        return bool((await self.children()).get(name, {"state": ProcessState.STOPPED})["state"] != ProcessState.STOPPED)

    async def ended(self, name: str, timeout_s: float) -> dict[str, Any]:
        """Wait for a child to end; return whether it `exited` within that time, and its exit `status`."""
        answer: dict[str, Any] = await self.call(
            "wait", name=name, timeout_s=timeout_s, answer_within_s=timeout_s + GONE_TIMEOUT_S
        )
        return answer

    async def end_child(self, name: str, within_s: float = GONE_TIMEOUT_S) -> bool:
        """Have a child end (SIGTERM), if there is one; return whether it did so in order, or never was.

        Raises:
            DeadlineError: it goes on.
        """
        await self.signal_if_running(name, "TERM")
        if name not in await self.children():
            return True
        answer = await self.ended(name, within_s)
        if not answer["exited"]:
            raise DeadlineError(f"{name} did not end within {within_s:g} s")
        return bool(answer["status"] == 0)

    async def reserve_ports(self, count: int) -> list[int]:
        """Return loopback ports that are reserved for as long as the supervisor lives."""
        ports: list[int] = (await self.call("ports", count=count))["ports"]
        return ports

    async def end(self) -> None:
        """End the supervisor and all that it started, whatever state they are in; idempotent.

        Raises:
            DeadlineError: a process survives SIGKILL.
        """
        supervisor = self._identity()
        try:
            await self.call("shutdown", timeout_s=GRACE_S, answer_within_s=2 * GRACE_S + GONE_TIMEOUT_S)
        except ClusterError:
            pass  # gone, or not able to answer: its processes are ended below
        else:
            await self._all_gone(supervisor, GRACE_S)
        for pid in self._survivors(supervisor):
            os.kill(pid, signal.SIGKILL)
        await self._all_gone(supervisor, GONE_TIMEOUT_S)
        for socket in sockets_in(self._folder):  # a killed supervisor leaves its sockets
            socket.unlink(missing_ok=True)
        remove_stale_pid_files(self._folder / PIDS_NAME)

    def residue(self) -> list[str]:
        """Return a sentence for each process that is left, and for each socket of one."""
        left = [f"process {pid} of run {self._run_id} still runs" for pid in self._survivors(self._identity())]
        return left + [f"the socket {socket} still exists" for socket in sockets_in(self._folder)]

    def folder_seen_by_it(self, folder: Path) -> Path:
        """Return where a folder is seen as the supervisor sees it; raises ClusterError if that is gone."""
        identity = self._identity()
        if identity is None or not identity.alive():
            raise SupervisorGone("the supervisor is gone, and what only its children saw")
        return seen_through(identity.pid, folder)

    def _identity(self) -> ProcessIdentity | None:
        return read_pid_file(self._folder / PIDS_NAME / SUPERVISOR_PID_NAME)

    def _survivors(self, supervisor: ProcessIdentity | None) -> list[int]:
        """Return the pids of live processes with a pid file, in the supervisor's group, or with our variable set."""
        named = [read_pid_file(path) for path in sorted((self._folder / PIDS_NAME).glob("*.pid"))]
        pids = {identity.pid for identity in named if identity is not None and identity.alive()}
        if supervisor is not None:
            pids.update(group_members(supervisor))
        pids.update(pids_with_environment(CLUSTER_VARIABLE, str(self._folder.resolve())))
        return sorted(pids)

    async def _all_gone(self, supervisor: ProcessIdentity | None, timeout_s: float) -> None:
        async def survivors() -> list[int]:
            return self._survivors(supervisor)

        await until(survivors, lambda pids: not pids, what="end of every process", timeout_s=timeout_s, every_s=0.01)

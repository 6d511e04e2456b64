"""The `process` driver: brokers and ZooKeeper as child processes of a supervisor, on loopback; Python and Java only."""
# ruff: noqa: ASYNC240 - small local files only; they take microseconds

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from harness.broker.rules import rules_with
from harness.cluster import broker_properties, embedded_zookeeper, readiness, supervisor_client
from harness.cluster.driver import BrokerStatus, ClusterRequest, ClusterStatus
from harness.cluster.layout import ZOOKEEPER, BrokerPorts, ClusterLayout, broker_process, client_process
from harness.cluster.pids import ProcessIdentity, group_members, read_pid_file, with_environment
from harness.cluster.ports import LOOPBACK, listens
from harness.cluster.supervisor import PIDS_NAME, SOCKET_NAME, SUPERVISOR_PID_NAME
from harness.cluster.supervisor_client import SOURCE_ROOT, SupervisorGone
from harness.errors import ClusterError, DeadlineError, ScenarioError
from harness.store import RunFolder
from harness.waiting import until

T = TypeVar("T")

CLUSTER_VARIABLE = "CHAOS_CLUSTER"
"""Environment variable of all that is started, with the cluster's folder: it marks even what has left the group."""
FIRST_BROKER_ID = 0
BROKER_STAGE = 0
"""Brokers and clients are ended together, and before ZooKeeper, which they need to say goodbye."""
ZOOKEEPER_STAGE = 1

START_TIMEOUT_S = 60.0
"""For a machine under heavy load; two idle cores take three seconds."""
GRACE_S = 1.0
GONE_TIMEOUT_S = 5.0
WATCH_TIMEOUT_S = 3600.0
LOG_TAIL_LINES = 20


class ProcessDriver:
    """Implements ClusterDriver, CanKill, CanPause and CanRunClients; attaches from any process by the run folder."""

    name = "process"

    def __init__(self, root: Path, run_id: str) -> None:
        self._root = root
        self._run_id = run_id
        self._folder = RunFolder(root).cluster

    async def start(self, request: ClusterRequest) -> ClusterStatus:
        """Start everything; return when brokers are registered, a controller is elected and metadata served.

        Raises:
            ScenarioError: the request is wrong; nothing was started.
            ClusterError: something did not come up, and everything was stopped again.
        """
        broker_properties.check(request.brokers, request.properties)
        try:
            rules_with(list(request.planted_bugs))
        except ValueError as error:
            raise ScenarioError(str(error)) from error
        # Until it is up, a cluster that is to stay belongs to whoever starts it: if that one is killed, it goes too.
        owner = request.owner_pid if request.owner_pid is not None else os.getpid()
        await supervisor_client.launch(self._folder, run_id=self._run_id, owner_pid=owner)
        try:
            layout = await self._lay_out(request)
            await self._spawn_zookeeper(layout)
            for broker_id in layout.brokers:
                broker_properties.write(layout, broker_id, request.properties)
                await self._spawn_broker(layout, broker_id)
            names = [ZOOKEEPER, *map(broker_process, layout.brokers)]
            await self._while_alive(names, readiness.cluster_ready(layout, timeout_s=START_TIMEOUT_S))
            if request.owner_pid is None:
                await self._call("disown", expires_after_s=request.expires_after_s)
        except BaseException:
            await self.stop()
            raise
        return await self.status()

    async def status(self) -> ClusterStatus:
        """Return what runs now; raises ClusterError when no cluster was ever started here."""
        layout = ClusterLayout.load(self._root)
        processes = await self._processes()
        zookeeper = processes.get(ZOOKEEPER, {})
        return ClusterStatus(
            driver=self.name,
            root=self._root,
            bootstrap_servers=layout.bootstrap_servers,
            zookeeper_connect=layout.zookeeper_connect,
            zookeeper_data_dir=embedded_zookeeper.data_dir(layout.zookeeper),
            zookeeper_pid=zookeeper.get("pid") if zookeeper.get("status") is None else None,
            brokers=tuple(
                _broker_status(layout, broker_id, processes.get(broker_process(broker_id)))
                for broker_id in layout.brokers
            ),
        )

    async def start_broker(self, broker_id: int) -> None:
        """Start a stopped broker with its data; return when it is registered again.

        A registration that an earlier process of this broker left behind is waited out first: as long as it is there,
        the new process could not register.
        """
        layout = self._layout_with(broker_id)
        name = broker_process(broker_id)
        if (await self._processes()).get(name, {"status": 0})["status"] is None:
            raise ClusterError(f"broker {broker_id} runs already")
        await readiness.broker_unregistered(layout, broker_id, timeout_s=START_TIMEOUT_S)
        await self._spawn_broker(layout, broker_id)
        await self._while_alive([name], readiness.broker_ready(layout, broker_id, timeout_s=START_TIMEOUT_S))

    async def stop_broker(self, broker_id: int, *, timeout_s: float) -> None:
        """Ask a broker to shut down cleanly (SIGTERM) and wait for its end."""
        self._layout_with(broker_id)
        await self._call("signal", name=broker_process(broker_id), signal="TERM")
        await self._gone(broker_process(broker_id), timeout_s, "SIGTERM")

    async def kill_broker(self, broker_id: int) -> None:
        """End the process at once (SIGKILL) and return when it is gone."""
        self._layout_with(broker_id)
        await self._call("signal", name=broker_process(broker_id), signal="KILL")
        await self._gone(broker_process(broker_id), GONE_TIMEOUT_S, "SIGKILL")

    async def pause_broker(self, broker_id: int, *, at_most_s: float) -> None:
        """Freeze a broker (SIGSTOP); the supervisor resumes it after `at_most_s`, whatever becomes of the caller."""
        self._layout_with(broker_id)
        await self._call("pause", name=broker_process(broker_id), at_most_s=at_most_s)

    async def resume_broker(self, broker_id: int) -> None:
        """Thaw a broker; nothing happens when it runs."""
        self._layout_with(broker_id)
        await self._call("resume", name=broker_process(broker_id))

    async def start_client(self, process: str, argv: list[str], log: Path) -> None:
        """Start a client process under the name `process`."""
        await self._spawn(client_process(process), argv, log, BROKER_STAGE)

    async def stop_client(self, process: str, *, timeout_s: float) -> int | None:
        """Send SIGTERM, wait, and return the exit status; SIGKILL after the time-out (then None).

        A client that has ended by itself keeps the exit status that it had.
        """
        name = client_process(process)
        if (await self._call("wait", name=name, timeout_s=0))["exited"]:
            return int((await self._call("wait", name=name, timeout_s=0))["status"])
        await self._call("signal", name=name, signal="TERM")
        answer = await self._call("wait", name=name, timeout_s=timeout_s, answer_within_s=timeout_s + GONE_TIMEOUT_S)
        if answer["exited"]:
            return int(answer["status"])
        await self._call("signal", name=name, signal="KILL")
        await self._gone(name, GONE_TIMEOUT_S, "SIGKILL")
        return None

    async def stop(self) -> None:
        """Stop everything, whatever state it is in; idempotent.

        Raises:
            DeadlineError: something survives SIGKILL.
        """
        supervisor = read_pid_file(self._folder / PIDS_NAME / SUPERVISOR_PID_NAME)
        try:
            await self._call("shutdown", timeout_s=GRACE_S, answer_within_s=2 * GRACE_S + GONE_TIMEOUT_S)
        except ClusterError:
            # Gone, or not able to answer: whatever it left is ended below, by the pid files.
            pass
        else:
            await self._all_gone(supervisor, GRACE_S)
        for pid in _survivors(self._folder, supervisor):
            os.kill(pid, signal.SIGKILL)
        await self._all_gone(supervisor, GONE_TIMEOUT_S)
        (self._folder / SOCKET_NAME).unlink(missing_ok=True)  # a killed supervisor could not

    async def residue(self) -> list[str]:
        """Return, in a sentence each, what of this run is left: its processes, its ports, its supervisor's socket.

        The folder itself is no residue: it is the evidence of the run.
        """
        supervisor = read_pid_file(self._folder / PIDS_NAME / SUPERVISOR_PID_NAME)
        left = [f"process {pid} of run {self._run_id} still runs" for pid in _survivors(self._folder, supervisor)]
        try:
            ports = ClusterLayout.load(self._root).all_ports
        except ClusterError:
            ports = []
        if left:  # otherwise whoever listens there now is a stranger, who was free to take the port
            left += [f"port {port} of run {self._run_id} still accepts connections" for port in ports if listens(port)]
        if (self._folder / SOCKET_NAME).exists():
            left.append(f"the supervisor's socket {self._folder / SOCKET_NAME} still exists")
        return left

    async def _lay_out(self, request: ClusterRequest) -> ClusterLayout:
        ports = (await self._call("ports", count=1 + 2 * request.brokers))["ports"]
        ids = range(FIRST_BROKER_ID, FIRST_BROKER_ID + request.brokers)
        layout = ClusterLayout(
            root=self._root,
            run_id=self._run_id,
            zookeeper_port=ports[0],
            brokers={
                broker_id: BrokerPorts(client=client, peer=peer)
                for broker_id, client, peer in zip(ids, ports[1::2], ports[2::2], strict=True)
            },
            planted_bugs=request.planted_bugs,
        )
        layout.save()
        return layout

    async def _spawn_zookeeper(self, layout: ClusterLayout) -> None:
        layout.zookeeper.mkdir(parents=True, exist_ok=True)
        argv = embedded_zookeeper.prepare(layout.zookeeper, layout.zookeeper_port)
        _port_free(layout.zookeeper_port, "ZooKeeper")
        await self._spawn(ZOOKEEPER, argv, layout.zookeeper_log, ZOOKEEPER_STAGE)

    async def _spawn_broker(self, layout: ClusterLayout, broker_id: int) -> None:
        for port in (layout.brokers[broker_id].client, layout.brokers[broker_id].peer):
            _port_free(port, f"broker {broker_id}")
        state_log = layout.state_change_log(broker_id).resolve()
        state_log.parent.mkdir(parents=True, exist_ok=True)
        argv = [sys.executable, "-m", "harness.broker"]
        argv += ["--config", str(layout.config_file(broker_id).resolve()), "--state-log", str(state_log)]
        for bug in layout.planted_bugs:
            argv += ["--planted-bug", bug]
        await self._spawn(broker_process(broker_id), argv, layout.human_log(broker_id), BROKER_STAGE)

    async def _spawn(self, name: str, argv: list[str], log: Path, stage: int) -> None:
        path = os.pathsep.join(filter(None, [str(SOURCE_ROOT), os.environ.get("PYTHONPATH")]))
        env = {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1", CLUSTER_VARIABLE: str(self._folder.resolve())}
        await self._call("spawn", name=name, argv=argv, log=str(log.resolve()), env=env, stage=stage)

    async def _call(self, command: str, **arguments: Any) -> Any:
        return await supervisor_client.call(self._folder, command, **arguments)

    async def _processes(self) -> dict[str, Any]:
        try:
            processes: dict[str, Any] = (await self._call("status"))["processes"]
        except SupervisorGone:
            return {}
        return processes

    def _layout_with(self, broker_id: int) -> ClusterLayout:
        layout = ClusterLayout.load(self._root)
        if broker_id not in layout.brokers:
            raise ClusterError(f"no broker {broker_id}; there are: {', '.join(map(str, layout.brokers))}")
        return layout

    async def _gone(self, name: str, timeout_s: float, after: str) -> None:
        answer = await self._call("wait", name=name, timeout_s=timeout_s, answer_within_s=timeout_s + GONE_TIMEOUT_S)
        if not answer["exited"]:
            raise DeadlineError(f"{name} still runs {timeout_s:g} s after {after}")

    async def _all_gone(self, supervisor: ProcessIdentity | None, timeout_s: float) -> None:
        async def survivors() -> list[int]:
            return _survivors(self._folder, supervisor)

        await until(survivors, lambda pids: not pids, what="end of every process", timeout_s=timeout_s, every_s=0.01)

    async def _while_alive(self, names: list[str], ready: Coroutine[Any, Any, T]) -> T:
        """Return what `ready` comes to; raise ClusterError with the last words of a named process that ends before."""
        deaths = {asyncio.ensure_future(self._death(name)) for name in names}
        waiting = asyncio.ensure_future(ready)
        try:
            await asyncio.wait({waiting, *deaths}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise ClusterError("; ".join(death.result() for death in deaths if death.done()))
            return waiting.result()
        finally:
            for task in (waiting, *deaths):
                task.cancel()
            await asyncio.gather(waiting, *deaths, return_exceptions=True)

    async def _death(self, name: str) -> str:
        """Return, when a process has ended, how it ended and its last words."""
        limit = WATCH_TIMEOUT_S
        answer = await self._call("wait", name=name, timeout_s=limit, answer_within_s=limit + GONE_TIMEOUT_S)
        log = Path((await self._processes())[name]["log"])
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]
        return "\n".join([f"{name} ended with status {answer['status']}; the end of {log}:", *tail])


def _broker_status(layout: ClusterLayout, broker_id: int, process: dict[str, Any] | None) -> BrokerStatus:
    state = "exited" if process is None else process["state"]
    ports = layout.brokers[broker_id]
    return BrokerStatus(
        broker_id=broker_id,
        state="stopped" if state == "exited" else state,
        pid=process["pid"] if process is not None and state != "exited" else None,
        client_address=f"{LOOPBACK}:{ports.client}",
        peer_address=f"{LOOPBACK}:{ports.peer}",
        log_dir=layout.log_dir(broker_id),
        state_change_log=layout.state_change_log(broker_id),
        human_log=layout.human_log(broker_id),
        starts=process["starts"] if process is not None else 0,
    )


def _survivors(folder: Path, supervisor: ProcessIdentity | None) -> list[int]:
    """Return the pids of the run's live processes: named by a pid file, in the supervisor's group, or marked."""
    named = [read_pid_file(path) for path in sorted((folder / PIDS_NAME).glob("*.pid"))]
    pids = {identity.pid for identity in named if identity is not None and identity.alive()}
    if supervisor is not None:
        pids.update(group_members(supervisor))
    pids.update(with_environment(CLUSTER_VARIABLE, str(folder.resolve())))
    return sorted(pids)


def _port_free(port: int, owner: str) -> None:
    if listens(port):
        raise ClusterError(f"port {port} of {owner} is taken by another program")

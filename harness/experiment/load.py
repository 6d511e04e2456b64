"""The clients of a run: started together, and stopped in good order."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Protocol

from harness.cluster.capabilities import CanDisturbClients
from harness.cluster.driver import CanRunClients
from harness.contracts.workloads import ClientPlan
from harness.errors import ClusterError
from harness.experiment.client import client_argv, write_client_plan
from harness.experiment.probes import ClientProgress, FileProgress
from harness.scenario.model import TopicSpec
from harness.scenario.plan import Plan, PlannedClient
from harness.store.folder import RunFolder
from harness.store.phase_log import PhaseNotes
from harness.system.process_state import ProcessState

STOP_TIMEOUT_S = 90.0
"""A consumer first reads to the end, within a shorter deadline of its own."""
LOG_TAIL_LINES = 8
READER, MEMBER = "consumer", "member"
"""The roles of clients that read every partition, alone or as a group."""
SCRIPT_PLAYER = "script-player"
"""The role of clients whose operation is a script, which may wait for retention or the cleaner at every step."""


class Clients(Protocol):
    """Where clients run: as processes of a driver, or within a simulation."""

    async def start(self, plan: ClientPlan) -> None:
        """Start one; raises HarnessError when that is impossible."""
        ...

    async def stop(self, processes: Sequence[str], *, at_once: bool = False) -> dict[str, str]:
        """Let some of them finish, all together; return the problem of each that did not end well.

        `at_once`: skip what they would do for the end of a run.
        """
        ...

    def progress(self) -> ClientProgress:
        """Return a view of their progress from now on."""
        ...

    async def state(self, process: str) -> ProcessState:
        """Return running, paused or stopped; raises ClusterError."""
        ...

    async def kill(self, process: str) -> None:
        """Kill one; it can be started again; raises ClusterError."""
        ...

    async def pause(self, process: str, *, at_most_s: float) -> None:
        """Pause one, for `at_most_s` at most; raises ClusterError."""
        ...

    async def resume(self, process: str) -> None:
        """Resume one; raises ClusterError."""
        ...


class Load:
    """All clients of one run; implements `Members`."""

    def __init__(
        self,
        clients: Clients,
        plan: Plan,
        topics: Sequence[TopicSpec],
        *,
        bootstrap_servers: str = "",
        client: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Nothing is started yet; a simulation has no `bootstrap_servers`, and no settings `client` to reach them."""
        self.clients = clients
        self.topics = {topic.name: topic.partitions for topic in topics}
        """Number of partitions by name."""
        self._clients = [client for client in plan.clients if client.step < 0]
        self._of_steps: list[PlannedClient] = []
        """Those that steps started and have not stopped."""
        self._bootstrap_servers = bootstrap_servers
        self._client_settings = dict(client)

    @property
    def processes(self) -> list[str]:
        """The names of the clients that run all the time."""
        return [client.process for client in self._clients]

    @property
    def workers(self) -> list[str]:
        """Those of them whose operations are no longer than a few requests."""
        return [client.process for client in self._clients if client.role != SCRIPT_PLAYER]

    @property
    def readers(self) -> dict[str, list[str]]:
        """The clients that together read every partition, by the name of the client or group."""
        readers: dict[str, list[str]] = {}
        for client in self._clients:
            if client.role in (READER, MEMBER):
                name = client.process if client.role == READER else client.parameters["group"]
                readers.setdefault(name, []).append(client.process)
        return readers

    async def start(self) -> None:
        """Start every client except those of steps; raises HarnessError when one cannot be started."""
        for client in self._clients:
            await self._start(client)

    async def start_of_step(self, client: PlannedClient) -> None:
        """Start one of a step; raises HarnessError when that is impossible."""
        self._of_steps.append(client)
        await self._start(client)

    async def stop_of_step(self, client: PlannedClient) -> None:
        """Let one of a step finish; raises ClusterError if it did not end well."""
        self._of_steps.remove(client)
        await self._stop_well(client.process)

    async def _stop_well(self, process: str, *, at_once: bool = False) -> None:
        for problem in (await self.clients.stop([process], at_once=at_once)).values():
            raise ClusterError(f"client {process}: {problem}")

    async def _start(self, client: PlannedClient) -> None:
        own = client.parameters.get("topics", self.topics)
        plan = ClientPlan(
            process=client.process,
            workload=client.workload,
            role=client.role,
            bootstrap_servers=self._bootstrap_servers,
            topics={name: count for name, count in self.topics.items() if name in own},
            seed=client.seed,
            parameters=client.parameters,
            stop_order=client.stop_order,
            client=self._client_settings,
        )
        await self.clients.start(plan)

    # --- what faults do to clients ---

    def member(self, group: str, number: int) -> str:
        """Return the process of a group's member, counted from 1; raises ClusterError when there is none."""
        members = [client.process for client in self._clients if client.parameters.get("group") == group]
        processes = members or self.readers.get(group, [])
        if number > len(processes):
            raise ClusterError(f"the group {group} has {len(processes)} members: nothing was injected")
        return processes[number - 1]

    def client(self, role: str, number: int) -> str:
        """Return the process of a client by its role, counted from 1; raises ClusterError when there is none."""
        processes = [client.process for client in self._clients if client.role == role]
        if number > len(processes):
            raise ClusterError(f"the load has {len(processes)} of the role {role}: nothing was injected")
        return processes[number - 1]

    async def state(self, process: str) -> ProcessState:
        """Return running, paused or stopped."""
        return await self.clients.state(process)

    async def kill(self, process: str) -> None:
        """Kill it."""
        await self.clients.kill(process)

    def known_as(self, process: str) -> str:
        """Return the prefix of the member ids that its group gives it: its instance, or else its own name."""
        return str(self._client(process).parameters["instance"]) or process

    async def leave(self, process: str) -> None:
        """Let it commit, leave its group and end."""
        await self._stop_well(process, at_once=True)

    async def start_again(self, process: str) -> None:
        """Start one that was killed or has left."""
        await self._start(self._client(process))

    def _client(self, process: str) -> PlannedClient:
        (client,) = [each for each in self._clients if each.process == process]
        return client

    async def pause(self, process: str, *, at_most_s: float) -> None:
        """Pause it, for `at_most_s` at most."""
        await self.clients.pause(process, at_most_s=at_most_s)

    async def resume(self, process: str) -> None:
        """Resume it."""
        await self.clients.resume(process)

    async def stop(self, notes: PhaseNotes) -> None:
        """Let the clients finish; remark on each that did not end well."""
        await stop_in_order(self.clients, [*self._clients, *self._of_steps], notes)


async def stop_in_order(clients: Clients, planned: Sequence[PlannedClient], notes: PhaseNotes) -> None:
    """Let clients finish, those of one stop order together; remark on each that did not end well."""
    in_order = sorted(planned, key=lambda client: client.stop_order)
    for _, group in groupby(in_order, key=lambda client: client.stop_order):
        problems = await clients.stop([client.process for client in group])
        for process, problem in problems.items():
            notes.remark(problem, subject=f"client {process}", forbids_pass=True)


class ClientProcesses:
    """Implements `Clients` through the driver, so that they end with the cluster."""

    def __init__(self, driver: CanRunClients, folder: RunFolder) -> None:
        self._driver = driver
        self._folder = folder

    async def start(self, plan: ClientPlan) -> None:
        """Start one; raises ClusterError when that is impossible."""
        path = self._folder.client_plan(plan.process)
        write_client_plan(plan, path)
        argv = client_argv(path.resolve(), self._folder.operations_of(plan.process).resolve())
        await self._driver.start_client(plan.process, argv, self._folder.client_log(plan.process))

    async def stop(self, processes: Sequence[str], *, at_once: bool = False) -> dict[str, str]:
        """Let some of them finish, all together; return the problem of each that did not end well."""
        problems = await asyncio.gather(*(self._stop_one(process, at_once) for process in processes))
        return {process: problem for process, problem in zip(processes, problems, strict=True) if problem}

    def progress(self) -> ClientProgress:
        """Return a view of their progress from now on."""
        return FileProgress(folder=self._folder.operations)

    async def state(self, process: str) -> ProcessState:
        """Return running, paused or stopped."""
        return await self._disturbing.client_state(process)

    async def kill(self, process: str) -> None:
        """Kill one."""
        await self._disturbing.kill_client(process)

    async def pause(self, process: str, *, at_most_s: float) -> None:
        """Pause one, for `at_most_s` at most."""
        await self._disturbing.pause_client(process, at_most_s=at_most_s)

    async def resume(self, process: str) -> None:
        """Resume one."""
        await self._disturbing.resume_client(process)

    @property
    def _disturbing(self) -> CanDisturbClients:
        if not isinstance(self._driver, CanDisturbClients):
            raise ClusterError("this driver cannot disturb clients: nothing was injected")
        return self._driver

    async def _stop_one(self, process: str, at_once: bool) -> str:
        try:
            status = await self._driver.stop_client(process, timeout_s=STOP_TIMEOUT_S, at_once=at_once)
        except ClusterError as error:
            return f"it could not be stopped: {error}"
        if status is None:
            return f"it did not finish within {STOP_TIMEOUT_S:g} s and was killed"
        if status != 0:
            return f"it ended with status {status}; the end of its log: {self._log_tail(process)}"
        return ""

    def _log_tail(self, process: str) -> str:
        path = self._folder.client_log(process)
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        return " / ".join(text.splitlines()[-LOG_TAIL_LINES:]) or "empty"

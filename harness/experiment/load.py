"""The clients of a run: started together, and stopped in good order."""

import asyncio
from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

from harness.cluster.driver import CanRunClients
from harness.contracts.workloads import ClientPlan
from harness.errors import ClusterError
from harness.experiment.client import client_argv, write_client_plan
from harness.experiment.probes import ClientProgress, FileProgress
from harness.scenario.model import TopicSpec
from harness.scenario.plan import Plan
from harness.store.folder import RunFolder
from harness.store.phase_log import PhaseNotes

STOP_TIMEOUT_S = 90.0
"""A consumer reads to the end first, within a deadline of its own that is shorter."""
LOG_TAIL_LINES = 8
READER = "consumer"
"""The role of clients that read every partition."""


class Clients(Protocol):
    """Where clients run: as processes of a driver, or within a simulation."""

    async def start(self, plan: ClientPlan) -> None:
        """Start one; raises HarnessError when that is impossible."""
        ...

    async def stop(self, processes: Sequence[str]) -> dict[str, str]:
        """Let some of them finish, all at once; return why, of each that did not end well."""
        ...

    def progress(self) -> ClientProgress:
        """Return what sees their progress from now on."""
        ...


class Load:
    """All clients of one run."""

    def __init__(
        self, clients: Clients, plan: Plan, topics: Sequence[TopicSpec], *, bootstrap_servers: str = ""
    ) -> None:
        """Nothing is started yet; a simulation has no `bootstrap_servers`."""
        self.clients = clients
        self.topics = {topic.name: topic.partitions for topic in topics}
        """Name to number of partitions."""
        self._plan = plan
        self._bootstrap_servers = bootstrap_servers

    @property
    def processes(self) -> list[str]:
        """The names of the clients."""
        return [client.process for client in self._plan.clients]

    @property
    def readers(self) -> list[str]:
        """The names of those that read every partition."""
        return [client.process for client in self._plan.clients if client.role == READER]

    async def start(self) -> None:
        """Start every client; raises HarnessError when one cannot be started."""
        for client in self._plan.clients:
            plan = ClientPlan(
                process=client.process,
                workload=client.workload,
                role=client.role,
                bootstrap_servers=self._bootstrap_servers,
                topics=self.topics,
                seed=client.seed,
                parameters=client.parameters,
                stop_order=client.stop_order,
            )
            await self.clients.start(plan)

    async def stop(self, notes: PhaseNotes) -> None:
        """Let the clients finish, those of one stop order together; remark on each that did not end well."""
        in_order = sorted(self._plan.clients, key=lambda client: client.stop_order)
        for _, group in groupby(in_order, key=lambda client: client.stop_order):
            problems = await self.clients.stop([client.process for client in group])
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

    async def stop(self, processes: Sequence[str]) -> dict[str, str]:
        """Let some of them finish, all at once; return why, of each that did not end well."""
        problems = await asyncio.gather(*map(self._stop_one, processes))
        return {process: problem for process, problem in zip(processes, problems, strict=True) if problem}

    def progress(self) -> ClientProgress:
        """Return what sees their progress from now on."""
        return FileProgress(folder=self._folder.operations)

    async def _stop_one(self, process: str) -> str:
        try:
            status = await self._driver.stop_client(process, timeout_s=STOP_TIMEOUT_S)
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

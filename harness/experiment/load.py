"""The client processes of a run: started through the driver, so that they end with it, and stopped in good order."""

import asyncio
from itertools import groupby

from harness.cluster.driver import CanRunClients
from harness.contracts.workloads import ClientPlan
from harness.errors import ClusterError
from harness.experiment.client import client_argv, write_client_plan
from harness.scenario.plan import Plan
from harness.store.folder import RunFolder
from harness.store.phase_log import PhaseNotes

STOP_TIMEOUT_S = 90.0
"""A consumer reads to the end first, within a deadline of its own that is shorter."""
LOG_TAIL_LINES = 8


class Load:
    """All clients of one run."""

    def __init__(self, driver: CanRunClients, folder: RunFolder, plan: Plan, topics: dict[str, int]) -> None:
        self._driver = driver
        self._folder = folder
        self._plan = plan
        self._topics = topics

    @property
    def processes(self) -> list[str]:
        """The names of the clients."""
        return [client.process for client in self._plan.clients]

    async def start(self, bootstrap_servers: str) -> None:
        """Start every client.

        Raises:
            ClusterError: one could not be started.
        """
        for client in self._plan.clients:
            path = self._folder.client_plan(client.process)
            write_client_plan(
                ClientPlan(
                    process=client.process,
                    workload=client.workload,
                    role=client.role,
                    bootstrap_servers=bootstrap_servers,
                    topics=self._topics,
                    seed=client.seed,
                    parameters=client.parameters,
                    stop_order=client.stop_order,
                ),
                path,
            )
            argv = client_argv(path.resolve(), self._folder.operations_of(client.process).resolve())
            await self._driver.start_client(client.process, argv, self._folder.client_log(client.process))

    async def stop(self, notes: PhaseNotes) -> None:
        """Let the clients finish, those of one stop order together; remark on each that did not end well."""
        in_order = sorted(self._plan.clients, key=lambda client: client.stop_order)
        for _, group in groupby(in_order, key=lambda client: client.stop_order):
            await asyncio.gather(*(self._stop_one(client.process, notes) for client in group))

    async def _stop_one(self, process: str, notes: PhaseNotes) -> None:
        client = f"client {process}"
        try:
            status = await self._driver.stop_client(process, timeout_s=STOP_TIMEOUT_S)
        except ClusterError as error:
            notes.remark(f"it could not be stopped: {error}", subject=client, forbids_pass=True)
            return
        if status is None:
            notes.remark(
                f"it did not finish within {STOP_TIMEOUT_S:g} s and was killed", subject=client, forbids_pass=True
            )
        elif status != 0:
            tail = self._log_tail(process)
            notes.remark(
                f"it ended with status {status}; the end of its log: {tail}", subject=client, forbids_pass=True
            )

    def _log_tail(self, process: str) -> str:
        path = self._folder.client_log(process)
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        return " / ".join(text.splitlines()[-LOG_TAIL_LINES:]) or "empty"

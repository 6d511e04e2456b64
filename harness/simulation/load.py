"""The clients of a schedule, each a process of its own, and what they have recorded."""

import asyncio
from functools import partial
from itertools import groupby
from typing import Protocol

from harness.contracts.workloads import ClientPlan
from harness.errors import PluginError
from harness.experiment.probes import ClientProgress
from harness.scenario.plan import Plan, PlannedClient
from harness.simulation.clients.committer import SimulatedCommitter
from harness.simulation.clients.consumer import SimulatedConsumer
from harness.simulation.clients.idempotent_producer import IdempotentProducer
from harness.simulation.clients.producer import SimulatedProducer
from harness.simulation.cluster import SimulatedCluster
from harness.simulation.evidence import in_ns
from harness.simulation.loop import Process
from harness.simulation.transport import MemoryTransport
from harness.store.history import Operation
from harness.store.recording import Recorder

STOP_TIMEOUT_S = 90.0


class SimulatedClient(Protocol):
    """What every kind of client does."""

    async def run(self, stop: asyncio.Event) -> None:
        """Do the work until `stop` is set, then finish it."""
        ...


CLIENTS: dict[str, type[SimulatedProducer] | type[SimulatedConsumer] | type[SimulatedCommitter]] = {
    "producer": SimulatedProducer,
    "consumer": SimulatedConsumer,
    "committer": SimulatedCommitter,
}
"""By the role that a workload gives a process."""


class SimulatedLoad:
    """All clients of one schedule."""

    def __init__(self, cluster: SimulatedCluster, plan: Plan, topics: dict[str, int]) -> None:
        self.operations: dict[str, list[Operation]] = {client.process: [] for client in plan.clients}
        """What every process has recorded."""
        clock_ns = partial(in_ns, asyncio.get_running_loop())
        self.recorders = {
            process: Recorder(process, operations.append, clock_ns) for process, operations in self.operations.items()
        }
        self._cluster = cluster
        self._plan = plan
        self._topics = topics
        self._stops: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Start every client.

        Raises:
            PluginError: a workload has a kind of client that there is no simulation of.
        """
        for client in self._plan.clients:
            if client.role not in CLIENTS:
                raise PluginError(f"the workload {client.workload} has no simulated {client.role}")
            self._stops[client.process] = asyncio.Event()
            self._tasks[client.process] = Process(client.process).call(self._run, client)

    def _run(self, client: PlannedClient) -> "asyncio.Task[None]":
        plan = ClientPlan(
            process=client.process,
            workload=client.workload,
            role=client.role,
            bootstrap_servers="",
            topics=self._topics,
            seed=client.seed,
            parameters=client.parameters,
            stop_order=client.stop_order,
        )
        transport = MemoryTransport(self._cluster.network, client.process)
        recorder = self.recorders[client.process]
        numbered = client.role == "producer" and client.parameters.get("idempotence", False)
        kind = IdempotentProducer if numbered else CLIENTS[client.role]
        work = kind(plan, recorder, transport, self._cluster.bootstrap)
        return asyncio.ensure_future(work.run(self._stops[client.process]))

    async def stop(self) -> list[str]:
        """Let the clients finish, those of one stop order together; return a sentence on each that did not end well."""
        problems = []
        in_order = sorted(self._plan.clients, key=lambda client: client.stop_order)
        for _, group in groupby(in_order, key=lambda client: client.stop_order):
            tasks = {client.process: self._tasks[client.process] for client in group}
            for process in tasks:
                self._stops[process].set()
            await asyncio.wait(tasks.values(), timeout=STOP_TIMEOUT_S)
            for process, task in tasks.items():
                if not task.done():
                    problems.append(f"client {process} did not finish within {STOP_TIMEOUT_S:g} s")
                elif (error := task.exception()) is not None:
                    problems.append(f"client {process} failed: {error!r}")
        return problems


class RecordedProgress(ClientProgress):
    """Progress as it shows in what the clients record."""

    def __init__(self, load: SimulatedLoad) -> None:
        super().__init__()
        self._operations = load.operations
        self._looked = {process: len(operations) for process, operations in self._operations.items()}

    def look(self) -> None:
        """Take in what was recorded since the last look."""
        for process, operations in self._operations.items():
            for each in operations[self._looked[process] :]:
                self.take(process, each.index, each.kind, each.type, (each.topic, each.partition))
            self._looked[process] = len(operations)

"""The clients of a schedule, each a process of its own, and what they have recorded."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from harness.client_rules.committing import Committing
from harness.client_rules.piping import Piping
from harness.client_rules.reading import Reading
from harness.client_rules.scripts.recorded import Kind, lines_of
from harness.client_rules.subscribing import AUTOMATIC, Subscribing
from harness.contracts.workloads import ClientPlan
from harness.errors import PluginError
from harness.experiment.load import MEMBER, SCRIPT_PLAYER, STOP_TIMEOUT_S
from harness.experiment.probes import ClientProgress
from harness.scenario.plan import PlannedClient
from harness.simulation.clients.administrator import SimulatedAdministrator
from harness.simulation.clients.group_member import SimulatedGroupMember
from harness.simulation.clients.idempotent_producer import IdempotentProducer
from harness.simulation.clients.lister import SimulatedLister
from harness.simulation.clients.metadata import now_s
from harness.simulation.clients.pipe import SimulatedPipe
from harness.simulation.clients.producer import SimulatedProducer
from harness.simulation.clients.script_player import SimulatedScriptPlayer
from harness.simulation.clients.subscriber import SimulatedSubscriber
from harness.simulation.clients.transactor import SimulatedTransactor
from harness.simulation.cluster import SimulatedCluster
from harness.simulation.evidence import in_ns
from harness.simulation.loop import Process, simulated_loop
from harness.simulation.transport import MemoryTransport
from harness.store.history import Operation
from harness.store.recording import Recorder
from harness.system.process_state import ProcessState

GROUP_RULES: dict[str, type[Reading] | type[Committing]] = {"consumer": Reading, "committer": Committing}
CLIENTS = frozenset({"administrator", "producer", "transactor", "pipe", "lister", SCRIPT_PLAYER, MEMBER, *GROUP_RULES})
"""The roles of a workload that there is a simulated client for."""


class SimulatedClient(Protocol):
    """One process of a client."""

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, and finish."""
        ...


def read_scripts(clients: Iterable[PlannedClient]) -> None:
    """Read the files that clients need; within a simulation none can be read."""
    for client in clients:
        if client.role == SCRIPT_PLAYER:
            for kind in Kind:
                lines_of(kind)


class SimulatedClients:
    """Implements `Clients`, in virtual time."""

    def __init__(self, cluster: SimulatedCluster, processes: Iterable[str]) -> None:
        self.operations: dict[str, list[Operation]] = {process: [] for process in processes}
        """What every process has recorded."""
        self._cluster = cluster
        self._clock_ns = partial(in_ns, asyncio.get_running_loop())
        self._stops: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._lives: dict[str, Process] = {}
        self._hurried: set[str] = set()

    async def start(self, plan: ClientPlan) -> None:
        """Start one; raises PluginError when there is no simulation of its kind."""
        if plan.role not in CLIENTS:
            raise PluginError(f"the workload {plan.workload} has no simulated {plan.role}")
        self._stops[plan.process] = asyncio.Event()
        self._hurried.discard(plan.process)
        life = self._lives[plan.process] = Process(plan.process)
        self._tasks[plan.process] = life.call(self._run, plan)

    def _run(self, plan: ClientPlan) -> "asyncio.Task[None]":
        return asyncio.ensure_future(self._client(plan).run(self._stops[plan.process]))

    def _client(self, plan: ClientPlan) -> SimulatedClient:
        transport = MemoryTransport(self._cluster.network, plan.process)
        recorded = self.operations[plan.process]
        first_index = max((each.index for each in recorded), default=-1) + 1
        recorder = Recorder(plan.process, recorded.append, self._clock_ns, first_index)
        if plan.role in GROUP_RULES:
            rules = GROUP_RULES[plan.role](plan, recorder, now_s)
            return SimulatedGroupMember(plan, rules, transport, self._cluster.bootstrap)
        if plan.role == MEMBER:
            members_rules = Subscribing(
                plan,
                recorder,
                now_s,
                library_commits=plan.parameters["commits"] == AUTOMATIC,
                at_once=lambda: plan.process in self._hurried,
            )
            return SimulatedSubscriber(plan, members_rules, transport, self._cluster.bootstrap)
        if plan.role == "pipe":
            piping = Piping(plan, recorder, now_s, at_once=lambda: plan.process in self._hurried)
            return SimulatedPipe(plan, piping, transport, self._cluster.bootstrap)
        is_idempotent = plan.parameters.get("idempotence", False)
        others: dict[str, Callable[..., SimulatedClient]] = {
            SCRIPT_PLAYER: SimulatedScriptPlayer,
            "lister": SimulatedLister,
            "administrator": partial(
                SimulatedAdministrator,
                several_directories=any(len(broker.disks) > 1 for broker in self._cluster.brokers.values()),
            ),
            "transactor": SimulatedTransactor,
            "producer": IdempotentProducer if is_idempotent else SimulatedProducer,
        }
        return others[plan.role](plan, recorder, transport, self._cluster.bootstrap)

    async def stop(self, processes: Sequence[str], *, at_once: bool = False) -> dict[str, str]:
        """Let some of them finish, all together; return why, of each that did not end well."""
        self._hurried.update(processes if at_once else ())
        tasks = {process: self._tasks[process] for process in processes if process in self._tasks}
        for process in tasks:
            self._stops[process].set()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=STOP_TIMEOUT_S)
        problems = {}
        for process, task in tasks.items():
            if not task.done():
                problems[process] = f"it did not finish within {STOP_TIMEOUT_S:g} s"
            elif (error := task.exception()) is not None:
                problems[process] = f"it failed: {error!r}"
        return problems

    def progress(self) -> ClientProgress:
        """Return what sees their progress from now on."""
        return RecordedProgress(self.operations)

    async def state(self, process: str) -> ProcessState:
        """Return running, paused or stopped."""
        life = self._lives[process]
        if life.dead or self._tasks[process].done():
            return ProcessState.STOPPED
        return ProcessState.PAUSED if life.frozen else ProcessState.RUNNING

    async def kill(self, process: str) -> None:
        """End one without a word; its kernel closes what it had open."""
        life = self._lives[process]
        simulated_loop().kill(life)
        self._cluster.network.process_died(life)

    async def pause(self, process: str, *, at_most_s: float) -> None:
        """Freeze one, for `at_most_s` at most."""
        life = self._lives[process]
        simulated_loop().freeze(life)
        simulated_loop().call_later(at_most_s, self._thaw, life)

    async def resume(self, process: str) -> None:
        """Let one go on."""
        self._thaw(self._lives[process])

    def _thaw(self, life: Process) -> None:
        if life.frozen and not life.dead:
            simulated_loop().thaw(life)


class RecordedProgress(ClientProgress):
    """Progress as it shows in what the clients record."""

    def __init__(self, operations: Mapping[str, list[Operation]]) -> None:
        super().__init__()
        self._operations = operations
        self._looked = {process: len(recorded) for process, recorded in operations.items()}

    def look(self) -> None:
        """Take in what was recorded since the last look."""
        for process, recorded in self._operations.items():
            for each in recorded[self._looked[process] :]:
                records = ((record.topic, record.partition, record.offset) for record in each.records)
                self.take(process, each.index, each.kind, each.type, (each.topic, each.partition), records)
            self._looked[process] = len(recorded)

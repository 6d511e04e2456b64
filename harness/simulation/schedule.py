"""One schedule: a scenario under one seed, carried out in virtual time, and everything that it left as evidence.

The drive is that of a real run (`harness.experiment.drive`), on a simulated cluster; so are the kinds of evidence.
"""

import asyncio
import gc
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from harness.cluster.driver import INTERCEPT
from harness.cluster.links.interception import Interceptor
from harness.cluster.systems.system import system_named
from harness.contracts.faults import Fault, FaultContext
from harness.experiment.drive import DriveContext, drive, plugins_of
from harness.experiment.liveness_probe import Probe
from harness.experiment.load import Load
from harness.experiment.machine import NoMachine
from harness.experiment.quiescence import patience_s
from harness.experiment.requests import PROCESS as STEPS_PROCESS
from harness.experiment.requests import Requests
from harness.experiment.service_probe import PROCESS, ServiceProbe
from harness.progress import Progress, Silent
from harness.scenario.draws import with_drawn
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan, make_plan
from harness.simulation.cluster import SimulatedCluster
from harness.simulation.disk import MemoryStorage
from harness.simulation.driver import SimulatedStateChanges, SimulatedView, SimulationDriver
from harness.simulation.evidence import BrokerLog, MemoryJournal, in_ns, now_ns, wall_ms, znode_changes
from harness.simulation.frames import MemoryFrames
from harness.simulation.guard import Guard
from harness.simulation.load import SimulatedClients, read_scripts
from harness.simulation.loop import START_S, SimulatedLoop, SimulationError, Spinning, run, simulated_loop
from harness.simulation.memory_check.compare import note_differences
from harness.simulation.quiescence import caught_up
from harness.simulation.topics import SimulatedTopicAdmin
from harness.simulation.transport import MemoryTransport
from harness.store.folder import RunFolder
from harness.store.history import InjectionStep, JournalEntry, Liveness, Operation, Sign, ZnodeChange, line_of
from harness.store.phase_log import Phase, PhaseNotes
from harness.store.recording import Recorder
from harness.store.result import Remark

START_TIMEOUT_S = 30.0
MARGIN_S = 600.0
"""Virtual time beyond load and recovery, for all that surrounds them."""
MAX_EVENTS_A_SECOND = 100_000
STEPS_OF_PROCESS = 1000
"""Steps that a broker or client may take in a second of virtual time; the busiest second of the battery has 400."""
STEPS_OF_RECORD = 100
"""Steps that one record may cost in all processes: to send, replicate, read and acknowledge it."""


@dataclass(frozen=True, kw_only=True)
class SimulatedHistory:
    """All evidence of one schedule, in the shapes of `harness.store.history` and `harness.events`."""

    operations: dict[str, list[Operation]]
    """By client process."""
    logs: dict[int, BrokerLog]
    """What every broker has logged."""
    znodes: list[ZnodeChange]
    journal: list[JournalEntry]
    liveness: list[Liveness] = field(default_factory=list)
    disks: dict[int, MemoryStorage]
    """Every broker's disk when the load had ended."""
    remarks: list[Remark] = field(default_factory=list)
    """What went wrong: a steady state that was not reached, a client that did not end."""
    virtual_s: float
    events: int
    """Callbacks that it took."""

    @cached_property
    def files(self) -> dict[Path, list[bytes]]:
        """Every file of lines but the dumps of replicas: its lines, by where it lies within a run folder."""
        within = RunFolder(Path())
        logs = {within.state_change_log(broker_id): log.lines() for broker_id, log in self.logs.items()}
        others: dict[Path, Sequence[Operation | ZnodeChange | JournalEntry | Liveness]] = {
            **{within.operations_of(process): operations for process, operations in self.operations.items()},
            within.zookeeper: self.znodes,
            within.journal: self.journal,
            within.liveness: self.liveness,
        }
        return logs | {path: list(map(line_of, values)) for path, values in others.items()}

    def digest(self) -> str:
        """Return a hash over all of it: two schedules with one digest are the same."""
        whole = hashlib.sha256()
        for part in self._parts():
            whole.update(part)
            whole.update(b"\n")
        return whole.hexdigest()

    def _parts(self) -> Iterator[bytes]:
        for path, lines in self.files.items():
            yield str(path).encode()
            yield b"".join(lines)
        for broker_id, disk in self.disks.items():
            for name, file in sorted(disk.files.items()):
                yield f"{broker_id} {name}".encode()
                yield bytes(file.data)
        yield repr((list(map(str, self.remarks)), self.virtual_s, self.events)).encode()


def simulate(scenario: Scenario, seed: int, *, through_codecs: bool | None = None) -> SimulatedHistory:
    """Return what happens in the scenario under this seed; the same bytes at any time on any machine.

    One that does not end, or in which a broker does not start, leaves what there is until then.

    Raises:
        SimulationError: something reached out of the simulation.
    """
    return simulate_plan(scenario, make_plan(scenario, seed), through_codecs=through_codecs)


def simulate_plan(
    scenario: Scenario, plan: Plan, *, through_codecs: bool | None = None, progress: Progress | None = None
) -> SimulatedHistory:
    """Return what happens in the scenario under a plan, which need not be the one that its seed makes.

    `progress` hears what happens meanwhile, with its virtual instant.
    """
    scenario = with_drawn(scenario, plan.drawn)
    faults = plugins_of(plan)  # they are in files, as the system is, so before the guard is up
    system_named(scenario.system)
    read_scripts(plan.clients)
    limit_s = scenario.longest_drive_s + scenario.recovery_timeout_s + MARGIN_S
    collecting = gc.isenabled()
    gc.disable()  # what is collected, and when, would depend on what ran before; a schedule is small
    try:
        with Guard() as guard:
            listener = Silent() if progress is None else _InVirtualTime(progress, guard)
            left = _Left()
            return run(
                _carried_out(scenario, plan, faults, through_codecs, listener, left),
                max_time_s=limit_s,
                max_events=int(limit_s * MAX_EVENTS_A_SECOND),
                max_pace=_most_steps(scenario, plan),
                ended_early=left.ended_early,
            )
    finally:
        if collecting:
            gc.enable()


@dataclass(slots=True)
class _Left:
    """Evidence of a schedule that is being carried out."""

    cluster: SimulatedCluster | None = None
    clients: SimulatedClients | None = None
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    notes: PhaseNotes = field(default_factory=lambda: PhaseNotes(phase=Phase.DRIVE))
    requests: list[Operation] = field(default_factory=list)
    """Of the probe."""
    of_steps: list[Operation] = field(default_factory=list)
    """Of steps that send requests."""
    liveness: list[Liveness] = field(default_factory=list)

    @property
    def is_at_rest(self) -> bool:
        """Whether the drive has ended in a steady state, with no fault in force."""
        in_force = any(entry.step is InjectionStep.HEAL_FAILED for entry in self.journal.entries)
        return not in_force and not any(remark.forbids_pass for remark in self.notes.remarks)

    def history(self, loop: SimulatedLoop) -> SimulatedHistory:
        """Return all of it as it is now."""
        assert self.cluster is not None
        operations = self.clients.operations if self.clients is not None else {}
        return history_of(
            self.cluster,
            loop,
            operations | {PROCESS: self.requests} | ({STEPS_PROCESS: self.of_steps} if self.of_steps else {}),
            self.journal.entries,
            self.notes.remarks,
            self.liveness,
        )

    def ended_early(self, loop: SimulatedLoop, error: SimulationError) -> SimulatedHistory:
        """Return what there is of a schedule that does not end; raises the error if it has not begun."""
        if self.cluster is None:
            raise error
        self.notes.remark(f"the schedule does not end: {error}", forbids_pass=True)
        if isinstance(error, Spinning):
            self.cluster.accuse(error)
        return self.history(loop)


def _most_steps(scenario: Scenario, plan: Plan) -> int:
    """Return how many steps brokers and clients take in a second at most, many times more than any of them needs."""
    rates = sum(client.parameters.get("rate_per_s", 0) for client in plan.clients)
    return int(STEPS_OF_PROCESS * (scenario.cluster.brokers + len(plan.clients)) + STEPS_OF_RECORD * rates)


def sign_of(loop: SimulatedLoop, sign: Sign, wrong: str = "", broker: int = -1) -> Liveness:
    """Return a sign of life that no look at the cluster shows, as it is now."""
    now_ns = in_ns(loop)
    return Liveness(
        time_ns=now_ns,
        sign=sign,
        broker=broker,
        shown=not wrong,
        since_ns=now_ns,
        healed_ns=now_ns,
        detail=wrong,
        cpu_percent=0,
        load_percent=0,
        late_ms=0,
    )


async def _carried_out(
    scenario: Scenario,
    plan: Plan,
    faults: Mapping[str, Fault],
    through_codecs: bool | None,
    progress: Progress,
    left: _Left,
) -> SimulatedHistory:
    """Return what happened on a cluster that is made for it."""
    cluster = left.cluster = SimulatedCluster(
        scenario.cluster.broker_ids,
        seed=plan.seed,
        properties=scenario.cluster.properties,
        planted_bugs=scenario.planted_bugs,
        zookeeper_servers=scenario.cluster.zookeeper_servers,
        through_codecs=through_codecs,
        latencies=scenario.latencies,
    )
    if any(INTERCEPT in fault.requires for fault in faults.values()):
        cluster.network.interceptor = Interceptor()
    processes = [client.process for client in plan.clients]
    clients = left.clients = SimulatedClients(cluster, processes)
    load = Load(clients, plan, scenario.topics)
    context = FaultContext(
        driver=SimulationDriver(cluster, [*processes, STEPS_PROCESS]),
        view=SimulatedView(cluster),
        logs=SimulatedStateChanges(cluster),
        members=load,
    )
    drive_context = DriveContext(
        context=context,
        load=load,
        journal=left.journal,
        faults=faults,
        create_topics=SimulatedTopicAdmin(cluster).create,
        probe=Probe(
            ask=ServiceProbe(
                MemoryFrames(cluster.network, PROCESS),
                cluster.bootstrap,
                Recorder(PROCESS, left.requests.append, now_ns),
                wall_ms,
                negotiates=False,
            ),
            machine=NoMachine(),
            clock_ns=now_ns,
            write=left.liveness.append,
            patience=1.0,
        ),
        requests=Requests(
            transport=MemoryTransport(cluster.network, STEPS_PROCESS),
            bootstrap=cluster.bootstrap,
            recorder=Recorder(STEPS_PROCESS, left.of_steps.append, now_ns),
        ),
        looks_at_the_start=True,
    )
    loop = simulated_loop()
    if not_started := await _start(cluster):
        left.notes.remark(f"before the first fault: {'; '.join(not_started.values())}", forbids_pass=True)
        left.liveness += [sign_of(loop, Sign.REGISTERED, why, broker) for broker, why in not_started.items()]
    else:
        await drive(drive_context, scenario, plan, progress, left.notes)
        if left.is_at_rest:
            await note_differences(cluster, left.notes)
            await caught_up(cluster, patience_s(scenario))
    return left.history(loop)


def history_of(
    cluster: SimulatedCluster,
    loop: SimulatedLoop,
    operations: dict[str, list[Operation]],
    journal: list[JournalEntry],
    remarks: list[Remark],
    liveness: Sequence[Liveness] = (),
) -> SimulatedHistory:
    """Return all evidence that a cluster and its load leave now."""
    return SimulatedHistory(
        operations=operations,
        logs={broker_id: broker.log for broker_id, broker in cluster.brokers.items()},
        znodes=znode_changes(cluster.ensemble.history),
        journal=journal,
        liveness=[*liveness],
        disks={broker_id: broker.disk for broker_id, broker in cluster.brokers.items()},
        remarks=[*remarks, *(Remark(text=text, phase=Phase.DRIVE, forbids_pass=True) for text in loop.complaints)],
        virtual_s=loop.time() - START_S,
        events=loop.events,
    )


class _InVirtualTime(Silent):
    """Passes events of the simulation to a listener outside of it, with the virtual instant."""

    def __init__(self, progress: Progress, guard: Guard) -> None:
        self._progress = progress
        self._guard = guard

    def message(self, text: str) -> None:
        """Pass it on with its instant."""
        now_s = asyncio.get_running_loop().time() - START_S
        with self._guard.lifted():
            self._progress.message(f"{now_s:.1f} s of virtual time: {text}")


async def _start(cluster: SimulatedCluster) -> dict[int, str]:
    """Start every broker; return why some did not start, by their ids: nothing is in their way."""
    brokers = cluster.brokers.values()
    starting = {broker.broker_id: asyncio.ensure_future(broker.start()) for broker in brokers}
    await asyncio.wait(starting.values(), timeout=START_TIMEOUT_S)
    late = [broker_id for broker_id, start in starting.items() if not start.done()]
    for broker_id in late:
        starting[broker_id].cancel()
    await asyncio.gather(*(start for broker_id, start in starting.items() if broker_id not in late))
    await asyncio.gather(*starting.values(), return_exceptions=True)
    failures = {each.broker_id: f"broker {each.broker_id} did not start: {each.failure}" for each in brokers}
    return {
        **{each.broker_id: failures[each.broker_id] for each in brokers if each.failure is not None},
        **{broker_id: f"broker {broker_id} did not start within {START_TIMEOUT_S:g} s" for broker_id in late},
    }

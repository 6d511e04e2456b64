"""One schedule: a scenario under one seed, carried out in virtual time, and everything that it left as evidence.

The same steps as a real run's (`harness.experiment.drive`): topics, load, steady state, faults, steady state again,
the end of the load; the same plan, the same fault plugins and nemesis, the same kinds of evidence.
"""

import asyncio
import gc
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from harness.contracts import registry
from harness.contracts.faults import Arena, Fault
from harness.errors import ClusterError, DeadlineError, HarnessError
from harness.experiment.nemesis import Nemesis
from harness.experiment.probes import steady_state
from harness.progress import Progress, Silent
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan, make_plan
from harness.simulation.cluster import SimulatedCluster
from harness.simulation.disk import MemoryStorage
from harness.simulation.driver import SimulatedStateChanges, SimulatedView, SimulationDriver
from harness.simulation.evidence import BrokerLog, MemoryJournal, znode_changes
from harness.simulation.guard import Guard
from harness.simulation.load import RecordedProgress, SimulatedLoad
from harness.simulation.loop import START_S, SimulatedLoop, run
from harness.simulation.topics import create_topics
from harness.store.folder import RunFolder
from harness.store.history import JournalEntry, Operation, ZnodeChange, line_of

START_TIMEOUT_S = 30.0
STEADY_TIMEOUT_S = 60.0
MARGIN_S = 600.0
"""Virtual time beyond load and recovery, for all that surrounds them."""
MAX_EVENTS_A_SECOND = 100_000


@dataclass(frozen=True, kw_only=True)
class SimulatedHistory:
    """All evidence of one schedule, in the shapes of `harness.store.history` and `harness.events`."""

    scenario: Scenario
    plan: Plan
    operations: dict[str, list[Operation]]
    """By client process."""
    logs: dict[int, BrokerLog]
    """What every broker has said."""
    znodes: list[ZnodeChange]
    journal: list[JournalEntry]
    disks: dict[int, MemoryStorage]
    """Every broker's disk when the load had ended."""
    remarks: list[str] = field(default_factory=list)
    """In a sentence each, what went wrong: a steady state that was not reached, a client that did not end."""
    virtual_s: float
    events: int
    """Callbacks that it took."""

    @cached_property
    def files(self) -> dict[Path, list[bytes]]:
        """Every file of lines but the dumps of replicas: its lines, by where it lies within a run folder."""
        within = RunFolder(Path())
        said = {within.state_change_log(broker_id): log.lines() for broker_id, log in self.logs.items()}
        noted: dict[Path, Sequence[Operation | ZnodeChange | JournalEntry]] = {
            **{within.operations_of(process): operations for process, operations in self.operations.items()},
            within.zookeeper: self.znodes,
            within.journal: self.journal,
        }
        return said | {path: list(map(line_of, values)) for path, values in noted.items()}

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
        yield repr((self.remarks, self.virtual_s, self.events)).encode()


def simulate(scenario: Scenario, seed: int, *, through_codecs: bool | None = None) -> SimulatedHistory:
    """Return what happens in the scenario under this seed; the same bytes at any time on any machine.

    Raises:
        SimulationError: it does not end, or something reached out of the simulation.
        ClusterError: brokers, topics or the steady state before the first fault could not be had.
    """
    return simulate_plan(scenario, make_plan(scenario, seed), through_codecs=through_codecs)


def simulate_plan(
    scenario: Scenario, plan: Plan, *, through_codecs: bool | None = None, progress: Progress | None = None
) -> SimulatedHistory:
    """Return what happens in the scenario under a plan, which need not be the one that its seed makes.

    `progress` is told what happens meanwhile, with its virtual instant.
    """
    plugins = {fault.fault: registry.fault(fault.fault) for fault in plan.faults}  # files, so before the guard is up
    limit_s = scenario.duration_s + 2 * scenario.recovery_timeout_s + MARGIN_S
    collecting = gc.isenabled()
    gc.disable()  # what is collected, and when, would depend on what ran before; a schedule is small
    try:
        with Guard() as guard:
            told = Silent() if progress is None else _InVirtualTime(progress, guard)
            schedule = _Schedule(scenario, plan, plugins, through_codecs, told)
            return run(schedule.run(), max_time_s=limit_s, max_events=int(limit_s * MAX_EVENTS_A_SECOND))
    finally:
        if collecting:
            gc.enable()


class _Schedule:
    """One schedule while it runs."""

    def __init__(
        self,
        scenario: Scenario,
        plan: Plan,
        plugins: Mapping[str, Fault],
        through_codecs: bool | None,
        progress: Progress,
    ) -> None:
        self._scenario = scenario
        self._plan = plan
        self._plugins = plugins
        self._through_codecs = through_codecs
        self._progress = progress
        self._journal = MemoryJournal()
        self._remarks: list[str] = []

    async def run(self) -> SimulatedHistory:
        """Carry it out."""
        scenario = self._scenario
        cluster = SimulatedCluster(
            scenario.cluster.broker_ids,
            seed=self._plan.seed,
            properties=scenario.cluster.properties,
            planted_bugs=scenario.planted_bugs,
            zookeeper_servers=scenario.cluster.zookeeper_servers,
            through_codecs=self._through_codecs,
        )
        topics = {topic.name: topic.partitions for topic in scenario.topics}
        load = SimulatedLoad(cluster, self._plan, topics)
        arena = Arena(
            driver=SimulationDriver(cluster, list(load.recorders)),
            view=SimulatedView(cluster),
            said=SimulatedStateChanges(cluster),
        )
        await _start(cluster)
        await create_topics(cluster, scenario.topics)
        load.start()
        self._progress.message(f"{len(load.recorders)} clients write to and read from {', '.join(topics)}")
        await self._steady(arena, load, topics, STEADY_TIMEOUT_S)
        self._progress.message("steady state: every partition has its leader and full ISR, every client moves on")
        await self._disturb(arena)
        try:
            await self._steady(arena, load, topics, scenario.recovery_timeout_s)
            self._progress.message("steady state again")
        except DeadlineError as error:
            self._remarks.append(f"after the last heal: {error}")
            self._progress.message(f"deviated: {error}")
        self._remarks += await load.stop()
        self._progress.message("the load has ended, consumers have read to the end")
        return self._history(cluster, load)

    async def _steady(self, arena: Arena, load: SimulatedLoad, topics: dict[str, int], timeout_s: float) -> None:
        await steady_state(arena.view, topics, list(load.recorders), RecordedProgress(load), timeout_s=timeout_s)

    async def _disturb(self, arena: Arena) -> None:
        """Carry out the faults, and hold the load for as long as the scenario says."""
        clock = asyncio.get_running_loop().time
        end_s = clock() + self._scenario.duration_s
        nemesis = Nemesis(
            arena=arena,
            journal=self._journal,
            faults=self._plan.faults,
            progress=self._progress,
            plugins=self._plugins,
        )
        try:
            await nemesis.run()
        except HarnessError as error:
            self._remarks.append(f"the faults: {error}")
        await asyncio.sleep(max(0.0, end_s - clock()))

    def _history(self, cluster: SimulatedCluster, load: SimulatedLoad) -> SimulatedHistory:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        return SimulatedHistory(
            scenario=self._scenario,
            plan=self._plan,
            operations=load.operations,
            logs={broker_id: broker.log for broker_id, broker in cluster.brokers.items()},
            znodes=znode_changes(cluster.ensemble.history),
            journal=self._journal.entries,
            disks={broker_id: broker.disk for broker_id, broker in cluster.brokers.items()},
            remarks=[*self._remarks, *loop.complaints],
            virtual_s=loop.time() - START_S,
            events=loop.events,
        )


class _InVirtualTime(Silent):
    """Tells somebody outside of the simulation what happens in it, and when."""

    def __init__(self, progress: Progress, guard: Guard) -> None:
        self._progress = progress
        self._guard = guard

    def message(self, text: str) -> None:
        """Tell it with its instant."""
        now_s = asyncio.get_running_loop().time() - START_S
        with self._guard.lifted():
            self._progress.message(f"{now_s:.1f} s of virtual time: {text}")


async def _start(cluster: SimulatedCluster) -> None:
    """Start every broker; raises ClusterError."""
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            await asyncio.gather(*(broker.start() for broker in cluster.brokers.values()))
    except TimeoutError:
        raise ClusterError(f"the brokers did not start within {START_TIMEOUT_S:g} s") from None
    for broker in cluster.brokers.values():
        if broker.failure is not None:
            raise ClusterError(f"broker {broker.broker_id} did not start: {broker.failure}")

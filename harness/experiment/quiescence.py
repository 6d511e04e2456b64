"""Makes a cluster quiescent before its evidence is copied: ends its load, and waits until the replicas catch up.

Brokers' replicas are dumped one after another. The dumps can be compared only if nothing is written meanwhile: no
client runs, no fault is in force, and every member of an ISR has the log of its leader.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.cluster.capabilities import CanDisturbClients
from harness.cluster.driver import CanRunClients, ClusterDriver, ClusterStatus, RunExecutor
from harness.cluster.readiness import view_of_cluster
from harness.cluster.supervision.client import SupervisorGone
from harness.cluster.systems.system import system_named
from harness.errors import ClusterError
from harness.experiment.load import ClientProcesses, stop_in_order
from harness.progress import Progress, number_of
from harness.scenario.model import Scenario
from harness.scenario.plan import PlannedClient
from harness.store.folder import RunFolder
from harness.store.history import ReplicaState
from harness.store.phase_log import PhaseNotes
from harness.system.process_state import ProcessState
from harness.values import TopicPartition
from harness.zookeeper.view import ClusterView, PartitionView

POLL_S = 0.5
MARGIN_S = 10.0
STILL_S = 5.0
"""A replica that is behind and has not moved for this long does not catch up."""
NAMED = 3
"""Number of lagging replicas that a remark names."""
NOT_KNOWN = "which of them were in sync is not known"

Ends = Mapping[tuple[TopicPartition, int], int]
"""The log end of each replica, by partition and broker."""
Dump = Callable[[ClusterStatus], list[ReplicaState]]
"""Dumps every replica of a cluster; returns the first line of each dump."""


async def end_clients(
    folder: RunFolder, clients: Iterable[PlannedClient], driver: ClusterDriver, progress: Progress, notes: PhaseNotes
) -> list[str]:
    """End clients that run although no process drives them; return a sentence for each that still runs.

    The drive phase ends its clients. When its process is killed, they continue under the supervisor, and end with it.
    """
    if not (isinstance(driver, CanRunClients) and isinstance(driver, CanDisturbClients)):
        return []
    try:
        running = await _running(clients, driver)
        if not running:
            return []
        names = ", ".join(client.process for client in running)
        progress.message(f"{number_of(len(running), 'client')} ran on after the drive and must end: {names}")
        for client in running:
            await driver.resume_client(client.process)
        await stop_in_order(ClientProcesses(driver, folder), running, notes)
        return [f"client {client.process} still runs" for client in await _running(running, driver)]
    except SupervisorGone:
        return []
    except ClusterError as error:
        return [f"whether the clients have ended is not known: {error}"]


async def _running(clients: Iterable[PlannedClient], driver: CanDisturbClients) -> list[PlannedClient]:
    return [client for client in clients if await driver.client_state(client.process) is not ProcessState.STOPPED]


def patience_s(scenario: Scenario) -> float:
    """Return how long replicas may take to catch up; a leader removes a stuck one from its ISR within this time."""
    system = system_named(scenario.system)
    lag_ms = system.effective(scenario.cluster.brokers, scenario.cluster.properties)["replica.lag.time.max.ms"]
    return 2 * int(lag_ms) / 1000 + MARGIN_S


async def dump_settled(
    driver: ClusterDriver, dump: Dump, patience_s: float, progress: Progress, notes: PhaseNotes
) -> list[str]:
    """Dump the replicas, after waiting for them to catch up; return a sentence for each reason not to compare them."""
    status = await driver.status()
    unsettled = ""
    if not isinstance(driver, RunExecutor) and "replicas" not in status.unseen:
        if _running_brokers(status) and status.has_metadata:
            try:
                async with view_of_cluster(status) as view:
                    replicas = Replicas(driver=driver, view=view, dump=dump, patience_s=patience_s)
                    return await replicas.dump_settled(progress, notes)
            except ClusterError as error:
                unsettled = f"{NOT_KNOWN}: {error}"
        else:
            unsettled = "no broker ran when they were dumped, so none could catch up"
    _remark_on(await driver.copy_data(), notes)
    await asyncio.to_thread(dump, await driver.status())
    return [unsettled] if unsettled else []


@dataclass(slots=True, kw_only=True)
class Replicas:
    """The replicas of a running cluster: surveyed on the disks until they agree, then dumped."""

    driver: ClusterDriver
    view: ClusterView
    dump: Dump
    patience_s: float
    _ends: Ends = field(default_factory=dict)
    _unchanged_since_s: float = 0.0

    async def dump_settled(self, progress: Progress, notes: PhaseNotes) -> list[str]:
        """Dump them once they have caught up, or after `patience_s`; return why they cannot be compared.

        Replicas that stay behind without moving can be compared: their leader should have removed them from the ISR.
        """
        clock = asyncio.get_running_loop().time
        began_s = clock()
        while True:
            missing = await self.driver.copy_data()
            status = await self.driver.status()
            behind, unknown = await self._survey(status, clock())
            last = clock() - began_s >= self.patience_s
            if last or not (behind or unknown):
                dumped = _ends_of(await asyncio.to_thread(self.dump, status))
                moved = any(self._ends.get(replica, end) != end for replica, end in dumped.items())
                if last or not moved:
                    break
            await asyncio.sleep(POLL_S)
        _remark_on(missing, notes)
        if unknown:
            return [f"{NOT_KNOWN}: {unknown}"]
        if behind:
            more = f", and {len(behind) - NAMED} more" if len(behind) > NAMED else ""
            text = f"not caught up after {self.patience_s:g} s: {'; '.join(behind[:NAMED])}{more}"
            notes.remark(text, subject="replicas")
            progress.message(text)
        if moved or (behind and clock() - self._unchanged_since_s < STILL_S):
            return ["they were still changing when they were dumped"]
        return []

    async def _survey(self, status: ClusterStatus, now_s: float) -> tuple[list[str], str]:
        """Return a sentence for each member of an ISR that is behind its leader, and for each unknown one."""
        try:
            ends = await asyncio.to_thread(_ends_on_disk, status)
            partitions = await self.view.partitions()
        except (ClusterError, OSError) as error:
            return [], str(error)
        if ends != self._ends:
            self._ends, self._unchanged_since_s = ends, now_s
        running = _running_brokers(status)
        ours = (each for each in partitions if each.topic.startswith(status.prefix) and each.leader >= 0)
        return [text for each in ours for text in _lag(each, ends, running)], ""


def _remark_on(missing: Iterable[str], notes: PhaseNotes) -> None:
    """Add remarks about what a driver could not copy."""
    for text in missing:
        notes.remark(text, forbids_pass=True)


def _running_brokers(status: ClusterStatus) -> list[int]:
    return status.running(broker.broker_id for broker in status.brokers)


def _lag(partition: PartitionView, ends: Ends, running: Sequence[int]) -> list[str]:
    """Return a sentence for each member of a partition's ISR without the leader's whole log."""
    key, name = (partition.topic, partition.partition), f"{partition.topic}-{partition.partition}"
    stopped = [
        f"broker {each} is in the ISR of {name} and does not run" for each in partition.isr if each not in running
    ]
    end = ends.get((key, partition.leader))
    if end is None:  # the topic is being deleted
        return stopped
    return stopped + [
        f"{name} ends at {ends.get((key, each), 'nothing')} on broker {each}, at {end} on its leader {partition.leader}"
        for each in partition.isr
        if each in running and ends.get((key, each)) != end
    ]


def _ends_on_disk(status: ClusterStatus) -> Ends:
    """Return the present log end of every replica."""
    from harness.evidence.replicas import log_ends  # a parser of records, which only dumping needs

    return {
        (partition, broker.broker_id): end
        for broker in status.brokers
        for partition, end in log_ends(broker.log_dir, status.prefix).items()
    }


def _ends_of(dumped: Iterable[ReplicaState]) -> Ends:
    """Return the ends of the dumped logs; a damaged one has none."""
    return {
        ((state.topic, state.partition), state.broker): state.log_end_offset for state in dumped if not state.damage
    }

"""The collect phase: heals, ends the load, and brings all evidence of the cluster into the run folder."""

import asyncio
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.cluster.clocks import Rectified, read_clocks
from harness.cluster.driver import BrokerStatus, ClusterDriver, ClusterStatus
from harness.cluster.layout import broker_process
from harness.cluster.readiness import view_of_cluster
from harness.cluster.systems.system import System, system_named
from harness.contracts.faults import FaultContext, Injection
from harness.contracts.zookeeper_servers import servers_of
from harness.errors import ClusterError, EvidenceError
from harness.experiment.nemesis import heal_all
from harness.experiment.quiescence import dump_settled, end_clients, patience_s
from harness.progress import Progress
from harness.run.journal import open_injections, readable_journal
from harness.run.run import Run
from harness.store.folder import RunFolder
from harness.store.history import ReplicaState
from harness.store.phase_log import PhaseNotes, Quiescence
from harness.system.writable import describe_error

MS_NS = 1_000_000


async def collect(run: Run, driver: ClusterDriver, progress: Progress, notes: PhaseNotes) -> None:
    """Heal, end the load, and copy the evidence into the run folder; what cannot be copied gets a remark.

    Nothing is copied while a client runs. Replicas are dumped once they have caught up; the notes say whether they had.

    Raises:
        EvidenceError: there is no cluster.
    """
    folder = run.folder
    try:
        status = await driver.status()
    except ClusterError as error:
        raise EvidenceError(f"there is no cluster to collect evidence from: {error}") from error
    if status.has_metadata:
        await _heal_remaining(folder, driver, status, progress, notes)
    loaded = await end_clients(folder, run.plan.clients, driver, progress, notes)
    entries, unreadable = readable_journal(folder.journal)
    in_force = [f"{item.injection.fault} is still in force" for item in open_injections(entries)]
    in_force += [f"which faults are in force is not known: {unreadable}"] if unreadable else []
    dumps = _Dumps(folder, notes.phase)
    unsettled = await dump_settled(driver, dumps, patience_s(run.scenario), progress, notes)
    notes.remarks += dumps.notes.remarks
    notes.quiescence = Quiescence(loaded=loaded, unsettled=in_force + unsettled)
    await asyncio.to_thread(_collect_logs, folder, await driver.status(), notes)


async def _heal_remaining(
    folder: RunFolder, driver: ClusterDriver, status: ClusterStatus, progress: Progress, notes: PhaseNotes
) -> None:
    """Heal, from the journal, what the drive phase left in force."""
    view = view_of_cluster(status)
    context = FaultContext(driver=driver, view=view)
    remaining = [item.injection for item in open_injections(readable_journal(folder.journal)[0])]
    # These come first: without a quorum of ZooKeeper's servers no session opens.
    failures = await heal_all(folder.journal, context, progress, only=_hits_servers)
    if not all(map(_hits_servers, remaining)):
        try:
            async with view:
                failures += await heal_all(folder.journal, context, progress, only=lambda it: not _hits_servers(it))
        except ClusterError as error:
            failures.append(f"faults could not be healed: {error}")
    for failure in failures:
        notes.remark(failure, forbids_pass=True)


def _hits_servers(injection: Injection) -> bool:
    return bool(servers_of(injection.state))


class _Dumps:
    """Dumps the replicas of all brokers; remarks are those of the last dump."""

    def __init__(self, folder: RunFolder, phase: str) -> None:
        self.notes = PhaseNotes(phase=phase)
        self._folder = folder

    def __call__(self, status: ClusterStatus) -> list[ReplicaState]:
        """Dump every replica; return the first line of each."""
        self.notes.remarks.clear()
        return [state for broker in status.brokers for state in self._dump(broker, status.prefix)]

    def _dump(self, broker: BrokerStatus, prefix: str) -> list[ReplicaState]:
        from harness.evidence.replicas import dump_replicas

        try:
            states = dump_replicas(self._folder, broker.broker_id, broker.log_dir, prefix)
        except (EvidenceError, OSError) as error:
            self.notes.remark(
                f"its replicas could not be read: {describe_error(error, self._folder.root)}",
                subject=f"broker {broker.broker_id}",
                forbids_pass=True,
            )
            return []
        for state in states:
            if state.damage:
                where = f"{state.topic}-{state.partition} on broker {state.broker}"
                self.notes.remark(state.damage, subject=f"replica of {where}")
        return states


def _collect_logs(folder: RunFolder, status: ClusterStatus, notes: PhaseNotes) -> None:
    """Copy the brokers' logs, and complete the history of the metadata."""
    system = system_named(status.system)
    for broker in status.brokers if "state_changes" not in status.unseen else ():
        _gather(system, broker, folder, notes)
        for log in filter(None, (broker.state_change_log, broker.human_log)):
            _copy(log, folder.broker(broker.broker_id) / log.name, notes)
    if not status.has_metadata:
        return
    try:
        _merge_history(folder, status, notes)
    except (EvidenceError, OSError) as error:
        where = "ZooKeeper" if status.zookeeper else "metadata"
        notes.remark(f"the {where} history is incomplete: {describe_error(error, folder.root)}", forbids_pass=True)


def _merge_history(folder: RunFolder, status: ClusterStatus, notes: PhaseNotes) -> None:
    from harness.zookeeper.merged_history import merge_changes, merge_history
    from harness.zookeeper.scope import Scope

    scope = Scope(status.prefix)
    if status.zookeeper:
        data_dirs = [server.data_dir for server in status.zookeeper]
        for remark in merge_history(folder.zookeeper, *data_dirs, scope=scope):
            notes.remark(remark)
        return
    if not status.controllers:  # nothing has followed its metadata
        return
    if "zookeeper" in status.unseen:  # no readable disk has the quorum's log
        merge_changes(folder.zookeeper, None)
        return
    from harness.kraft.metadata_log import read_quorum_log

    voters = [status.broker(broker_id) for broker_id in status.controllers]
    try:
        log = read_quorum_log([voter.log_dir for voter in voters], _rectified_ms(voters))
    except EvidenceError:
        merge_changes(folder.zookeeper, None)
        raise
    changes = [change for change in log.changes if scope.holds(change.path)]
    remarks = merge_changes(folder.zookeeper, changes, exact=True, begins=log.begins)
    for remark in remarks.gaps:
        notes.remark(remark)
    for remark in log.damage + remarks.contradictions:  # the observer sees what is committed, and nothing else
        notes.remark(remark, forbids_pass=True)


def _rectified_ms(voters: Sequence[BrokerStatus]) -> Callable[[int, int], int]:
    """Return a conversion of a controller's wall clock, which may have been set, to the machine's."""
    ahead_ns = time.time_ns() - time.monotonic_ns()
    clocks = {
        voter.broker_id: Rectified(read_clocks(voter.clock_log, broker_process(voter.broker_id)), ahead_ns)
        for voter in voters
        if voter.clock_log is not None
    }

    def rectified_ms(controller: int, time_ms: int) -> int:
        if controller not in clocks:
            return time_ms
        return round((clocks[controller].instant_ns(time_ms * MS_NS) + ahead_ns) / MS_NS)

    return rectified_ms


def _gather(system: System, broker: BrokerStatus, folder: RunFolder, notes: PhaseNotes) -> None:
    """Convert a broker's own log into a state-change log, if it wrote none itself."""
    subject = f"broker {broker.broker_id}"
    try:
        for remark in system.gather(broker):
            notes.remark(remark, subject=subject, forbids_pass=True)
    except OSError as error:
        what = f"its log cannot be read: {describe_error(error, folder.root)}"
        notes.remark(what, subject=subject, forbids_pass=True)


def _copy(source: Path, destination: Path, notes: PhaseNotes) -> None:
    """Copy one log, unless the driver writes it in place."""
    if destination.exists() and source.resolve() == destination.resolve():
        return
    destination.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(source, destination)
    except OSError as error:
        notes.remark(
            f"{source.name} is missing: {describe_error(error, destination)}",
            subject=f"broker {destination.parent.name}",
            forbids_pass=True,
        )

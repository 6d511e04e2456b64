"""The drive phase: topics, load, steady state, faults, steady state again, liveness, the end of the load.

A failure in a fault is the answer of that fault's injection, and ends nothing; any other error ends the drive.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cluster.driver import CanRunClients, ClusterDriver, ClusterStatus
from harness.cluster.external.place import of_other_runs
from harness.cluster.readiness import transport_of, view_of_cluster
from harness.cluster.systems.system import system_named
from harness.contracts import registry
from harness.contracts.faults import Fault, FaultContext
from harness.errors import ClusterError, DeadlineError, PluginError
from harness.experiment.liveness_probe import Probe, Terms, Watch, in_force
from harness.experiment.load import ClientProcesses, Load
from harness.experiment.machine import ThisMachine
from harness.experiment.nemesis import Nemesis
from harness.experiment.probes import steady_state
from harness.experiment.steps import RoleBinding, Steps, bind_roles, replica_assignment
from harness.progress import Progress
from harness.run.journal import FaultLog, Journal
from harness.run.run import Run
from harness.scenario.model import Scenario, TopicSpec
from harness.scenario.plan import Plan
from harness.store.history import ChainedWriter, Operation, now_ns
from harness.store.phase_log import PhaseNotes
from harness.store.recording import Recorder
from harness.system.interruption import AGAIN_S

if TYPE_CHECKING:
    from harness.experiment.requests import Requests
    from harness.kraft.observer import QuorumObserver
    from harness.zookeeper.observer import ZookeeperObserver

TOPICS_TIMEOUT_S = 30.0
TOPICS_RETRY_S = 0.2
FOLDER_POLL_S = 0.5
CHECKPOINT_INTERVAL = "replica.high.watermark.checkpoint.interval.ms"
PATIENCE = 2.0
"""Factor on recovery deadlines, for a machine that others use too."""

CreateTopics = Callable[[Sequence[TopicSpec]], Awaitable[dict[str, str]]]
"""Tries once to create topics; returns the problem of each that does not exist after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveContext:
    """The parts of a cluster that a drive needs: real and simulated runs differ in nothing else.

    Time is the event loop's: the monotonic clock, or virtual time.
    """

    context: FaultContext
    load: Load
    journal: FaultLog
    faults: Mapping[str, Fault]
    """The plugins of the plan, by name."""
    create_topics: CreateTopics
    probe: Probe
    requests: "Requests"
    """Of steps."""
    looks_at_the_start: bool = False
    """Whether a cluster that does not serve before the first fault is looked at as after the last one, and judged.

    In virtual time no machine is in its way.
    """


async def drive(
    drive_context: DriveContext, scenario: Scenario, plan: Plan, progress: Progress, notes: PhaseNotes
) -> None:
    """Run load and the plan's faults against a cluster; when this returns or raises, the load has ended.

    Raises:
        ClusterError: topics, load or the first steady state could not be established.
    """
    load = drive_context.load

    async def steady(timeout_s: float) -> None:
        await steady_state(
            drive_context.context.view, load.topics, load.processes, load.clients.progress(), timeout_s=timeout_s
        )

    async def look_at_the_start(error: ClusterError) -> None:
        if not drive_context.looks_at_the_start:
            raise error
        notes.remark(f"before the first fault: {error}", forbids_pass=True)
        watch = _watch(drive_context, scenario, "")
        await watch.begin()
        await _look_for_life(watch, progress, notes)

    roles = await bind_roles(scenario, plan, drive_context.context.view)
    if roles:
        progress.message("; ".join(f"{name} is broker {broker}" for name, broker in roles.items()))
    try:
        await create_topics(drive_context.create_topics, replica_assignment(scenario.topics, roles))
    except ClusterError as error:
        await look_at_the_start(error)
        return
    try:
        await load.start()
        progress.message(f"{len(load.processes)} clients write to and read from {', '.join(load.topics)}")
        try:
            await steady(system_named(scenario.system).steady_timeout_s)
        except DeadlineError as error:
            await look_at_the_start(error)
            return
        progress.message("steady state: every partition has its leader and full ISR, every client makes progress")
        watch = await _disturb(drive_context, scenario, plan, roles, progress, notes)
        try:
            await steady(scenario.recovery_timeout_s)
            progress.message("steady state again")
        except DeadlineError as error:
            notes.remark(f"after the last heal: {error}", forbids_pass=True)
            progress.message(f"deviated: {error}")
        await _look_for_life(watch, progress, notes)
    finally:
        await load.stop(notes)
        progress.message("the load has ended, consumers have read to the end")


async def _look_for_life(watch: Watch, progress: Progress, notes: PhaseNotes) -> None:
    """Look until all liveness probes passed, or the time is up; what is missing is written down."""
    try:
        missing = await watch.finish()
        progress.message(f"a liveness probe failed: {missing[0]}" if missing else "all liveness probes passed")
    except ClusterError as error:
        notes.remark(f"liveness could not be probed: {error}", forbids_pass=True)


async def _disturb(
    drive_context: DriveContext,
    scenario: Scenario,
    plan: Plan,
    roles: RoleBinding,
    progress: Progress,
    notes: PhaseNotes,
) -> Watch:
    """Carry out the faults, and keep up the load as long as the scenario says; return a watch from the last heal on."""
    clock = asyncio.get_running_loop().time
    end_s = clock() + scenario.duration_s
    nemesis = Nemesis(
        context=drive_context.context,
        journal=drive_context.journal,
        faults=plan.faults,
        plugins=drive_context.faults,
        progress=progress,
    )
    terms = Terms.of(scenario)
    if scenario.steps:
        steps = Steps(
            nemesis=nemesis,
            load=drive_context.load,
            requests=drive_context.requests,
            scenario=scenario,
            plan=plan,
            roles=roles,
            checkpoint_s=int(terms.properties[CHECKPOINT_INTERVAL]) / 1000,
            progress=progress,
        )
        if missed := await steps.run():
            notes.remark(missed, forbids_pass=True)
            progress.message(missed)
    else:
        await nemesis.run()
    watch = _watch(drive_context, scenario, in_force(nemesis.unhealed, drive_context.faults))
    await watch.begin()
    await asyncio.sleep(max(0.0, end_s - clock()))
    return watch


def _watch(drive_context: DriveContext, scenario: Scenario, unhealed: str) -> Watch:
    """Return what looks for signs of life, beside a fault that is still in force, if any."""
    return Watch(
        context=drive_context.context,
        load=drive_context.load,
        probe=drive_context.probe,
        terms=Terms.of(scenario),
        in_force=unhealed,
    )


async def create_topics(create: CreateTopics, topics: Sequence[TopicSpec]) -> None:
    """Create every topic that does not exist.

    Raises:
        ClusterError: the cluster refused one, or did not answer in time; says which and why.
    """
    clock = asyncio.get_running_loop().time
    deadline_s = clock() + TOPICS_TIMEOUT_S
    remaining = list(topics)
    while True:
        problems = await create(remaining)
        remaining = [topic for topic in remaining if topic.name in problems]
        if not remaining:
            return
        if clock() >= deadline_s:
            raise ClusterError("; ".join(f"topic {name} was not created: {why}" for name, why in problems.items()))
        await asyncio.sleep(TOPICS_RETRY_S)


def plugins_of(plan: Plan) -> dict[str, Fault]:
    """Return the plugins of a plan's faults by name; raises PluginError."""
    return {fault.fault: registry.fault(fault.fault) for fault in plan.faults}


async def drive_cluster(run: Run, driver: ClusterDriver, progress: Progress, notes: PhaseNotes) -> None:
    """Drive a running cluster with client processes, and record its metadata meanwhile.

    Raises:
        ClusterError: as `drive`; or the run folder was moved or removed.
        PluginError: the driver cannot run clients, or a fault cannot be loaded; nothing was disturbed.
    """
    from harness.broker.wire.tcp import TcpTransport
    from harness.experiment.requests import PROCESS as STEPS_PROCESS
    from harness.experiment.requests import Requests  # loads the broker's codecs
    from harness.experiment.service_probe import PROCESS, ServiceProbe
    from harness.experiment.topics import TopicAdmin
    from harness.kafka.security.settings import security_of
    from harness.kafka.tcp import Tcp, opened

    if not isinstance(driver, CanRunClients):
        raise PluginError(f"the driver {driver.name} cannot run clients")
    folder, scenario, plan = run.folder, run.scenario, run.plan
    faults = plugins_of(plan)
    status = await driver.status()
    async with AsyncExitStack() as stack:
        if (observer := _observer(status, folder.zookeeper)) is not None:
            await observer.start()
            stack.push_async_callback(_stop, observer, notes)
        view = await stack.enter_async_context(view_of_cluster(status))
        operations = stack.enter_context(closing(ChainedWriter(folder.operations_of(PROCESS))))
        ask = ServiceProbe(
            Tcp(security_of(status.client)),
            map(_address, status.bootstrap_servers.split(",")),
            Recorder(PROCESS, operations.write, now_ns),
            lambda: time.time_ns() // 1_000_000,
            groups=(scenario.cluster.external.prefix if scenario.cluster.external else "") + PROCESS,
        )
        stack.callback(ask.close)
        create = TopicAdmin(status.bootstrap_servers, shared=bool(status.prefix), client=status.client).create
        clients = ClientProcesses(driver, folder)
        load = Load(clients, plan, scenario.topics, bootstrap_servers=status.bootstrap_servers, client=status.client)
        drive_context = DriveContext(
            context=FaultContext(driver=driver, view=view, members=load),
            load=load,
            journal=stack.enter_context(closing(Journal(folder.journal))),
            faults=faults,
            create_topics=_create_alone(create, view.topics, status.prefix) if status.prefix else create,
            probe=Probe(
                ask=ask,
                machine=ThisMachine(),
                clock_ns=now_ns,
                write=stack.enter_context(closing(ChainedWriter(folder.liveness))).write,
                patience=PATIENCE,
            ),
            requests=Requests(
                transport=TcpTransport(partial(opened, security=security_of(status.client))),
                bootstrap=list(map(_address, status.bootstrap_servers.split(","))),
                controllers={id_: _address(place) for id_, place in status.controllers.items()},
                recorder=Recorder(
                    STEPS_PROCESS, _written_by_steps(scenario, folder.operations_of(STEPS_PROCESS), stack), now_ns
                ),
            ),
        )
        await while_in_place(folder.root, drive(drive_context, scenario, plan, progress, notes))


def _written_by_steps(scenario: Scenario, path: Path, stack: AsyncExitStack) -> Callable[[Operation], object]:
    """Return what writes the requests of steps; without any there is no such file."""
    if not any(step.ask for step in scenario.steps):
        return lambda _: None
    return stack.enter_context(closing(ChainedWriter(path))).write


def _create_alone(create: CreateTopics, existing: Callable[[], Awaitable[Iterable[str]]], prefix: str) -> CreateTopics:
    """Create topics, and check for those of another run: of two that begin at once, at least one sees the other."""

    async def created(topics: Sequence[TopicSpec]) -> dict[str, str]:
        problems = await create(topics)
        if why := of_other_runs(await existing(), prefix):
            raise ClusterError(why)
        return problems

    return created


async def _stop(observer: "ZookeeperObserver | QuorumObserver", notes: PhaseNotes) -> None:
    await observer.stop()
    if observer.problem:
        notes.remark(observer.problem, subject="metadata observer", forbids_pass=True)


def _observer(status: ClusterStatus, path: Path) -> "ZookeeperObserver | QuorumObserver | None":
    """Return the observer of a cluster's metadata: ZooKeeper or the quorum."""
    from harness.zookeeper.scope import Scope

    if status.controllers:
        from harness.kraft.observer import QuorumObserver

        return QuorumObserver(status.controllers, path, Scope(status.prefix), transport_of(status.client))
    if not status.zookeeper_connect:
        return None
    from harness.kafka.security.settings import zookeeper_security_of
    from harness.zookeeper.observer import ZookeeperObserver

    security = zookeeper_security_of(status.client)
    return ZookeeperObserver(status.zookeeper_connect, path, Scope(status.prefix), security)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


async def while_in_place(folder: Path, work: Coroutine[Any, Any, None]) -> None:
    """Run work that needs a folder; cancel it, with its clean-up, when the folder is moved or removed.

    Raises:
        ClusterError: the folder was moved or removed.
    """
    working, watching = asyncio.ensure_future(work), asyncio.ensure_future(_folder_gone(folder))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        while not working.done():  # cancels its clean-up too: nothing is left to heal or stop
            working.cancel()
            await asyncio.wait({working}, timeout=AGAIN_S)
        await asyncio.gather(working, return_exceptions=True)  # errors of its clean-up do not matter
        raise ClusterError(f"{folder} was moved or removed while it was in use; its cluster has ended itself")
    finally:
        watching.cancel()
        if not working.done():
            working.cancel()
            await working


async def _folder_gone(folder: Path) -> None:
    """Return when the folder that is now at this path is no longer there."""
    inode = folder.stat().st_ino  # noqa: ASYNC240  takes microseconds
    while folder.is_dir() and folder.stat().st_ino == inode:  # noqa: ASYNC240, ASYNC110  the kernel has no event for it
        await asyncio.sleep(FOLDER_POLL_S)

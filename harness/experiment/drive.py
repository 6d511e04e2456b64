"""The drive phase: topics, load, steady state, faults, steady state again, the end of the load."""

import asyncio
import time
from contextlib import AsyncExitStack

from harness.cluster.driver import CanRunClients, ClusterDriver
from harness.contracts.faults import Arena
from harness.errors import DeadlineError, PluginError
from harness.experiment.journal import Journal
from harness.experiment.load import Load
from harness.experiment.nemesis import Nemesis
from harness.experiment.probes import steady_state
from harness.progress import Progress
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan
from harness.store.folder import RunFolder
from harness.store.phase_log import PhaseNotes

TOPICS_TIMEOUT_S = 30.0
STEADY_TIMEOUT_S = 60.0
"""Deadline for the steady state before the first fault."""


async def drive(
    folder: RunFolder, scenario: Scenario, plan: Plan, driver: ClusterDriver, progress: Progress, notes: PhaseNotes
) -> None:
    """Put the running cluster under load and under the plan's faults; return when the load has ended.

    Raises:
        ClusterError: topics, load or the steady state before the first fault could not be had.
    """
    from harness.experiment.topics import create_topics
    from harness.zookeeper.kazoo_view import KazooView
    from harness.zookeeper.observer import ZookeeperObserver

    if not isinstance(driver, CanRunClients):
        raise PluginError(f"the driver {driver.name} cannot run clients")
    status = await driver.status()
    topics = {topic.name: topic.partitions for topic in scenario.topics}
    load = Load(driver, folder, plan, topics)
    async with AsyncExitStack() as stack:
        observer = ZookeeperObserver(status.zookeeper_connect, folder.zookeeper)
        await observer.start()
        stack.push_async_callback(observer.stop)
        view = await stack.enter_async_context(KazooView(status.zookeeper_connect))
        await create_topics(status.bootstrap_servers, scenario.topics, timeout_s=TOPICS_TIMEOUT_S)
        try:
            await load.start(status.bootstrap_servers)
            progress.message(f"{len(load.processes)} clients write to and read from {', '.join(topics)}")
            await steady_state(view, topics, load.processes, folder.operations, timeout_s=STEADY_TIMEOUT_S)
            progress.message("steady state: every partition has its leader and full ISR, every client moves on")
            await _disturb(folder, scenario, plan, Arena(driver=driver, view=view), progress)
            try:
                limit_s = scenario.recovery_timeout_s
                await steady_state(view, topics, load.processes, folder.operations, timeout_s=limit_s)
                progress.message("steady state again")
            except DeadlineError as error:
                notes.remark(f"after the last heal: {error}", forbids_pass=True)
                progress.message(f"deviated: {error}")
        finally:
            await load.stop(notes)
            progress.message("the load has ended, consumers have read to the end")


async def _disturb(folder: RunFolder, scenario: Scenario, plan: Plan, arena: Arena, progress: Progress) -> None:
    """Carry out the schedule, and hold the load for as long as the scenario says."""
    end_s = time.monotonic() + scenario.duration_s
    journal = Journal(folder.journal)
    try:
        await Nemesis(arena=arena, journal=journal, faults=plan.faults, progress=progress).run()
    finally:
        journal.close()
    await asyncio.sleep(max(0.0, end_s - time.monotonic()))

"""Starts brokers again in any state that a fault left them in, and waits for them."""

import asyncio
from collections.abc import Awaitable, Collection, Iterable

from harness.cluster.driver import CanKill
from harness.contracts.faults import FaultContext, Injection
from harness.system.process_state import ProcessState
from harness.system.waiting import until
from harness.zookeeper.view import ZookeeperView

END_TIMEOUT_S = 60.0
"""For a broker that keeps stopping after the fault has stopped waiting for it."""


async def start_stopped(context: FaultContext, brokers: tuple[int, ...]) -> None:
    """Start those that do not run, all at once, each when its old registration is gone.

    Raises:
        ClusterError: one could not be started; the others were tried too.
    """
    await of_all(map(context.driver.start_broker, await stopped_of(context, brokers)))


async def stopped_of(context: FaultContext, brokers: Iterable[int]) -> list[int]:
    """Return those of these brokers that do not run."""
    status = await context.driver.status()
    return [broker for broker in brokers if status.broker(broker).state == ProcessState.STOPPED]


async def of_all(doings: Iterable[Awaitable[None]]) -> None:
    """Return when all have ended, also when one fails or all are cancelled, so that none runs on in the background.

    Raises:
        Exception: the first that one failed with.
    """
    for outcome in await asyncio.gather(*doings, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


async def restart_unless_started(context: FaultContext, injection: Injection) -> None:
    """Restart brokers, except those that were started since; `state["starts"]` has the earlier counts."""
    driver = context.driver
    assert isinstance(driver, CanKill)
    status = await driver.status()
    for broker in injection.targets:
        now = status.broker(broker)
        if now.state != ProcessState.STOPPED and now.starts == injection.state["starts"][str(broker)]:
            await driver.kill_broker(broker)
            await end_session(context, broker)
    await start_stopped(context, injection.targets)


async def end_session(context: FaultContext, broker_id: int) -> None:
    """End the session that a dead broker has left behind, so that it can return before it times out.

    Without ZooKeeper no session can be ended: the new process retries its registration until the old session times out.
    """
    if not isinstance(context.view, ZookeeperView):
        return
    registration = (await context.view.registrations()).get(broker_id)
    if registration is not None:
        await context.view.expire(registration.session)


async def end_of_late_stops(context: FaultContext, injection: Injection) -> None:
    """Wait for the end of brokers that still stop after their deadline: those in `state["late"]`.

    One that was started since, by its count in `state["starts"]`, is not stopping.

    Raises:
        DeadlineError: one does not end.
    """
    late = [int(broker) for broker in injection.state.get("late", ())]

    async def stopping() -> list[int]:
        seen = [(await context.driver.status()).broker(broker) for broker in late]
        starts = injection.state["starts"]
        return [
            it.broker_id for it in seen if it.state != ProcessState.STOPPED and it.starts == starts[str(it.broker_id)]
        ]

    await until(stopping, lambda seen: not seen, what="end of brokers that stop", timeout_s=END_TIMEOUT_S)


async def all_in_sync(context: FaultContext, brokers: Collection[int], timeout_s: float) -> None:
    """Return when every partition of these brokers has all its replicas in its ISR.

    Raises:
        DeadlineError: one lacks a replica for too long.
    """

    async def lagging() -> list[str]:
        return [
            f"{view.topic}-{view.partition} has the ISR {list(view.isr)} of {list(view.assignment)}"
            for view in await context.view.partitions()
            if set(view.assignment) & set(brokers) and set(view.assignment) - set(view.isr)
        ]

    await until(lagging, lambda seen: not seen, what="every replica in sync", timeout_s=timeout_s)

"""Stops brokers cleanly one after the other and starts each with its data as the later release `to`.

Only Apache Kafka on `process`. The broker keeps the protocol of its first release (`inter.broker.protocol.version`); a
broker that fails to start goes back to it. The run is judged as one of the first release.

Confirmed by: a clean stop and the new release in its log, a later registration, and membership in its ISRs.
"""

import asyncio
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanUpgrade
from harness.cluster.driver import CanKill
from harness.cluster.systems.system import system_named
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    inconclusive,
    mismatch,
    not_running,
)
from harness.contracts.parameters import Strict
from harness.contracts.restoring import all_in_sync, end_of_late_stops, start_stopped, stopped_of
from harness.errors import ClusterError, DeadlineError
from harness.system.waiting import until

CONFIRM_TIMEOUT_S = 60.0


class Parameters(Strict):
    """Parameters of an upgrade."""

    to: Annotated[str, Field(min_length=1, description="A later release than the one under test, for example 3.9.1")]
    stop_timeout_s: Annotated[float, Field(gt=0, le=100, description="Deadline for the end of each process")] = 30.0
    start_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="Deadline for the start of each; a broker that misses it is killed")
    ] = 90.0
    in_sync_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="How long to wait, before each stop, for replicas that are not in sync")
    ] = 60.0


class Upgrade(Fault):
    """Upgrades brokers in the order of the target; at most one of them is away at a time."""

    name: ClassVar[str] = "upgrade"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.LEADERSHIP})
    requires: ClassVar[tuple[str, ...]] = ("kill", "upgrade")
    witnesses: ClassVar[tuple[str, ...]] = ("broker_stop",)
    changes_release: ClassVar[bool] = True
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def release(self, parameters: BaseModel) -> str:
        """Return the new release."""
        assert isinstance(parameters, Parameters)
        return parameters.to

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record which brokers run, their releases, starts and registrations, and where their logs end."""
        status = await context.driver.status()
        registered = await context.view.registrations()
        return {
            "running": status.running(brokers),
            "systems": {str(broker): status.system_of(broker) for broker in brokers},
            "starts": status.starts(brokers),
            "czxids": {str(broker): registered[broker].czxid for broker in brokers if broker in registered},
            "log_ends": {str(broker): await context.state_changes.end_of(broker) for broker in brokers},
        }

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Upgrade one after the other, up to the first that does not stop or start in time.

        No broker is upgraded unless all run, and none has that release or a later one.
        """
        assert isinstance(context.driver, CanUpgrade)
        if not_running(injection, "upgrade") or _upgraded_before(injection):
            return injection
        own, systems = injection.parameters, injection.state["systems"]
        upgrades = {broker: system_named(systems[str(broker)]).upgraded(own["to"]) for broker in injection.targets}
        for broker, later in upgrades.items():
            await all_in_sync(context, injection.targets, own["in_sync_timeout_s"])
            try:
                await context.driver.stop_broker(broker, timeout_s=own["stop_timeout_s"])
            except DeadlineError as error:
                return injection.with_state(late={str(broker): str(error)})
            await context.driver.change_release(broker, later.name)
            if failed := await _why_not_started(context, broker, later.name, own["start_timeout_s"]):
                return injection.with_state(failed=failed)
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check each broker's clean stop, its reported release, a later registration, and its membership in its ISRs.

        The first two are in its own log.
        """
        if idle := not_running(injection, "upgrade"):
            return idle
        if before := _upgraded_before(injection):
            return inconclusive(f"broker {before} was that release before")
        if late := injection.state.get("late"):
            return mismatch("; ".join(late.values()))
        if "failed" in injection.state:
            return mismatch(injection.state["failed"])
        try:
            seen = [await _upgraded(context, injection, broker) for broker in injection.targets]
        except DeadlineError as error:
            return mismatch(str(error))
        return next((effect for effect in seen if isinstance(effect, Effect)), confirmed("; ".join(map(str, seen))))

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Start what does not run, with its earlier release; upgraded brokers stay upgraded."""
        assert isinstance(context.driver, CanUpgrade)
        await end_of_late_stops(context, injection)
        for broker in await stopped_of(context, injection.targets):
            await context.driver.change_release(broker, injection.state["systems"][str(broker)])
        await start_stopped(context, injection.targets)


async def _why_not_started(context: FaultContext, broker: int, release: str, timeout_s: float) -> str:
    """Start a broker; return why it does not run as a release, or nothing if it does. One that hangs is killed."""
    assert isinstance(context.driver, CanKill)
    try:
        async with asyncio.timeout(timeout_s):
            await context.driver.start_broker(broker)
    except TimeoutError:
        if not await stopped_of(context, [broker]):
            await context.driver.kill_broker(broker)
        return f"broker {broker} did not come up as {release} within {timeout_s:g} s"
    except ClusterError as error:
        return f"broker {broker} did not come up as {release}: {_in_short(error)}"
    return ""


def _in_short(error: ClusterError) -> str:
    """Return the first line of an error, and the last of a log that it quotes."""
    first, *quoted = str(error).splitlines()
    return " ".join([first, *quoted[-1:]])


def _upgraded_before(injection: Injection) -> list[int]:
    """Return the targets that were the release before anything was done."""
    systems, to = injection.state["systems"], injection.parameters["to"]
    return [broker for broker in injection.targets if systems[str(broker)].partition(":")[2] == to]


async def _upgraded(context: FaultContext, injection: Injection, broker: int) -> Effect | str:
    """Return what shows that a broker was upgraded, as text, or what contradicts it; raises DeadlineError."""
    state, to = injection.state, injection.parameters["to"]
    log_end, before = state["log_ends"][str(broker)], state["czxids"].get(str(broker), -1)
    stops, _ = await context.state_changes.after(broker, log_end, "broker_stop")
    if not (stops and stops[0]["controlled"]):
        return mismatch(f"broker {broker} logged {'a stop that was not controlled' if stops else 'no clean stop'}")

    async def release() -> str:
        return await context.state_changes.release(broker, log_end)

    what = f"the release that broker {broker} says it is"
    said_to_be = await until(release, bool, what=what, timeout_s=CONFIRM_TIMEOUT_S)
    if said_to_be != to:
        return mismatch(f"broker {broker} says that it is {said_to_be}, not {to}")
    registered = await until(
        context.view.registrations,
        lambda seen: broker in seen and seen[broker].czxid > before,
        what=f"a later registration of broker {broker}",
        timeout_s=CONFIRM_TIMEOUT_S,
    )

    async def outside() -> list[str]:
        partitions = await context.view.partitions()
        own = (view for view in partitions if broker in view.assignment and broker not in view.isr)
        return [f"{view.topic}-{view.partition} has the ISR {list(view.isr)}" for view in own]

    in_time = injection.parameters["in_sync_timeout_s"]
    await until(outside, lambda seen: not seen, what=f"broker {broker} in its ISRs", timeout_s=in_time)
    return (
        f"broker {broker} was {state['systems'][str(broker)]}, stopped cleanly, and says that it is {to};"
        f" registered again with czxid {registered[broker].czxid}, it is in its ISRs"
    )


PLUGIN: type[Fault] = Upgrade

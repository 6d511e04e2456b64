"""Restarts the brokers of the target one after the other, each when all replicas are in sync.

Each is stopped cleanly, or killed with `hard`.

Confirmed by: clean stops in the logs (none with `hard`) and later registrations.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.driver import CanKill
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    mismatch,
    not_running,
)
from harness.contracts.parameters import Strict
from harness.contracts.restoring import all_in_sync, end_of_late_stops, end_session, start_stopped
from harness.errors import DeadlineError
from harness.system.waiting import until

CONFIRM_TIMEOUT_S = 10.0


class Parameters(Strict):
    """Parameters of a rolling restart."""

    hard: Annotated[bool, Field(description="Kill each and end its session, instead of stopping it cleanly")] = False
    stop_timeout_s: Annotated[float, Field(gt=0, le=100, description="Deadline for the end of each process")] = 30.0
    in_sync_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="How long to wait, before each stop, for replicas that are not in sync")
    ] = 30.0


class RollingRestart(Fault):
    """Restarts brokers in the order of the target; at most one of them is away at a time."""

    name: ClassVar[str] = "rolling-restart"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.LEADERSHIP})
    requires: ClassVar[tuple[str, ...]] = ("kill",)
    witnesses: ClassVar[tuple[str, ...]] = ("broker_stop",)
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record which brokers run, how often each was started, its registration, and where its log ends."""
        status = await context.driver.status()
        registered = await context.view.registrations()
        return {
            "running": status.running(brokers),
            "starts": status.starts(brokers),
            "czxids": {str(broker): registered[broker].czxid for broker in brokers if broker in registered},
            "log_ends": {str(broker): await context.state_changes.end_of(broker) for broker in brokers},
        }

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Restart one after the other, up to the first that does not stop in time; no broker, unless all run."""
        if not_running(injection, "restart"):
            return injection
        for broker in injection.targets:
            await all_in_sync(context, injection.targets, injection.parameters["in_sync_timeout_s"])
            try:
                await _end(context, injection, broker)
            except DeadlineError as error:
                return injection.with_state(late={str(broker): str(error)})
            await context.driver.start_broker(broker)
        await all_in_sync(context, injection.targets, injection.parameters["in_sync_timeout_s"])
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check each broker's clean stop in its own log, and a later registration."""
        if idle := not_running(injection, "restart"):
            return idle
        if late := injection.state.get("late"):
            return mismatch("; ".join(late.values()))
        hard = injection.parameters["hard"]
        for broker in injection.targets:
            log_end = injection.state["log_ends"][str(broker)]
            stops, _ = await context.state_changes.after(broker, log_end, "broker_stop")
            if hard and stops:
                return mismatch(f"broker {broker} logged a stop, and was to be killed")
            if not hard and not (stops and stops[0]["controlled"]):
                logged = "a stop that was not controlled" if stops else "no clean stop"
                return mismatch(f"broker {broker} logged {logged}")
        before = injection.state["czxids"]
        try:
            new = await until(
                context.view.registrations,
                lambda seen: all(it in seen and seen[it].czxid > before.get(str(it), -1) for it in injection.targets),
                what="a later registration of every broker",
                timeout_s=CONFIRM_TIMEOUT_S,
            )
        except DeadlineError as error:
            return mismatch(str(error))
        ended = "ended without a word" if hard else "stopped cleanly"
        details = [f"broker {it} {ended}, registered again with czxid {new[it].czxid}" for it in injection.targets]
        return confirmed("; ".join(details))

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Wait for the end of brokers that were late, and start what does not run."""
        await end_of_late_stops(context, injection)
        await start_stopped(context, injection.targets)


async def _end(context: FaultContext, injection: Injection, broker: int) -> None:
    """Stop or kill one; raises DeadlineError when it does not stop in time."""
    if injection.parameters["hard"]:
        assert isinstance(context.driver, CanKill)
        await context.driver.kill_broker(broker)
        await end_session(context, broker)
    else:
        await context.driver.stop_broker(broker, timeout_s=injection.parameters["stop_timeout_s"])


PLUGIN: type[Fault] = RollingRestart

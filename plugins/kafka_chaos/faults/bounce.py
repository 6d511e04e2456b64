"""Kills a broker with SIGKILL, ends its session, and starts it again before the session could time out.

On an existing cluster the command `bounce` does it. With `end_session: false` its id is still registered at the
start, so it exits, as Kafka's broker does; it is started once more when its old session has ended.

Confirmed by: another process and a later registration, or the end of the new process.
"""

import asyncio
import contextlib
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanBounce, CanStartEarly
from harness.cluster.driver import BrokerStatus, CanKill
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
from harness.contracts.parameters import OfZookeeper, Strict
from harness.contracts.restoring import end_session, start_stopped
from harness.contracts.targets import Target
from harness.errors import DeadlineError
from harness.system.process_state import ProcessState
from harness.system.waiting import until
from harness.zookeeper.view import Registration

CONFIRM_TIMEOUT_S = 10.0
BY_COMMAND_TIMEOUT_S = 110.0
"""What manages a broker may wait before it starts it, and for what it needs."""


class Parameters(Strict):
    """Parameters of a bounce."""

    end_session: Annotated[
        bool, OfZookeeper(), Field(description="End its ZooKeeper session, so that its id is free when it returns")
    ] = True
    come_back_timeout_s: Annotated[
        float,
        Field(gt=0, le=100, description="Deadline for a broker whose session was not ended to end or to register"),
    ] = 30.0


class Bounce(Fault):
    """Restarts brokers so fast that the controller may see only another registration of the same broker."""

    name: ClassVar[str] = "bounce"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset()
    requires: ClassVar[tuple[str, ...]] = ("early-start", "kill")
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def min_hold_s(self, target: Target, parameters: BaseModel, session_timeout_s: float) -> float:
        """Return the session time-out, which it waits out unless the session is ended."""
        assert isinstance(parameters, Parameters)
        return 0.0 if parameters.end_session else session_timeout_s

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record which brokers run, how often each was started, and their registrations."""
        status = await context.driver.status()
        registered = await context.view.registrations()
        running = status.running(brokers)
        return {
            "running": running,
            "starts": status.starts(running),
            "by_command": isinstance(context.driver, CanBounce) and await context.driver.bounces_by_command(),
            "czxids": {str(broker): registered[broker].czxid for broker in running if broker in registered},
        }

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Kill them and start them again."""
        again = _bounced if injection.parameters["end_session"] else _hurried
        if injection.state["by_command"]:
            again = _by_command
        await asyncio.gather(*(again(context, broker) for broker in injection.state["running"]))
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """See another process, and a later registration, or none where its session was not ended."""
        if idle := not_running(injection, "bounce"):
            return idle
        if not injection.parameters["end_session"] and not injection.state["by_command"]:
            return await _seen_in_vain(context, injection)
        try:
            new = await until(
                context.view.registrations,
                lambda seen: all(_is_new(injection, broker, seen) for broker in injection.targets),
                what="a later registration",
                timeout_s=BY_COMMAND_TIMEOUT_S if injection.state["by_command"] else CONFIRM_TIMEOUT_S,
            )
        except DeadlineError as error:
            return mismatch(str(error))
        if not injection.state["by_command"] and (same := await _not_started(context, injection)):
            return mismatch(f"broker {same} was not started again")
        details = [f"broker {broker} is registered again, czxid {new[broker].czxid}" for broker in injection.targets]
        return confirmed("; ".join(details))

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Start what does not run."""
        await start_stopped(context, injection.targets)


async def _by_command(context: FaultContext, broker: int) -> None:
    assert isinstance(context.driver, CanBounce)
    await context.driver.bounce_broker(broker)


async def _bounced(context: FaultContext, broker: int) -> None:
    assert isinstance(context.driver, CanKill)
    await context.driver.kill_broker(broker)
    await end_session(context, broker)
    await context.driver.start_broker(broker)


async def _hurried(context: FaultContext, broker: int) -> None:
    assert isinstance(context.driver, CanKill)
    assert isinstance(context.driver, CanStartEarly)
    await context.driver.kill_broker(broker)
    await context.driver.start_early(broker)


async def _not_started(context: FaultContext, injection: Injection) -> list[int]:
    status = await context.driver.status()
    return [it for it in injection.targets if status.broker(it).starts <= injection.state["starts"][str(it)]]


async def _seen_in_vain(context: FaultContext, injection: Injection) -> Effect:
    """Check that the new processes registered nothing: they have ended, or only the old registration is gone."""
    if same := await _not_started(context, injection):
        return mismatch(f"broker {same} was not started again")
    seen: dict[int, tuple[BrokerStatus, int | None]] = {}

    async def undecided() -> list[int]:
        status, registered = await context.driver.status(), await context.view.registrations()
        for broker in injection.targets:
            seen[broker] = status.broker(broker), registered[broker].czxid if broker in registered else None
        return [
            it
            for it, (now, _) in seen.items()
            if now.state != ProcessState.STOPPED and not _is_new(injection, it, registered)
        ]

    with contextlib.suppress(DeadlineError):
        await until(
            undecided,
            lambda left: not left,
            what="the end of a broker whose id is taken",
            timeout_s=injection.parameters["come_back_timeout_s"],
        )
    return _in_vain(injection, seen)


def _in_vain(injection: Injection, seen: dict[int, tuple[BrokerStatus, int | None]]) -> Effect:
    details = []
    for broker, (status, czxid) in seen.items():
        if status.state == ProcessState.STOPPED:
            details.append(f"broker {broker} ended, as its id was taken")
        elif czxid is None:
            details.append(f"broker {broker} runs, and its registration is gone with its old session")
        elif czxid == injection.state["czxids"].get(str(broker)):
            return mismatch(f"broker {broker} runs, and its old session has not ended")
        else:
            return inconclusive(f"broker {broker} registered again, czxid {czxid}: its old session had ended before")
    return confirmed("; ".join(details))


def _is_new(injection: Injection, broker: int, seen: dict[int, Registration]) -> bool:
    return broker in seen and seen[broker].czxid > injection.state["czxids"].get(str(broker), -1)


PLUGIN: type[Fault] = Bounce

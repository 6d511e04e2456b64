"""Ends a broker's ZooKeeper session: the broker lives, its ephemeral znodes are gone, and it registers again.

The harness takes the session over with its id and password and closes it.

Confirmed by: another owner of `/brokers/ids/<id>`; for the controller, the next controller epoch.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.contracts.controllers import next_controller
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    inconclusive,
    mismatch,
)
from harness.contracts.parameters import Strict
from harness.errors import DeadlineError
from harness.system.waiting import until
from harness.zookeeper.view import Registration


class Parameters(Strict):
    """Parameters of an expiry."""

    times: Annotated[
        int, Field(ge=1, le=20, description="How many sessions in a row, each as soon as it has registered again")
    ] = 1
    confirm_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="Deadline for the new registration and the next controller")
    ] = 30.0


class ExpireSession(Fault):
    """Expires sessions; the broker registers again, and another controller is elected if it was one."""

    name: ClassVar[str] = "expire-session"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset()
    zookeeper: ClassVar[bool] = True
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the sessions, and the controller epoch."""
        registered = await context.view.registrations()
        controller = await context.view.controller()
        return {
            "sessions": {str(broker): registered[broker].session for broker in brokers if broker in registered},
            "czxids": {str(broker): registered[broker].czxid for broker in brokers if broker in registered},
            "controller": controller.broker_id,
            "controller_epoch": controller.controller_epoch,
        }

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """End the sessions, and their successors if requested; record the last ones that were ended."""
        for session in injection.state["sessions"].values():
            await context.zookeeper.expire(session)
        current = injection
        for _ in range(injection.parameters["times"] - 1):
            registered = await self._registered_anew(context, current)
            current = injection.with_state(
                sessions={str(broker): registered[broker].session for broker in injection.targets},
                czxids={str(broker): registered[broker].czxid for broker in injection.targets},
            )
            for session in current.state["sessions"].values():
                await context.zookeeper.expire(session)
        return current

    async def _registered_anew(self, context: FaultContext, injection: Injection) -> dict[int, Registration]:
        return await until(
            context.view.registrations,
            lambda seen: all(_is_new(injection, broker, seen) for broker in injection.targets),
            what="a registration by a new session",
            timeout_s=injection.parameters["confirm_timeout_s"],
        )

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Wait until every broker is registered by another session and, if the controller was hit, the epoch grew."""
        sessions: dict[str, str] = injection.state["sessions"]
        without = [broker for broker in injection.targets if str(broker) not in sessions]
        if without:
            return inconclusive(f"broker {without} had no session to expire")
        timeout_s = injection.parameters["confirm_timeout_s"]
        try:
            new = await self._registered_anew(context, injection)
            details = [
                f"session {sessions[str(broker)]} became {new[broker].session}, czxid {new[broker].czxid}"
                for broker in injection.targets
            ]
            if injection.state["controller"] in injection.targets:
                details.append(await self._succession(context, injection, timeout_s))
        except DeadlineError as error:
            return mismatch(str(error))
        return confirmed("; ".join(details))

    async def _succession(self, context: FaultContext, injection: Injection, timeout_s: float) -> str:
        old_epoch = injection.state["controller_epoch"]
        controller = await next_controller(
            context,
            lambda seen: seen.controller_epoch > old_epoch and seen.broker_id >= 0,
            what=f"a controller epoch above {old_epoch}",
            timeout_s=timeout_s,
        )
        return f"broker {controller.broker_id} is controller in epoch {controller.controller_epoch}, after {old_epoch}"

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Nothing to undo: the broker itself opens a new session."""


def _is_new(injection: Injection, broker: int, seen: dict[int, Registration]) -> bool:
    return (
        broker in seen
        and seen[broker].session != injection.state["sessions"][str(broker)]
        and seen[broker].czxid > injection.state["czxids"][str(broker)]
    )


PLUGIN: type[Fault] = ExpireSession

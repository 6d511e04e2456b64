"""Deletes `/controller`, as often as asked, so that another controller is elected.

A broker that the target names must be the controller.

Confirmed by: the controller epoch grew by exactly that number.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.contracts.controllers import next_controller
from harness.contracts.faults import (
    CONTROLLER,
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    mismatch,
)
from harness.contracts.parameters import Strict
from harness.contracts.targets import Role
from harness.errors import ClusterError, DeadlineError
from harness.system.waiting import until
from harness.values import NO_BROKER
from harness.zookeeper.view import Controller


class Parameters(Strict):
    """Parameters of moving the controller."""

    times: Annotated[int, Field(ge=1, le=100, description="How often, one after the other")] = 1
    step_timeout_s: Annotated[float, Field(gt=0, le=100, description="Deadline for each next controller")] = 30.0


class MoveController(Fault):
    """Deletes `/controller`, as administrators do when a controller is stuck."""

    name: ClassVar[str] = "move-controller"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset()
    zookeeper: ClassVar[bool] = True
    accepts: ClassVar[tuple[Role, ...]] = (Role.CONTROLLER, Role.IDS)
    exclusive_resources: ClassVar[frozenset[str]] = frozenset({CONTROLLER})
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the controller and its epoch."""
        controller = await context.view.controller()
        if controller.broker_id not in (NO_BROKER, *brokers):
            raise ClusterError(f"broker {list(brokers)} is not controller, {controller.broker_id} is")
        return {"controller_epoch": controller.controller_epoch}

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Delete it, and wait for the next controller before deleting it again."""
        reigns: list[str] = []
        for _ in range(injection.parameters["times"]):
            before = await context.view.controller()
            if not await context.zookeeper.delete("/controller"):
                raise ClusterError("there was no controller to depose")
            reigns.append(_described(await self._next(context, injection, before)))
        return injection.with_state(reigns=reigns)

    async def _next(self, context: FaultContext, injection: Injection, before: Controller) -> Controller:
        return await next_controller(
            context,
            lambda seen: seen.broker_id != NO_BROKER and seen.controller_epoch > before.controller_epoch,
            what=f"a controller after {_described(before)}",
            timeout_s=injection.parameters["step_timeout_s"],
        )

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that the controller epoch grew by exactly one each time."""
        epoch, times = injection.state["controller_epoch"], injection.parameters["times"]
        try:
            seen = await until(
                context.view.controller,
                lambda seen: seen.broker_id != NO_BROKER and seen.controller_epoch >= epoch + times,
                what=f"controller epoch {epoch + times}",
                timeout_s=injection.parameters["step_timeout_s"],
            )
        except DeadlineError as error:
            return mismatch(str(error))
        if seen.controller_epoch != epoch + times:
            grown = f"controller epoch {epoch} became {seen.controller_epoch}, not {epoch + times}"
            return mismatch(grown)
        return confirmed("; ".join(injection.state["reigns"]))

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Nothing to undo: the brokers elect the next controller themselves."""


def _described(controller: Controller) -> str:
    return f"broker {controller.broker_id} is controller in epoch {controller.controller_epoch}"


PLUGIN: type[Fault] = MoveController

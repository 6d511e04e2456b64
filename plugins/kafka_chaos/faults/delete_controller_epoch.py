"""Deletes `/controller_epoch`, so that the controller cannot write. Heals by writing the next epoch and an election.

The old epoch is not written again: two controllers would share it. If the epoch began at 1, brokers would refuse every
controller until they restart. No other fault may touch the controller meanwhile.

Confirmed by: the missing znode, and a request that the controller does not carry out.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.contracts.administration import ELECTIONS, EMPTY_ELECTION, acting_controller
from harness.contracts.faults import (
    CONTROLLER,
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
from harness.contracts.targets import Role
from harness.errors import ClusterError, DeadlineError
from harness.system.waiting import until

PATH = "/controller_epoch"


class Parameters(Strict):
    """Parameters of a deleted controller epoch."""

    silent_s: Annotated[float, Field(gt=0, le=30, description="Seconds for which the controller must not act")] = 1.0
    step_timeout_s: Annotated[float, Field(gt=0, le=100, description="Deadline for the next controller")] = 30.0


class DeleteControllerEpoch(Fault):
    """Deletes the znode whose version guards every write of the controller."""

    name: ClassVar[str] = "delete-controller-epoch"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.PROCESSES})
    zookeeper: ClassVar[bool] = True
    accepts: ClassVar[tuple[Role, ...]] = (Role.CONTROLLER,)
    exclusive_resources: ClassVar[frozenset[str]] = frozenset({CONTROLLER})
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the epoch, which would be lost."""
        return {"epoch": (await context.view.controller()).controller_epoch}

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Delete it, and ask for an election of no partition."""
        if not await context.zookeeper.delete(PATH):
            raise ClusterError(f"there was no {PATH}")
        await context.zookeeper.create(ELECTIONS, EMPTY_ELECTION)
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that the znode is gone, and that the request is not carried out."""
        silent_s = injection.parameters["silent_s"]
        try:
            sign = await until(
                lambda: _sign_of_an_epoch(context),
                bool,
                what="a controller that writes",
                timeout_s=silent_s,
                every_s=0.1,
            )
        except DeadlineError:
            epoch = injection.state["epoch"]
            return confirmed(f"{PATH}, which was {epoch}, is gone, and the controller wrote nothing for {silent_s:g} s")
        elected = await context.zookeeper.exists(PATH) and await _epoch(context) != injection.state["epoch"]
        return inconclusive(f"{sign}: another controller was elected meanwhile") if elected else mismatch(sign)

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Write the next epoch, which no controller has had, and depose the controller, whose version is stale."""
        if not await context.zookeeper.exists(PATH) or await _epoch(context) < injection.state["epoch"]:
            following = str(injection.state["epoch"] + 1).encode()
            if not await context.zookeeper.create(PATH, following):
                await context.zookeeper.write(PATH, following)
            await context.zookeeper.delete("/controller")
        await acting_controller(context, timeout_s=injection.parameters["step_timeout_s"])


async def _sign_of_an_epoch(context: FaultContext) -> str:
    """Return what shows that there is an epoch, or a controller that acts without it; empty for nothing."""
    if await context.zookeeper.exists(PATH):
        return f"there is a {PATH}"
    return "" if await context.zookeeper.exists(ELECTIONS) else f"a controller carried out the request in {ELECTIONS}"


async def _epoch(context: FaultContext) -> int:
    return (await context.view.controller()).controller_epoch


PLUGIN: type[Fault] = DeleteControllerEpoch

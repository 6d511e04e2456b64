"""Writes another broker, a broker that does not exist, or no JSON into `/controller`. Heals by deleting it.

The controller resigns, and no leader is elected until the fault is healed. No other fault may touch the controller.

Confirmed by: the content of the znode, and a request that no controller carries out. A controller that was taking over
may carry out one, and is then asked again.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from harness.contracts.administration import ELECTIONS, EMPTY_ELECTION, acting_controller
from harness.contracts.controllers import NO_BROKER, PATH, content
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

ACTED = f"a controller carried out the request in {ELECTIONS}"


class Parameters(Strict):
    """Parameters of what `/controller` names."""

    names: Annotated[
        Literal["another", "no-broker", "nonsense"],
        Field(description="Another live broker, a broker that does not exist, or no JSON at all"),
    ] = "another"
    silent_s: Annotated[float, Field(gt=0, le=30, description="Seconds for which no broker may act as controller")] = (
        1.0
    )
    step_timeout_s: Annotated[float, Field(gt=0, le=100, description="Deadline for the next controller")] = 30.0


class OverwriteController(Fault):
    """Writes another broker's id into `/controller`, which is still owned by the old controller's session."""

    name: ClassVar[str] = "overwrite-controller"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.PROCESSES})
    zookeeper: ClassVar[bool] = True
    accepts: ClassVar[tuple[Role, ...]] = (Role.CONTROLLER,)
    exclusive_resources: ClassVar[frozenset[str]] = frozenset({CONTROLLER})
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the controller's epoch, and the other live brokers."""
        controller = await context.view.controller()
        others = sorted(set(await context.view.registrations()) - {controller.broker_id})
        return {"epoch": controller.controller_epoch, "others": others}

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Overwrite it, and ask for an election of no partition."""
        if injection.parameters["names"] == "another" and not injection.state["others"]:
            raise ClusterError("no other broker lives that could be named")
        if not await context.zookeeper.write(PATH, _content(injection)):
            raise ClusterError("there was no controller to overwrite")
        await context.zookeeper.create(ELECTIONS, EMPTY_ELECTION)
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that `/controller` is unchanged, in the old epoch, and that no controller carries out the request."""
        silent_s = injection.parameters["silent_s"]
        silent = confirmed(f"{PATH} is {_content(injection).decode()}, and no controller acted for {silent_s:g} s")
        try:
            sign = await _until_a_controller_acts(context, injection)
            if sign == ACTED:  # it was taking over, and had seen the request before it saw what was written
                await context.zookeeper.create(ELECTIONS, EMPTY_ELECTION)
                sign = await _until_a_controller_acts(context, injection)
        except DeadlineError:
            return silent
        elected = (await context.view.controller()).controller_epoch > injection.state["epoch"]
        return inconclusive(f"{sign}: another controller was elected meanwhile") if elected else mismatch(sign)

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Delete what was written, and wait for a controller that was elected, and acts."""
        if await context.zookeeper.read(PATH) == _content(injection):
            await context.zookeeper.delete(PATH)
        await acting_controller(context, timeout_s=injection.parameters["step_timeout_s"])


async def _until_a_controller_acts(context: FaultContext, injection: Injection) -> str:
    """Return what shows that there is or will be a controller; raises DeadlineError when nothing does in time."""
    return await until(
        lambda: _sign_of_a_controller(context, injection),
        bool,
        what="a controller that acts",
        timeout_s=injection.parameters["silent_s"],
        every_s=0.1,
    )


async def _sign_of_a_controller(context: FaultContext, injection: Injection) -> str:
    """Return what shows that there is or will be a controller; empty for nothing."""
    if await context.zookeeper.read(PATH) != _content(injection):
        return f"{PATH} does not hold what was written"
    return "" if await context.zookeeper.exists(ELECTIONS) else ACTED


def _content(injection: Injection) -> bytes:
    """Return the content to write: as a controller's, without a timestamp."""
    names = injection.parameters["names"]
    if names == "nonsense":
        return b"not a controller"
    broker = NO_BROKER if names == "no-broker" else injection.state["others"][0]
    return content(broker)


PLUGIN: type[Fault] = OverwriteController

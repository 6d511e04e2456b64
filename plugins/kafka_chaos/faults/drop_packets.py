"""Drops all packets of a broker, or in one direction, without a reset. Heals by letting them pass.

Only on `docker`, with root. Unlike with `isolate`, new connections are not answered either.

Confirmed by: the kernel's count of dropped packets, and a new client without an answer.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanDropPackets, Direction
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed_once,
    not_running,
)
from harness.contracts.parameters import Strict
from harness.system.waiting import until

SEE_TIMEOUT_S = 30.0


class Parameters(Strict):
    """Parameters of the packets."""

    direction: Annotated[
        Direction, Field(strict=False, description="both, or only one direction: inbound, outbound")
    ] = Direction.BOTH


class DropPackets(Fault):
    """Drops all packets of brokers; the driver itself ends that after the fault's duration."""

    name: ClassVar[str] = "drop-packets"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.MESSAGES})
    requires: ClassVar[tuple[str, ...]] = ("packets",)
    min_visible_s: ClassVar[float] = 2.0
    """A client waits for a second before it counts as left without an answer."""
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the duration, and which brokers run."""
        return {"at_most_s": duration_s, "running": (await context.driver.status()).alive(brokers)}

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Drop the packets of those that run."""
        assert isinstance(context.driver, CanDropPackets)
        direction, at_most_s = Direction(injection.parameters["direction"]), injection.state["at_most_s"]
        for broker in injection.state["running"]:
            await context.driver.drop_packets(broker, direction, at_most_s=at_most_s)
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that packets of each were dropped, and a client got no answer."""
        if idle := not_running(injection, "cut off"):
            return idle
        driver = context.driver
        assert isinstance(driver, CanDropPackets)

        async def reached() -> list[int]:
            return [
                broker
                for broker in injection.targets
                if await driver.answers_all(broker, 1) or not await driver.dropped_packets(broker)
            ]

        timeout_s = min(SEE_TIMEOUT_S, injection.state["at_most_s"])
        dropped = until(reached, lambda seen: not seen, what="every packet dropped", timeout_s=timeout_s)
        detail = f"packets of broker {list(injection.targets)} were dropped, and a client was left waiting"
        return await confirmed_once(dropped, detail)

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Stop dropping."""
        assert isinstance(context.driver, CanDropPackets)
        for broker in injection.targets:
            await context.driver.pass_packets(broker)


PLUGIN: type[Fault] = DropPackets

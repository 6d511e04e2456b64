"""A broker's links are cut: to its peers, its clients, ZooKeeper or all, both ways or one; nobody is told."""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.powers import CanIsolate, CanReset, Side
from harness.contracts.faults import Arena, BrokerFault, Effect, Fault, Injection, confirmed, inconclusive, mismatch
from harness.contracts.links import LinkParameters, links_of, probe, undisturbed

PROBE_TIMEOUT_S = 0.5


class Parameters(LinkParameters):
    """What the scenario may say about an isolation; its length is the fault's `duration_s`."""

    reset: Annotated[
        bool, Field(description="Break open connections too; otherwise they stay half open, and nobody is told")
    ] = False


class Isolate(BrokerFault):
    """Cuts brokers off; the driver itself heals the links after the fault's duration."""

    name: ClassVar[str] = "isolate"
    requires: ClassVar[tuple[str, ...]] = ("isolate", "probe", "reset")
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, arena: Arena, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Note how long."""
        return {"at_most_s": duration_s}

    async def inject(self, arena: Arena, injection: Injection) -> Injection:
        """Cut the links."""
        driver = arena.driver
        assert isinstance(driver, CanIsolate)
        assert isinstance(driver, CanReset)
        sides, direction = links_of(injection.parameters)
        for broker in injection.targets:
            if injection.parameters["reset"]:
                await driver.reset_connections(broker, sides)
            await driver.isolate(broker, sides, direction, at_most_s=injection.state["at_most_s"])
        return injection

    async def confirm(self, arena: Arena, injection: Injection) -> Effect:
        """Send something over every link that was cut, and see that it does not come through."""
        timeout_s = min(PROBE_TIMEOUT_S, injection.state["at_most_s"] / 2)
        probed = await probe(arena.driver, injection, timeout_s=timeout_s)
        if not probed:
            return inconclusive("there is no such link")
        through = [each.described for each in probed if each.taken_s is not None]
        if through:
            return mismatch(f"a probe came through: {', '.join(through)}")
        if Side.PEERS in links_of(injection.parameters)[0] and (why := await undisturbed(arena.driver)):
            return inconclusive(why)
        return confirmed(f"no probe came through over {len(probed)} links")

    async def heal(self, arena: Arena, injection: Injection) -> None:
        """Heal the links; those that are healed already are left alone."""
        assert isinstance(arena.driver, CanIsolate)
        for broker in injection.targets:
            await arena.driver.rejoin(broker)


PLUGIN: type[Fault] = Isolate

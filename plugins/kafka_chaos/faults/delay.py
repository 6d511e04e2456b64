"""A broker's links are slow: everything on them takes longer, in its order."""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.powers import CanDelay
from harness.contracts.faults import Arena, BrokerFault, Effect, Fault, Injection, inconclusive
from harness.contracts.links import LinkParameters, links_of, probe
from harness.verdict import FaultVerdict

PROBE_TIMEOUT_S = 2.0
"""Beyond the delay itself."""


class Parameters(LinkParameters):
    """What the scenario may say about a delay; its length is the fault's `duration_s`."""

    extra_ms: Annotated[float, Field(gt=0, le=60_000, description="How much longer everything takes")] = 200.0


class Delay(BrokerFault):
    """Makes links slow; the driver itself makes them quick again after the fault's duration."""

    name: ClassVar[str] = "delay"
    requires: ClassVar[tuple[str, ...]] = ("delay", "probe")
    composes: ClassVar[bool] = True
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, arena: Arena, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Note how long."""
        return {"at_most_s": duration_s}

    async def inject(self, arena: Arena, injection: Injection) -> Injection:
        """Slow the links down."""
        assert isinstance(arena.driver, CanDelay)
        sides, direction = links_of(injection.parameters)
        extra_s = injection.parameters["extra_ms"] / 1000
        for broker in injection.targets:
            await arena.driver.delay(broker, sides, direction, extra_s=extra_s, at_most_s=injection.state["at_most_s"])
        return injection

    async def confirm(self, arena: Arena, injection: Injection) -> Effect:
        """Send something over every slow link, and see how long it takes; a link that is cut too says nothing."""
        extra_s = injection.parameters["extra_ms"] / 1000
        probed = await probe(arena.driver, injection, timeout_s=extra_s + PROBE_TIMEOUT_S)
        taken = [each.taken_s for each in probed if each.taken_s is not None]
        if not taken:
            return inconclusive("no probe came through at all")
        return Effect(
            verdict=FaultVerdict.CONFIRMED if min(taken) >= extra_s else FaultVerdict.MISMATCH,
            detail=f"the quickest of {len(taken)} probes took {min(taken) * 1000:.0f} ms",
        )

    async def heal(self, arena: Arena, injection: Injection) -> None:
        """Make the links quick again; those that are so already are left alone."""
        assert isinstance(arena.driver, CanDelay)
        for broker in injection.targets:
            await arena.driver.remove_delay(broker)


PLUGIN: type[Fault] = Delay

"""Slows a broker's links: a fixed delay, a random delay, or a limited rate. The order of messages stays.

Confirmed by: probes over each slow link, by how long they take and how far they are apart.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field, model_validator

from harness.cluster.capabilities import CanDelay, Slowness
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
from harness.contracts.links import LinkParameters, Probed, links_of, probe, sure

PROBE_TIMEOUT_S = 2.0
"""Beyond the delay itself, and …"""
QUEUE_TIMEOUT_S = 10.0
"""… the time for bytes queued before the probe on a link with a rate."""
PASSING_S = 0.1
"""A probe is long enough to take this time on a link with a rate."""
DRAWS = 12
"""Number of probes that shows jitter: all fall into a quarter of its range once in 300,000 times."""
SHARE_SEEN = 0.25


class Parameters(LinkParameters):
    """Parameters of a delay; its length is the fault's `duration_s`."""

    extra_ms: Annotated[float, Field(ge=0, le=60_000, description="Added delay")] = 200.0
    jitter_ms: Annotated[
        float, Field(ge=0, le=60_000, description="Further delay, drawn for each message up to this")
    ] = 0.0
    bytes_per_s: Annotated[
        int | None, Field(gt=0, le=10_000_000, description="Bytes a second that pass over each link; none: no limit")
    ] = None

    @model_validator(mode="after")
    def _slows(self) -> Self:
        if not (self.extra_ms or self.jitter_ms or self.bytes_per_s):
            raise ValueError("a delay takes an extra_ms or a jitter_ms above 0, or a bytes_per_s")
        return self


class Delay(Fault):
    """Makes links slow; the driver itself ends that after the fault's duration."""

    name: ClassVar[str] = "delay"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.MESSAGES})
    requires: ClassVar[tuple[str, ...]] = ("delay", "probe")
    controllers: ClassVar[bool] = True
    may_overlap: ClassVar[bool] = True
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the duration."""
        return {"at_most_s": duration_s}

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Slow the links down."""
        assert isinstance(context.driver, CanDelay)
        sides, direction = links_of(injection.parameters)
        slowness, at_most_s = _slowness(injection), injection.state["at_most_s"]
        for broker in injection.targets:
            await context.driver.delay(broker, sides, direction, slowness, at_most_s=at_most_s)
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Probe every slow link, and measure the time; a link that is cut too proves nothing."""
        return await sure(context.driver, injection, await self._shown(context, injection))

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Remove the delay; no-op for links without one."""
        assert isinstance(context.driver, CanDelay)
        for broker in injection.targets:
            await context.driver.remove_delay(broker)

    async def _shown(self, context: FaultContext, injection: Injection) -> Effect:
        slowness = _slowness(injection)
        rate = slowness.bytes_per_s
        size_bytes = 1 if rate is None else max(1, int(rate * PASSING_S))
        timeout_s = slowness.extra_s + slowness.jitter_s + (PROBE_TIMEOUT_S if rate is None else QUEUE_TIMEOUT_S)
        taken = _answered_s(await probe(context.driver, injection, timeout_s=timeout_s, size_bytes=size_bytes))
        if not taken:
            return inconclusive("no probe came through at all")
        min_hold_s = slowness.extra_s + (0.0 if rate is None else size_bytes / rate)
        detail = f"the quickest of {len(taken)} probes took {min(taken) * 1000:.0f} ms"
        if min(taken) < min_hold_s:
            return mismatch(detail)
        if not slowness.jitter_s:
            return confirmed(detail)
        draws = [await probe(context.driver, injection, timeout_s=timeout_s) for _ in range(-(-DRAWS // len(taken)))]
        drawn = [taken_s for probed in draws for taken_s in _answered_s(probed)] or taken
        apart_s = max(drawn) - min(drawn)
        detail = f"{detail}, and {len(drawn)} more were up to {apart_s * 1000:.0f} ms apart"
        return confirmed(detail) if apart_s >= slowness.jitter_s * SHARE_SEEN else mismatch(detail)


def _slowness(injection: Injection) -> Slowness:
    own = injection.parameters
    return Slowness(
        extra_s=own["extra_ms"] / 1000,
        jitter_s=own["jitter_ms"] / 1000,
        bytes_per_s=own["bytes_per_s"],
    )


def _answered_s(probed: Sequence[Probed]) -> list[float]:
    """Return the seconds of the probes that came through."""
    return [each.taken_s for each in probed if each.taken_s is not None]


PLUGIN: type[Fault] = Delay

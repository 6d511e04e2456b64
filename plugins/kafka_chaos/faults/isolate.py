"""Cuts a broker's links to peers, clients, ZooKeeper or controllers, in one direction or both. Heals by restoring them.

Connections stay half open unless `reset`. With `whole_s` links flap: cut for `cut_s`, then whole for `whole_s`.

Confirmed by: a probe over each cut link; for links that flap, some probes are held and some pass.
"""

import asyncio
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field, model_validator

from harness.cluster.capabilities import CanIsolate, CanReset, Rhythm
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

PROBE_TIMEOUT_S = 0.5
SHORTEST_S = 0.2
CUT_S = 1.0
LATE_S = 2.0
"""Deadline for a probe over a link that was just healed."""
SHARE_HELD = 0.25
"""A probe that took at least this share of a cut was held by it; others take far less, …"""
LONGEST_STALL_S = 0.15
"""… except for stalls of this process or the relay on a busy machine."""
MOST_PERIODS = 5


class Parameters(LinkParameters):
    """Parameters of an isolation; its length is the fault's `duration_s`."""

    reset: Annotated[bool, Field(description="Also break open connections; otherwise they stay half open")] = False
    whole_s: Annotated[
        float,
        Field(
            ge=0,
            le=10,
            description="For links that flap: seconds that links are whole after each cut; 0: cut all the time",
        ),
    ] = 0.0
    cut_s: Annotated[float, Field(ge=SHORTEST_S, le=10, description="For links that flap: seconds of each cut")] = CUT_S

    @model_validator(mode="after")
    def _shows(self) -> Self:
        if 0 < self.whole_s < SHORTEST_S:
            raise ValueError(f"a whole_s is 0, or {SHORTEST_S} or more")
        if self.cut_s != CUT_S and not self.whole_s:
            raise ValueError("a cut_s takes a whole_s: links that do not flap are cut all the time")
        return self


class Isolate(Fault):
    """Isolates brokers; the driver itself heals the links after the fault's duration."""

    name: ClassVar[str] = "isolate"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.MESSAGES})
    requires: ClassVar[tuple[str, ...]] = ("isolate", "probe", "reset")
    controllers: ClassVar[bool] = True
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def conflicts_with(self, parameters: BaseModel) -> frozenset[str]:
        """Return faults that cut the same links all the time, which would hide that they flap."""
        assert isinstance(parameters, Parameters)
        return frozenset({"isolate", "partition"} if parameters.whole_s else ())

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the duration."""
        return {"at_most_s": duration_s}

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Cut the links."""
        driver = context.driver
        assert isinstance(driver, CanIsolate)
        assert isinstance(driver, CanReset)
        sides, direction = links_of(injection.parameters)
        for broker in injection.targets:
            if injection.parameters["reset"]:
                await driver.reset_connections(broker, sides)
            await driver.isolate(
                broker, sides, direction, at_most_s=injection.state["at_most_s"], rhythm=_rhythm(injection)
            )
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Probe every cut link: no probe passes, or for links that flap, only some do."""
        rhythm = _rhythm(injection)
        shown = _silent(context, injection) if rhythm is None else _flapping(context, injection, rhythm)
        return await sure(context.driver, injection, await shown)

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Heal the links; no-op for those that are healed."""
        assert isinstance(context.driver, CanIsolate)
        for broker in injection.targets:
            await context.driver.rejoin(broker)


def _rhythm(injection: Injection) -> Rhythm | None:
    whole_s = injection.parameters["whole_s"]
    return Rhythm(cut_s=injection.parameters["cut_s"], whole_s=whole_s) if whole_s else None


async def _silent(context: FaultContext, injection: Injection) -> Effect:
    """Check by a probe over each link that nothing passes."""
    timeout_s = min(PROBE_TIMEOUT_S, injection.state["at_most_s"] / 2)
    probed = await probe(context.driver, injection, timeout_s=timeout_s)
    if not probed:
        return inconclusive("there is no such link")
    if through := [each.described for each in probed if each.taken_s is not None]:
        return mismatch(f"a probe came through: {', '.join(through)}")
    return confirmed(f"no probe came through over {len(probed)} links")


async def _flapping(context: FaultContext, injection: Injection, rhythm: Rhythm) -> Effect:
    """Check by probes, sent throughout a period, that each link holds some for long, and passes others.

    A stall of the machine may hide it in one period, so links without proof get more periods while most of the
    fault lies ahead.
    """
    in_force_s = injection.state["at_most_s"]
    if in_force_s < 2 * rhythm.period_s:
        return inconclusive(f"a rhythm of {rhythm.period_s:g} s does not show within {in_force_s:g} s")
    held_s = max(rhythm.cut_s * SHARE_HELD, LONGEST_STALL_S)
    until_s = asyncio.get_running_loop().time() + min(in_force_s / 2, MOST_PERIODS * rhythm.period_s)
    flapping: set[str] = set()
    while True:
        links = await _probed_through_a_period(context, injection, rhythm, held_s)
        flapping |= {link for link, taken in links.items() if min(taken) < held_s and _held_in_turn(taken, held_s)}
        steady = [link for link in links if link not in flapping]
        if not steady or asyncio.get_running_loop().time() + rhythm.period_s > until_s:
            break
    if not links:
        return inconclusive("there is no such link")
    if steady:
        return mismatch(f"these links do not flap: {', '.join(steady)}")
    return confirmed(f"each of {len(links)} links held probes for {rhythm.cut_s:g} s at most, and let others pass")


def _held_in_turn(taken: list[float], held_s: float) -> bool:
    """Return whether two probes in a row were held, as by a cut; a single one may have met a stall."""
    return any(min(pair) >= held_s for pair in pairwise(taken))


async def _probed_through_a_period(
    context: FaultContext, injection: Injection, rhythm: Rhythm, held_s: float
) -> dict[str, list[float]]:
    """Return the seconds of each probe of one period by link; the time-out for lost ones."""
    step_s = min(rhythm.cut_s - held_s, rhythm.whole_s) / 2
    timeout_s = rhythm.cut_s + LATE_S

    async def probed_after(delay_s: float) -> list[Probed]:
        await asyncio.sleep(delay_s)
        return await probe(context.driver, injection, timeout_s=timeout_s)

    rounds = await asyncio.gather(*(probed_after(n * step_s) for n in range(int(rhythm.period_s / step_s) + 1)))
    links: dict[str, list[float]] = {}
    for each in (each for probed in rounds for each in probed):
        links.setdefault(each.described, []).append(timeout_s if each.taken_s is None else each.taken_s)
    return links


PLUGIN: type[Fault] = Isolate

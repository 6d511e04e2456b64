"""Splits brokers: into halves, into halves with one broker that sees both, or into a ring of majorities.

Confirmed by: a probe over each link between them.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanPartition
from harness.contracts.faults import (
    AIMED_AT,
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    inconclusive,
    mismatch,
)
from harness.contracts.links import undisturbed
from harness.contracts.parameters import Strict
from harness.contracts.targets import Target

SILENCE_S = 0.5
"""How long a probe must not pass on a cut link; others may be slower on a busy machine."""
Pair = tuple[int, int]


class Parameters(Strict):
    """Parameters of a partition; its length is the fault's `duration_s`."""

    shape: Annotated[
        Literal["halves", "bridge", "ring"],
        Field(
            description="halves: the target and the others; bridge: the target sees all others, which are in halves;"
            " ring: each sees its neighbours, a majority together with it"
        ),
    ] = "bridge"


def halves(target: Sequence[int], others: Sequence[int]) -> list[Pair]:
    """Return the pairs to separate: the target and the others."""
    return [(one, other) for one in target for other in others]


def bridge(_target: Sequence[int], others: Sequence[int]) -> list[Pair]:
    """Return the pairs to separate: the two halves of the others; the target sees both."""
    middle = (len(others) + 1) // 2
    return halves(others[:middle], others[middle:])


def ring(target: Sequence[int], others: Sequence[int]) -> list[Pair]:
    """Return the pairs to separate: those further apart in the ring than half of a majority."""
    brokers = sorted([*target, *others])
    count = len(brokers)
    reach = (count // 2 + 1) // 2
    pairs = combinations(range(count), 2)
    return [(brokers[one], brokers[other]) for one, other in pairs if reach < other - one < count - reach]


SHAPES: dict[str, Callable[[Sequence[int], Sequence[int]], list[Pair]]] = {
    "halves": halves,
    "bridge": bridge,
    "ring": ring,
}


class Partition(Fault):
    """Cuts links between brokers, both ways; clients and ZooKeeper reach all. The driver heals after a while."""

    name: ClassVar[str] = "partition"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.MESSAGES})
    requires: ClassVar[tuple[str, ...]] = ("partition", "probe")
    hits_all: ClassVar[bool] = True
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def prepare(
        self,
        context: FaultContext,
        target: Target,
        brokers: tuple[int, ...],
        parameters: BaseModel,
        *,
        duration_s: float,
    ) -> Injection:
        """Record the pairs to separate."""
        assert isinstance(parameters, Parameters)
        every = tuple(status.broker_id for status in (await context.driver.status()).brokers)
        cut = SHAPES[parameters.shape](brokers, [broker for broker in every if broker not in brokers])
        pairs = [list(pair) for pair in cut]
        state: dict[str, Any] = {"cut": pairs, "at_most_s": duration_s, AIMED_AT: list(brokers)}
        return Injection(fault=self.name, targets=every, parameters=parameters.model_dump(mode="json"), state=state)

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Cut the links."""
        assert isinstance(context.driver, CanPartition)
        await context.driver.separate(_cut(injection), at_most_s=injection.state["at_most_s"])
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Probe both ways between all brokers: probes pass exactly where the shape allows it."""
        driver, cut = context.driver, _cut(injection)
        assert isinstance(driver, CanPartition)
        if not cut:
            return inconclusive(f"{len(injection.targets)} brokers have no such shape")
        longest_s = injection.state["at_most_s"] / 2
        links = [link for one, other in combinations(injection.targets, 2) for link in ((one, other), (other, one))]
        wanted = {link for link in links if link not in cut and link[::-1] not in cut}
        taken = await asyncio.gather(
            *(
                driver.probe_peer(*link, timeout_s=longest_s if link in wanted else min(SILENCE_S, longest_s))
                for link in links
            )
        )
        passed = {link for link, taken_s in zip(links, taken, strict=True) if taken_s is not None}
        if wrong := sorted(passed ^ wanted):
            return mismatch(", ".join(f"broker {one} {_sees(passed, (one, other))} {other}" for one, other in wrong))
        if why := await undisturbed(context.driver):
            return inconclusive(why)
        cut_off = len(links) - len(wanted)
        return confirmed(f"no probe came through over {cut_off} links, one over {len(wanted)} others each")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Heal the links; no-op for those that are healed."""
        assert isinstance(context.driver, CanPartition)
        await context.driver.reunite()


def _sees(passed: set[Pair], link: Pair) -> str:
    return "reaches" if link in passed else "does not reach"


def _cut(injection: Injection) -> list[Pair]:
    return [(one, other) for one, other in injection.state["cut"]]


PLUGIN: type[Fault] = Partition

"""Cuts ZooKeeper servers off from the other ZooKeeper servers for 8 s or more. Brokers still reach all of them.

Confirmed by: a probe over each cut link; a majority has a leader, and the others refuse requests (`srvr`).
"""

import asyncio
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanIsolateZookeeper
from harness.contracts.faults import (
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    inconclusive,
    mismatch,
)
from harness.contracts.parameters import Strict
from harness.contracts.zookeeper_servers import SERVERS, ZookeeperFault, describe_servers, modes_of
from harness.errors import DeadlineError
from harness.system.waiting import until

SILENCE_S = 0.5
"""How long a probe must not pass on a cut link."""
SERVE_TIMEOUT_S = 60.0
"""For all servers to take requests once they reach each other again."""


class Parameters(Strict):
    """Parameters of the fault; its length is the fault's `duration_s`."""

    confirm_timeout_s: Annotated[
        float,
        Field(
            gt=0, le=100, description="Deadline for a majority to have a leader, and for the others to refuse requests"
        ),
    ] = 30.0


class IsolateZookeeper(ZookeeperFault):
    """Cuts servers of an ensemble off from the others; the driver itself heals the links after its duration."""

    name: ClassVar[str] = "isolate-zookeeper"
    requires: ClassVar[tuple[str, ...]] = ("zookeeper-isolate",)
    min_visible_s: ClassVar[float] = 8.0
    """A server gives up its leader or followers after five seconds of silence (`syncLimit`)."""
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Cut the links."""
        assert isinstance(context.driver, CanIsolateZookeeper)
        await context.driver.isolate_zookeeper(injection.state[SERVERS], at_most_s=injection.state["at_most_s"])
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that no probe passes, that the majority has a leader, and that the others refuse requests."""
        driver, own = context.driver, set(injection.state[SERVERS])
        assert isinstance(driver, CanIsolateZookeeper)
        every = set(await modes_of(context))
        links = [link for one in own for other in every - own for link in ((one, other), (other, one))]
        if not links:
            return inconclusive("there are no other servers")
        taken = await asyncio.gather(*(driver.probe_servers(*link, timeout_s=SILENCE_S) for link in links))
        if through := [link for link, taken_s in zip(links, taken, strict=True) if taken_s is not None]:
            return mismatch(", ".join(f"server {one} reaches {other}" for one, other in sorted(through)))
        most, rest = sorted((own, every - own), key=len, reverse=True)
        timeout_s = min(injection.parameters["confirm_timeout_s"], injection.state["at_most_s"])
        try:
            modes = await until(
                lambda: modes_of(context),
                lambda modes: "leader" in {modes[it] for it in most} and not any(modes[it] for it in rest),
                what=f"{describe_servers(sorted(rest))} refusing requests, and a leader among the others",
                timeout_s=timeout_s,
            )
        except DeadlineError as error:
            return mismatch(str(error))
        leader = next(it for it in most if modes[it] == "leader")
        return confirmed(
            f"no probe came through over {len(links)} links, {describe_servers(sorted(rest))} cut off, "
            f"server {leader} leads"
        )

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Heal the links, and wait until those that were cut off take requests."""
        assert isinstance(context.driver, CanIsolateZookeeper)
        await context.driver.rejoin_zookeeper(injection.state[SERVERS])
        await until(
            lambda: modes_of(context),
            lambda modes: all(modes[number] for number in injection.state[SERVERS]),
            what=f"{describe_servers(injection.state[SERVERS])} taking requests",
            timeout_s=SERVE_TIMEOUT_S,
        )


PLUGIN: type[Fault] = IsolateZookeeper

"""Delays each disk sync of a broker or of a ZooKeeper server. Heals by ending the delay.

Needs strace, and root for containers. ZooKeeper servers sync only in a run with such a target (`forceSync=yes`).

Confirmed by: how long the syncs took, as strace measured them.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.broker.zookeeper.znodes import BROKER_IDS
from harness.cluster.capabilities import CanSlowSyncs
from harness.cluster.layout import broker_process, zookeeper_process
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    inconclusive,
    mismatch,
    not_running,
)
from harness.contracts.parameters import Strict
from harness.contracts.targets import EVERY_ROLE, Role, Target
from harness.contracts.zookeeper_servers import SERVERS, running_servers, servers_of
from harness.errors import ClusterError, DeadlineError
from harness.system.waiting import until

SEE_TIMEOUT_S = 60.0
LOOK_EVERY_S = 0.2


class Parameters(Strict):
    """Parameters of the disk."""

    extra_ms: Annotated[int, Field(ge=10, le=10_000, description="How much longer each sync takes")] = 500


class SlowSync(Fault):
    """Slows syncs; the driver itself ends that after the fault's duration."""

    name: ClassVar[str] = "slow-sync"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.PROCESSES})
    requires: ClassVar[tuple[str, ...]] = ("slow-syncs",)
    accepts: ClassVar[tuple[Role, ...]] = (*EVERY_ROLE, Role.ZOOKEEPER)
    min_visible_s: ClassVar[float] = 2.0
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
        """Record the duration, and what runs; raises ClusterError for a ZooKeeper server that does not."""
        injection = await super().prepare(context, target, brokers, parameters, duration_s=duration_s)
        if target.role is not Role.ZOOKEEPER:
            return injection
        return injection.with_state(**{SERVERS: await running_servers(context, target)})

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record the duration, and which brokers run."""
        return {"at_most_s": duration_s, "running": (await context.driver.status()).alive(brokers)}

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Slow the syncs of those that run."""
        assert isinstance(context.driver, CanSlowSyncs)
        extra_s, at_most_s = injection.parameters["extra_ms"] / 1000, injection.state["at_most_s"]
        for process in _processes(injection, injection.state["running"]):
            await context.driver.slow_syncs(process, extra_s, at_most_s=at_most_s)
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Wait for a sync of each, and check its duration."""
        if idle := not_running(injection, "slow down"):
            return idle
        driver, extra_s = context.driver, injection.parameters["extra_ms"] / 1000
        assert isinstance(driver, CanSlowSyncs)
        timeout_s = min(SEE_TIMEOUT_S, injection.state["at_most_s"])
        servers = servers_of(injection.state)
        sentences = []
        for process, server in _processes(injection, injection.targets).items():

            async def times(process: str = process) -> list[float]:
                if servers:
                    await _have_servers_sync(context)
                return await driver.slow_sync_times(process)

            try:
                taken = await until(times, bool, what=f"a sync of {server}", timeout_s=timeout_s, every_s=LOOK_EVERY_S)
            except DeadlineError as error:
                return inconclusive(str(error))
            if min(taken) < extra_s:
                return mismatch(f"a sync of {server} took {min(taken):g} s")
            sentences.append(f"{len(taken)} syncs of {server} took {extra_s:g} s or more")
        return confirmed("; ".join(sentences))

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """End the delay."""
        assert isinstance(context.driver, CanSlowSyncs)
        for process in _processes(injection, injection.targets):
            await context.driver.restore_syncs(process)


async def _have_servers_sync(context: FaultContext) -> None:
    """Ask for a znode that exists: servers of a quiet cluster sync nothing, and they log refused requests too."""
    with suppress(ClusterError):  # the answer may be late if a majority is slow, but the request is logged
        await context.zookeeper.create(BROKER_IDS, b"")


def _processes(injection: Injection, brokers: Iterable[int]) -> dict[str, str]:
    """Return the processes that are hit, each with its name in a sentence."""
    servers = servers_of(injection.state)
    return {broker_process(broker): f"broker {broker}" for broker in brokers} | {
        zookeeper_process(server): f"ZooKeeper server {server}" for server in servers
    }


PLUGIN: type[Fault] = SlowSync

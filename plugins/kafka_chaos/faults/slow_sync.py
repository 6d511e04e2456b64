"""A broker's disk takes its time: each sync lasts longer, and holds up who waits for it. Healing lets them be quick.

The proof is how long its syncs took. What traces it makes every other call a little slower too.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.powers import CanSlowSyncs
from harness.contracts.faults import (
    Arena,
    BrokerFault,
    Effect,
    Fault,
    Injection,
    confirmed,
    inconclusive,
    mismatch,
    not_running,
)
from harness.contracts.parameters import Strict
from harness.errors import DeadlineError
from harness.system.waiting import until

SEE_TIMEOUT_S = 60.0


class Parameters(Strict):
    """What the scenario may say about the disk."""

    extra_ms: Annotated[int, Field(ge=10, le=10_000, description="How much longer each sync takes")] = 500


class SlowSync(BrokerFault):
    """Slows brokers' syncs; the driver itself lets them be quick after the fault's duration."""

    name: ClassVar[str] = "slow-sync"
    requires: ClassVar[tuple[str, ...]] = ("slow-syncs",)
    shortest_s: ClassVar[float] = 2.0
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, arena: Arena, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Note how long, and who runs."""
        return {"at_most_s": duration_s, "running": (await arena.driver.status()).alive(brokers)}

    async def inject(self, arena: Arena, injection: Injection) -> Injection:
        """Slow the syncs of those that run."""
        assert isinstance(arena.driver, CanSlowSyncs)
        extra_s, at_most_s = injection.parameters["extra_ms"] / 1000, injection.state["at_most_s"]
        for broker in injection.state["running"]:
            await arena.driver.slow_syncs(broker, extra_s, at_most_s=at_most_s)
        return injection

    async def confirm(self, arena: Arena, injection: Injection) -> Effect:
        """Wait until each broker has synced something, and see how long that took."""
        if idle := not_running(injection, "slow down"):
            return idle
        driver, extra_s = arena.driver, injection.parameters["extra_ms"] / 1000
        assert isinstance(driver, CanSlowSyncs)
        sentences = []
        for broker in injection.targets:

            async def times(broker: int = broker) -> list[float]:
                return await driver.slow_sync_times(broker)

            timeout_s = min(SEE_TIMEOUT_S, injection.state["at_most_s"])
            try:
                taken = await until(times, bool, what=f"a sync of broker {broker}", timeout_s=timeout_s, every_s=0.05)
            except DeadlineError as error:
                return inconclusive(str(error))
            if min(taken) < extra_s:
                return mismatch(f"a sync of broker {broker} took {min(taken):g} s")
            sentences.append(f"{len(taken)} syncs of broker {broker} took {extra_s:g} s or more")
        return confirmed("; ".join(sentences))

    async def heal(self, arena: Arena, injection: Injection) -> None:
        """Let syncs take what they take."""
        assert isinstance(arena.driver, CanSlowSyncs)
        for broker in injection.targets:
            await arena.driver.restore_syncs(broker)


PLUGIN: type[Fault] = SlowSync

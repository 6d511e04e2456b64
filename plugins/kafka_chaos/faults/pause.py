"""SIGSTOP: the process freezes with all its connections and locks, and goes on as if nothing had happened."""

from typing import Any, ClassVar

from harness.cluster.driver import CanPause
from harness.contracts.faults import Arena, BrokerFault, Effect, Fault, Injection, confirmed_once
from harness.system.waiting import until

SEE_TIMEOUT_S = 2.0


class Pause(BrokerFault):
    """Freezes brokers for the fault's duration; the driver itself thaws them then."""

    name: ClassVar[str] = "pause"
    requires: ClassVar[tuple[str, ...]] = ("pause",)

    async def state_before(self, arena: Arena, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Note how long."""
        return {"at_most_s": duration_s}

    async def inject(self, arena: Arena, injection: Injection) -> Injection:
        """Freeze them."""
        assert isinstance(arena.driver, CanPause)
        for broker in injection.targets:
            await arena.driver.pause_broker(broker, at_most_s=injection.state["at_most_s"])
        return injection

    async def confirm(self, arena: Arena, injection: Injection) -> Effect:
        """Look at the states of the processes."""

        async def states() -> dict[int, str]:
            status = await arena.driver.status()
            return {broker: status.broker(broker).state for broker in injection.targets}

        def all_paused(seen: dict[int, str]) -> bool:
            return all(state == "paused" for state in seen.values())

        timeout_s = min(SEE_TIMEOUT_S, injection.state["at_most_s"])
        paused = until(states, all_paused, what="every process paused", timeout_s=timeout_s, every_s=0.02)
        return await confirmed_once(paused, "process paused")

    async def heal(self, arena: Arena, injection: Injection) -> None:
        """Thaw them; those that run already, or ended meanwhile, are left alone."""
        assert isinstance(arena.driver, CanPause)
        status = await arena.driver.status()
        for broker in injection.targets:
            if status.broker(broker).state == "paused":
                await arena.driver.resume_broker(broker)


PLUGIN: type[Fault] = Pause

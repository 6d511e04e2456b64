"""The process is killed, its session ended for it, and it is started again before anybody's session could time out.

Without the second step it would exit, as Kafka's does: its id is taken as long as its old session lives.
"""

import asyncio
from typing import Any, ClassVar

from harness.cluster.driver import CanKill
from harness.contracts.faults import Arena, BrokerFault, Effect, Fault, Injection, confirmed, mismatch, not_running
from harness.contracts.restoring import end_session, start_stopped
from harness.errors import DeadlineError
from harness.system.waiting import until
from harness.zookeeper.view import Registration

CONFIRM_TIMEOUT_S = 10.0


class Bounce(BrokerFault):
    """Restarts brokers so fast that the controller may see nothing but another registration of the same broker."""

    name: ClassVar[str] = "bounce"
    requires: ClassVar[tuple[str, ...]] = ("kill",)

    async def state_before(self, arena: Arena, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Note who runs, how often each was started, and under which registration."""
        status = await arena.driver.status()
        registered = await arena.view.registrations()
        running = [broker for broker in brokers if status.broker(broker).state == "running"]
        return {
            "running": running,
            "starts": {str(broker): status.broker(broker).starts for broker in running},
            "czxids": {str(broker): registered[broker].czxid for broker in running if broker in registered},
        }

    async def inject(self, arena: Arena, injection: Injection) -> Injection:
        """Kill them and start them again."""
        await asyncio.gather(*(_bounced(arena, broker) for broker in injection.state["running"]))
        return injection

    async def confirm(self, arena: Arena, injection: Injection) -> Effect:
        """See another process, and a later registration."""
        if idle := not_running(injection, "bounce"):
            return idle
        try:
            new = await until(
                arena.view.registrations,
                lambda seen: all(_is_new(injection, broker, seen) for broker in injection.targets),
                what="a later registration",
                timeout_s=CONFIRM_TIMEOUT_S,
            )
        except DeadlineError as error:
            return mismatch(str(error))
        status = await arena.driver.status()
        same = [it for it in injection.targets if status.broker(it).starts <= injection.state["starts"][str(it)]]
        if same:
            return mismatch(f"broker {same} was not started again")
        details = [f"broker {broker} is registered anew, czxid {new[broker].czxid}" for broker in injection.targets]
        return confirmed("; ".join(details))

    async def heal(self, arena: Arena, injection: Injection) -> None:
        """Start what does not run."""
        await start_stopped(arena, injection.targets)


async def _bounced(arena: Arena, broker: int) -> None:
    assert isinstance(arena.driver, CanKill)
    await arena.driver.kill_broker(broker)
    await end_session(arena, broker)
    await arena.driver.start_broker(broker)


def _is_new(injection: Injection, broker: int, seen: dict[int, Registration]) -> bool:
    return broker in seen and seen[broker].czxid > injection.state["czxids"].get(str(broker), -1)


PLUGIN: type[Fault] = Bounce

"""SIGKILL: the process ends without a word, its session ends by time-out; healed by starting it again."""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.driver import CanKill
from harness.contracts.faults import Arena, BrokerFault, Effect, Fault, Injection, confirmed, mismatch, not_running
from harness.contracts.parameters import Strict
from harness.contracts.restoring import start_stopped
from harness.errors import DeadlineError
from harness.system.waiting import until

RUNNING = "running"


class Parameters(Strict):
    """What the scenario may say about a kill."""

    confirm_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="Deadline for the end of the broker's registration")
    ] = 30.0


class Kill(BrokerFault):
    """Kills brokers, waits until ZooKeeper has noticed, and starts them again."""

    name: ClassVar[str] = "kill"
    requires: ClassVar[tuple[str, ...]] = ("kill",)
    witnesses: ClassVar[tuple[str, ...]] = ("broker_start",)
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, arena: Arena, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Note who runs, under which sessions."""
        status = await arena.driver.status()
        registered = await arena.view.registrations()
        return {
            "running": [broker for broker in brokers if status.broker(broker).state == RUNNING],
            "sessions": {str(broker): registered[broker].session for broker in brokers if broker in registered},
            "log_ends": {str(broker): await arena.state_changes.end_of(broker) for broker in brokers},
        }

    async def inject(self, arena: Arena, injection: Injection) -> Injection:
        """Kill those that run."""
        assert isinstance(arena.driver, CanKill)
        for broker in injection.state["running"]:
            await arena.driver.kill_broker(broker)
        return injection

    async def confirm(self, arena: Arena, injection: Injection) -> Effect:
        """Wait until each process is gone, and its registration too, or a new process has said that it starts."""
        if idle := not_running(injection, "kill"):
            return idle
        seen = [await self._effect_on(arena, injection, broker) for broker in injection.targets]
        return max(seen, key=lambda effect: effect.verdict)

    async def _effect_on(self, arena: Arena, injection: Injection, broker: int) -> Effect:
        old_session = injection.state["sessions"].get(str(broker), "")
        log_end = injection.state["log_ends"][str(broker)]

        async def look() -> str:
            status = (await arena.driver.status()).broker(broker)
            started, _ = await arena.state_changes.after(broker, log_end, "broker_start")
            if started:
                return "a new process has started"
            registration = (await arena.view.registrations()).get(broker)
            if status.state != "stopped":
                return f"process is {status.state}"
            if registration is not None and registration.session == old_session:
                return f"process gone, still registered by session {old_session}"
            return f"process gone, registration of session {old_session} gone"

        def gone(seen: str) -> bool:
            return seen.endswith(" gone") or seen.startswith("a new process")

        try:
            timeout_s = injection.parameters["confirm_timeout_s"]
            seen = await until(look, gone, what=f"end of broker {broker}", timeout_s=timeout_s)
        except DeadlineError as error:
            return mismatch(str(error))
        return confirmed(seen)

    async def heal(self, arena: Arena, injection: Injection) -> None:
        """Start what does not run."""
        await start_stopped(arena, injection.targets)


PLUGIN: type[Fault] = Kill

"""Limits a broker's memory and fills what is left, so that the kernel kills the broker. Heals by starting it again.

Needs root on `process`.

Confirmed by: the process is gone, and the kernel's or the engine's count of kills for lack of memory.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanLimit
from harness.cluster.limits.resources import Resource
from harness.contracts.faults import Disturbance, Effect, Fault, FaultContext, Injection, confirmed_once
from harness.contracts.limiting import Limiting
from harness.contracts.parameters import Strict
from harness.contracts.restoring import start_stopped
from harness.contracts.targets import Target
from harness.system.process_state import ProcessState
from harness.system.waiting import until

SEE_TIMEOUT_S = 60.0
_MIB = 1 << 20


class Parameters(Strict):
    """Parameters of the limit."""

    spare_mib: Annotated[int, Field(ge=1, le=1024, description="Memory in MiB that it may use beyond what it uses")] = 4


class MemoryLimit(Limiting):
    """Limits brokers' memory until the kernel kills them, and starts them again."""

    name: ClassVar[str] = "memory-limit"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.PROCESSES})
    requires: ClassVar[tuple[str, ...]] = ("memory-limit",)
    min_visible_s: ClassVar[float] = 2.0
    witnesses: ClassVar[tuple[str, ...]] = ("broker_start",)
    resource: ClassVar[Resource] = Resource.MEMORY
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def min_hold_s(self, target: Target, parameters: BaseModel, session_timeout_s: float) -> float:
        """Return the session time-out, which a start waits for."""
        return session_timeout_s

    def amount(self, parameters: dict[str, Any]) -> float:
        """Return the number of additional bytes."""
        return float(parameters["spare_mib"] * _MIB)

    async def seen(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that every process is gone, and that the kernel counted kills for lack of memory."""
        driver = context.driver
        assert isinstance(driver, CanLimit)

        async def not_killed() -> list[str]:
            status = await driver.status()
            alive = [
                f"broker {it} still runs" for it in injection.targets if status.broker(it).state != ProcessState.STOPPED
            ]
            hits = {it: (await driver.usage(it, Resource.MEMORY)).hits for it in injection.targets}
            before = injection.state["hits"]
            return alive + [f"nothing killed for broker {it}" for it, hit in hits.items() if hit <= before[str(it)]]

        timeout_s = min(SEE_TIMEOUT_S, injection.state["at_most_s"])
        killed = until(not_killed, lambda seen: not seen, what="every broker killed by the kernel", timeout_s=timeout_s)
        return await confirmed_once(killed, f"broker {list(injection.targets)} killed by the kernel for lack of memory")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Lift the limits, and start what does not run."""
        await super().heal(context, injection)
        await start_stopped(context, injection.targets)


PLUGIN: type[Fault] = MemoryLimit

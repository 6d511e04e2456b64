"""Limits how many files and connections a broker may open. Heals by lifting the limit and restarting the broker.

A replica may go offline until the restart.

Confirmed by: the kernel's limit, and a new client without an answer.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanLimit
from harness.cluster.limits.resources import Resource
from harness.contracts.faults import Disturbance, Effect, Fault, FaultContext, Injection, confirmed_once
from harness.contracts.limiting import Limiting
from harness.contracts.parameters import Strict
from harness.contracts.restoring import restart_unless_started
from harness.system.waiting import until

SEE_TIMEOUT_S = 30.0
BESIDE = 8
"""Connections opened beyond the spare ones: others may be closed meanwhile."""


class Parameters(Strict):
    """Parameters of the limit."""

    spare: Annotated[int, Field(ge=0, le=64, description="How many files it may open beyond those that are open")] = 0


class FileLimit(Limiting):
    """Limits brokers' open files."""

    name: ClassVar[str] = "file-limit"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset(
        {Disturbance.PROCESSES, Disturbance.DISKS, Disturbance.LEADERSHIP}
    )
    requires: ClassVar[tuple[str, ...]] = ("file-limit", "kill")
    min_visible_s: ClassVar[float] = 2.0
    resource: ClassVar[Resource] = Resource.FILES
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def amount(self, parameters: dict[str, Any]) -> float:
        """Return the number of additional files."""
        return float(parameters["spare"])

    async def seen(self, context: FaultContext, injection: Injection) -> Effect:
        """Check for a lower limit than before, and connect to each broker until one connection gets no answer."""
        driver, wanted = context.driver, injection.parameters["spare"] + BESIDE
        assert isinstance(driver, CanLimit)
        limits: dict[int, float | None] = {}

        async def open_to_all() -> list[int]:
            for broker in injection.targets:
                limits[broker] = (await driver.usage(broker, Resource.FILES)).limit
            return [
                broker
                for broker, limit in limits.items()
                if limit is None
                or limit >= (injection.state["limits"][str(broker)] or 0)
                or await driver.answers_all(broker, wanted)
            ]

        timeout_s = min(SEE_TIMEOUT_S, injection.state["at_most_s"])
        full = until(open_to_all, lambda seen: not seen, what="every broker out of files", timeout_s=timeout_s)
        effect = await confirmed_once(full, "")
        if effect.detail:
            return effect
        details = [
            f"broker {it} may have {limit:g} files open, and left a client waiting" for it, limit in limits.items()
        ]
        return type(effect)(verdict=effect.verdict, detail="; ".join(details))

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Lift the limits, and restart each broker that was not restarted since: it may have closed a log."""
        await super().heal(context, injection)
        await restart_unless_started(context, injection)


PLUGIN: type[Fault] = FileLimit

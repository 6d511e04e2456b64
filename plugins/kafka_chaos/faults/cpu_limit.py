"""Limits a broker's CPU time by a kernel quota. Heals by lifting the quota.

Needs root on `process`.

Confirmed by: the quota in force, and the kernel's count of throttled periods (`nr_throttled`).
"""

import math
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.capabilities import CanLimit
from harness.cluster.limits.resources import Resource
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
from harness.contracts.limiting import Limiting
from harness.contracts.parameters import Strict
from harness.errors import DeadlineError
from harness.system.waiting import until

SEE_TIMEOUT_S = 30.0
CLIENTS = 16
"""Clients that ask it for metadata continuously, as an idle broker needs no CPU time."""


class Parameters(Strict):
    """Parameters of the share."""

    cpus: Annotated[
        float, Field(ge=0.01, le=64, description="CPU time for each second that passes, for example 0.1")
    ] = 0.1


class CpuLimit(Limiting):
    """Limits brokers' CPU time; nothing is restarted."""

    name: ClassVar[str] = "cpu-limit"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.PROCESSES})
    requires: ClassVar[tuple[str, ...]] = ("cpu-limit",)
    min_visible_s: ClassVar[float] = 2.0
    resource: ClassVar[Resource] = Resource.CPU
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def amount(self, parameters: dict[str, Any]) -> float:
        """Return the number of CPUs."""
        return float(parameters["cpus"])

    async def seen(self, context: FaultContext, injection: Injection) -> Effect:
        """Check the quota, and that each broker was throttled while clients send it requests."""
        driver, cpus = context.driver, self.amount(injection.parameters)
        assert isinstance(driver, CanLimit)
        hits: dict[int, int] = {}
        wrong: set[int] = set()

        async def not_held_back() -> list[int]:
            for broker in injection.targets:
                await driver.answers_all(broker, CLIENTS)
                usage = await driver.usage(broker, Resource.CPU)
                (wrong.discard if _same(usage.limit, cpus) else wrong.add)(broker)
                hits[broker] = usage.hits - injection.state["hits"][str(broker)]
            return sorted(wrong | {broker for broker, count in hits.items() if count <= 0})

        timeout_s = min(SEE_TIMEOUT_S, injection.state["at_most_s"])
        what = f"brokers held back at {cpus:g} CPUs"
        try:
            await until(not_held_back, lambda seen: not seen, what=what, timeout_s=timeout_s, every_s=0.05)
        except DeadlineError as error:
            return mismatch(str(error)) if wrong else inconclusive(f"none of its share was missed: {error}")
        return confirmed("; ".join(f"broker {it} had {cpus:g} CPUs, and was held back" for it in sorted(hits)))


def _same(limit: float | None, cpus: float) -> bool:
    """Return whether a quota is the requested one; the kernel counts microseconds of a tenth of a second."""
    return limit is not None and math.isclose(limit, cpus, abs_tol=1e-5)


PLUGIN: type[Fault] = CpuLimit

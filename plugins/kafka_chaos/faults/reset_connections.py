"""Breaks a broker's open connections at once; clients may connect again.

Confirmed by: none of them is open any more.
"""

from typing import ClassVar

from pydantic import BaseModel

from harness.cluster.capabilities import CanReset, Side
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed_once,
    inconclusive,
)
from harness.contracts.links import Sides
from harness.contracts.parameters import Strict
from harness.system.waiting import until

CONFIRM_TIMEOUT_S = 5.0


class Parameters(Strict):
    """Parameters of a reset."""

    sides: Sides = list(Side)


class ResetConnections(Fault):
    """Breaks connections; has no lasting effect."""

    name: ClassVar[str] = "reset-connections"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.MESSAGES})
    requires: ClassVar[tuple[str, ...]] = ("reset",)
    controllers: ClassVar[bool] = True
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Record the connections, and break them."""
        driver = context.driver
        assert isinstance(driver, CanReset)
        before = {}
        for broker in injection.targets:
            before[str(broker)] = sorted(await driver.connections(broker, _sides(injection)))
            await driver.reset_connections(broker, _sides(injection))
        return injection.with_state(connections=before)

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that none of the earlier connections is open."""
        driver = context.driver
        assert isinstance(driver, CanReset)
        before = {int(broker): set(names) for broker, names in injection.state["connections"].items()}
        count = sum(map(len, before.values()))
        if not count:
            return inconclusive("there was no connection to break")

        async def still_open() -> int:
            return sum([len(names & await driver.connections(it, _sides(injection))) for it, names in before.items()])

        gone = until(still_open, lambda seen: not seen, what="end of every connection", timeout_s=CONFIRM_TIMEOUT_S)
        return await confirmed_once(gone, f"{count} connections are gone")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Nothing to undo: clients connect again by themselves."""


def _sides(injection: Injection) -> tuple[Side, ...]:
    return tuple(map(Side, injection.parameters["sides"]))


PLUGIN: type[Fault] = ResetConnections

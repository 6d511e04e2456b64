"""The base of all models of a scenario, parameters of plugins too: strict in keys, types and numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Refuses unknown keys, silent conversions and non-finite numbers; parameters of plugins derive from it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Size:
    """Marks a parameter of a plugin that shrinking may reduce."""


@dataclass(frozen=True, slots=True)
class OfZookeeper:
    """Marks a parameter of a plugin that needs ZooKeeper: without it the parameter is refused."""


@dataclass(frozen=True, slots=True)
class BetweenProperties:
    """Marks a parameter of a workload that a broker refuses outside of two of its properties, both inclusive."""

    low: str
    high: str

    def refusal(self, value: float, in_force: Mapping[str, str]) -> str:
        """Return why brokers with these properties refuse a value; empty if they do not, or if no number bounds it."""
        low, high = (in_force.get(name, "") for name in (self.low, self.high))
        if low.isdecimal() and value < int(low):
            return f"brokers refuse {value:g}: their {self.low} is {low}"
        if high.isdecimal() and value > int(high):
            return f"brokers refuse {value:g}: their {self.high} is {high}"
        return ""


SESSION_TIMEOUTS = BetweenProperties("group.min.session.timeout.ms", "group.max.session.timeout.ms")


@dataclass(frozen=True, slots=True)
class Idle:
    """Marks a parameter of a workload: about how many seconds a client pauses. Recovery waits for its next success."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Marks a parameter of a workload that the seed draws in a scenario with `draws.load`, unless stated.

    A value that the plugin's model refuses in combination with the others is not drawn.
    """

    choices: tuple[Any, ...]
    """Equally likely; a value stated twice is twice as likely."""
    within_segments: bool = False
    """Whether two values of this size must fit into the smallest drawn segment."""

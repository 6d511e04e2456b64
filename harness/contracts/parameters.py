"""The base of everything that a scenario says, parameters of plugins too: strict in keys, types and numbers."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Refuses unknown keys, silent conversions and numbers that are none; parameters of plugins derive from it too."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Size:
    """Marks a parameter of a plugin of which less is simpler: a failing schedule is tried with less of it."""


@dataclass(frozen=True, slots=True)
class OfZookeeper:
    """Marks a parameter of a plugin that asks for something in ZooKeeper: where there is none it is refused."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Marks a parameter of a workload that a scenario with `draws.load` draws from the seed, where it states none.

    A value that the plugin's model refuses beside the others is not drawn.
    """

    choices: tuple[Any, ...]
    """Equally likely; state one twice for twice the odds."""
    within_segments: bool = False
    """Whether it is a number of bytes that has to fit into the smallest segment that is drawn, twice."""

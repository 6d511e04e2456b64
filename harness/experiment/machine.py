"""How busy is the machine that a run has? A starved cluster looks like one that hangs."""

import os
from typing import Protocol

import psutil

from harness.values import value_class


@value_class(frozen=True, slots=True, kw_only=True)
class Busyness:
    """What a machine had to do for some time."""

    cpu_percent: int = 0
    """Of all processors together."""
    load_percent: int = 0
    """Processes that wanted to run, on average of the last minute, for each 100 processors."""


class Machine(Protocol):
    """What a cluster runs on."""

    def busyness(self) -> Busyness:
        """Return how busy it was since the last call."""
        ...


class ThisMachine:
    """The one that the harness runs on, where all of its clusters run."""

    def busyness(self) -> Busyness:
        """Return how busy it was since the last call."""
        return Busyness(
            cpu_percent=round(psutil.cpu_percent()),
            load_percent=round(100 * os.getloadavg()[0] / (os.cpu_count() or 1)),
        )


class NoMachine:
    """In virtual time no process waits for a processor."""

    def busyness(self) -> Busyness:
        """Return that it was idle."""
        return Busyness()

"""How busy the machine of a run is: a starved cluster looks like one that hangs."""

import os
from typing import Protocol

import psutil

from harness.values import value_class


@value_class(frozen=True, slots=True, kw_only=True)
class Busyness:
    """How busy a machine was for some time."""

    cpu_percent: int = 0
    """Of all processors together."""
    load_percent: int = 0
    """Runnable processes, on average over the last minute, for each 100 processors."""


class Machine(Protocol):
    """The machine of a cluster."""

    def busyness(self) -> Busyness:
        """Return how busy it was since the last call."""
        ...


class ThisMachine:
    """The harness's own machine, which runs all of its clusters."""

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

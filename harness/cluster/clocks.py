"""A server's wall clock that is not the machine's: how far is it ahead, and when was it set so?

Standard library only: the supervisor imports this module and must start fast.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FOLDER = "clocks"
"""In the cluster's folder: for each server a file of its name, which libfaketime reads."""
SET = "clock_set"
"""Name of the supervisor's event for a set clock."""
SECOND_NS = 1_000_000_000
JITTER_NS = 20_000_000
"""How far a line may be out of order, or a clock late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A wall clock that is set once, and runs at a rate of its own from then on."""

    since_ns: int
    """Instant at which it was set, on the machine's monotonic clock."""
    step_s: float = 0.0
    """How far it was set ahead of the machine's wall clock; behind if negative."""
    rate: float = 1.0
    """Its seconds per second of the machine's."""

    def ahead_ns(self, now_ns: int) -> int:
        """Return how far it is ahead of the machine's wall clock at an instant of the monotonic clock."""
        return round(self.step_s * SECOND_NS + (self.rate - 1) * (now_ns - self.since_ns))

    def instant_ns(self, apart_ns: int) -> int:
        """Return the instant at which it showed a time; both count as if the machine's two clocks were one."""
        return round((apart_ns - self.step_s * SECOND_NS + (self.rate - 1) * self.since_ns) / self.rate)


def setting_of(clock: Clock | None, started_ns: int) -> str:
    """Return libfaketime's setting for a process that was started at this instant (monotonic clock).

    It counts from the start of the process.
    """
    if clock is None:
        return "+0 x1\n"
    return f"{clock.ahead_ns(started_ns) / SECOND_NS:+.6f} x{clock.rate:.6f}\n"


def read_clocks(events: Path, name: str) -> list[Clock]:
    """Return the changes of a process's clock, from the supervisor's events, in order."""
    with events.open("rb") as lines:
        settings = [json.loads(line) for line in lines if SET.encode() in line]
    return [
        Clock(since_ns=each["since_ns"], step_s=each["step_s"], rate=each["rate"])
        for each in settings
        if each["event"] == SET and each["name"] == name
    ]


class Rectified:
    """Converts the wall clock times of a server's lines to the machine's monotonic clock, line by line.

    A clock that was set back shows a time twice. The earliest instant not before the last line's is taken, which is
    right if lines are closer together than the clock was moved.
    """

    def __init__(self, clocks: Iterable[Clock], ahead_ns: int) -> None:
        """`ahead_ns` is the machine's wall clock minus its monotonic clock; `clocks` are in order."""
        whole = [Clock(since_ns=0), *clocks]
        ends = [*(clock.since_ns for clock in whole[1:]), None]
        self._spans = list(zip(whole, ends, strict=True))
        self._ahead_ns = ahead_ns
        self._last_ns = 0

    def instant_ns(self, wall_ns: int) -> int:
        """Return the instant of the next line."""
        nearest = min((self._fit(wall_ns - self._ahead_ns, clock, end_ns) for clock, end_ns in self._spans))
        self._last_ns = max(self._last_ns, nearest[1])
        return nearest[1]

    def _fit(self, wall_ns: int, clock: Clock, end_ns: int | None) -> tuple[int, int]:
        """Return by how much the instant is outside the clock's validity, or before the last line, and the instant."""
        instant_ns = clock.instant_ns(wall_ns)
        early_ns = max(clock.since_ns, self._last_ns) - instant_ns
        late_ns = 0 if end_ns is None else instant_ns - end_ns
        return max(0, max(early_ns, late_ns) - JITTER_NS), instant_ns

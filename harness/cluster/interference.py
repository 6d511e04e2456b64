"""What holds the links between hosts cut or slow: a link is as usual again when nobody holds it any more."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from harness.cluster.links import Link, Links

PARTITION = "partition"
"""The name of what holds the links between brokers that are separated."""


def isolation_of(broker_id: int) -> str:
    """Return the name of what holds an isolated broker's links."""
    return f"isolation of broker {broker_id}"


def delay_of(broker_id: int) -> str:
    """Return the name of what holds a slow broker's links."""
    return f"delay of broker {broker_id}"


class _Hold(NamedTuple):
    """What one holder does to its links."""

    links: tuple[Link, ...]
    extra_s: float | None
    """How much longer everything takes on them; None for a cut."""


class Interference:
    """All that is done to links, by the name of whoever does it."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._holds: dict[str, _Hold] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def cut(self, holder: str, links: Iterable[Link], *, at_most_s: float) -> None:
        """Let nothing pass over some links, instead of what the holder held before."""
        self._hold(holder, _Hold(tuple(links), None), at_most_s)

    def slow(self, holder: str, links: Iterable[Link], extra_s: float, *, at_most_s: float) -> None:
        """Let everything take longer over some links; where several ask for that, the longest counts."""
        self._hold(holder, _Hold(tuple(links), extra_s), at_most_s)

    def release(self, holder: str) -> None:
        """Give up all that a holder holds; nothing happens when that is nothing."""
        hold = self._holds.pop(holder, None)
        if hold is not None:
            self._timers.pop(holder).cancel()
            self._apply(hold)

    def holds(self, holder: str) -> bool:
        """Return whether something is in force."""
        return holder in self._holds

    def _hold(self, holder: str, hold: _Hold, at_most_s: float) -> None:
        before = self._holds.get(holder)
        if before is not None:
            self._timers[holder].cancel()
        self._holds[holder] = hold
        self._timers[holder] = asyncio.get_running_loop().call_later(at_most_s, self.release, holder)
        self._apply(hold)
        if before is not None:  # not first: a link that stays cut lets nothing pass in between
            self._apply(before)

    def _apply(self, changed: _Hold) -> None:
        for link in changed.links:
            holds = [hold.extra_s for hold in self._holds.values() if link in hold.links]
            if changed.extra_s is not None:
                self._links.slow(*link, max((extra_s for extra_s in holds if extra_s is not None), default=0.0))
            elif None in holds:
                self._links.cut(*link)
            else:
                self._links.heal(*link)

"""What holds the links between hosts cut or slow: a link is as usual again when nobody holds it any more."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from harness.simulation.links import Link, Links


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
        self.release(holder)
        self._holds[holder] = hold
        self._timers[holder] = asyncio.get_running_loop().call_later(at_most_s, self.release, holder)
        self._apply(hold)

    def _apply(self, changed: _Hold) -> None:
        for link in changed.links:
            holds = [hold.extra_s for hold in self._holds.values() if link in hold.links]
            if changed.extra_s is not None:
                self._links.slow(*link, max((extra_s for extra_s in holds if extra_s is not None), default=0.0))
            elif None in holds:
                self._links.cut(*link)
            else:
                self._links.heal(*link)

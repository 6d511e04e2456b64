"""What holds the links between hosts cut or slow: a link is as usual again when nobody holds it any more."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from harness.cluster.capabilities import Rhythm, Slowness
from harness.cluster.links.links import Link, Links

PARTITION = "partition"
"""The name of what holds the links between brokers that are separated."""


def isolation_of(broker_id: int) -> str:
    """Return the name of what holds an isolated broker's links."""
    return f"isolation of broker {broker_id}"


def delay_of(broker_id: int) -> str:
    """Return the name of what holds a slow broker's links."""
    return f"delay of broker {broker_id}"


def isolation_of_servers(server_ids: Iterable[int]) -> str:
    """Return the name of what holds the links between these ZooKeeper servers and the others."""
    return f"isolation of ZooKeeper servers {', '.join(map(str, sorted(server_ids)))}"


class _Hold(NamedTuple):
    """What one holder does to its links."""

    links: tuple[Link, ...]
    slowness: Slowness | None
    """How slow they are; None for a cut."""
    rhythm: Rhythm | None = None
    """Of a cut that comes and goes."""
    rests: bool = False
    """Whether such a cut has gone for now."""


class Interference:
    """All that is done to links, by the name of whoever does it."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._holds: dict[str, _Hold] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._turns: dict[str, asyncio.TimerHandle] = {}
        """When a cut that has a rhythm comes or goes next."""

    def cut(self, holder: str, links: Iterable[Link], *, at_most_s: float, rhythm: Rhythm | None = None) -> None:
        """Let nothing pass over some links, all the time or in a rhythm, instead of what the holder held before."""
        self._hold(holder, _Hold(tuple(links), None, rhythm), at_most_s)
        if rhythm is not None:
            self._turn_after(rhythm.cut_s, holder)

    def slow(self, holder: str, links: Iterable[Link], slowness: Slowness, *, at_most_s: float) -> None:
        """Slow some links down; where several do, the longest delay and jitter count, and the lowest rate."""
        self._hold(holder, _Hold(tuple(links), slowness), at_most_s)

    def release(self, holder: str) -> None:
        """Give up all that a holder holds; nothing happens when that is nothing."""
        hold = self._holds.pop(holder, None)
        if hold is not None:
            self._timers.pop(holder).cancel()
            self._stop_turning(holder)
            self._apply(hold)

    def holds(self, holder: str) -> bool:
        """Return whether something is in force."""
        return holder in self._holds

    def _hold(self, holder: str, hold: _Hold, at_most_s: float) -> None:
        before = self._holds.get(holder)
        if before is not None:
            self._timers[holder].cancel()
            self._stop_turning(holder)
        self._holds[holder] = hold
        self._timers[holder] = asyncio.get_running_loop().call_later(at_most_s, self.release, holder)
        self._apply(hold)
        if before is not None:  # not first: a link that stays cut lets nothing pass in between
            self._apply(before)

    def _turn_after(self, delay_s: float, holder: str) -> None:
        self._turns[holder] = asyncio.get_running_loop().call_later(delay_s, self._turn, holder)

    def _turn(self, holder: str) -> None:
        hold = self._holds[holder]
        assert hold.rhythm is not None, "only what has a rhythm turns"
        self._turn_after(hold.rhythm.cut_s if hold.rests else hold.rhythm.whole_s, holder)
        self._holds[holder] = hold._replace(rests=not hold.rests)
        self._apply(hold)

    def _stop_turning(self, holder: str) -> None:
        if holder in self._turns:
            self._turns.pop(holder).cancel()

    def _apply(self, changed: _Hold) -> None:
        for link in changed.links:
            holds = [hold for hold in self._holds.values() if link in hold.links]
            if changed.slowness is not None:
                self._slow(link, [hold.slowness for hold in holds if hold.slowness is not None])
            elif any(hold.slowness is None and not hold.rests for hold in holds):
                self._links.cut(*link)
            else:
                self._links.heal(*link)

    def _slow(self, link: Link, wanted: list[Slowness]) -> None:
        extra_s = max((each.extra_s for each in wanted), default=0.0)
        self._links.slow(*link, extra_s, max((each.jitter_s for each in wanted), default=0.0))
        self._links.limit(*link, min((each.bytes_per_s for each in wanted if each.bytes_per_s), default=None))

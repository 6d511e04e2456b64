"""What keeps links between hosts cut or slow; a link is normal again when the last interference on it ends."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from harness.cluster.capabilities import Rhythm, Slowness
from harness.cluster.links.links import Link, Links

PARTITION = "partition"
"""Name of the interference on links between separated brokers."""


def isolation_of(broker_id: int) -> str:
    """Return the name of the interference on an isolated broker's links."""
    return f"isolation of broker {broker_id}"


def delay_of(broker_id: int) -> str:
    """Return the name of the interference on a slow broker's links."""
    return f"delay of broker {broker_id}"


def isolation_of_servers(server_ids: Iterable[int]) -> str:
    """Return the name of the interference on links between these ZooKeeper servers and the others."""
    return f"isolation of ZooKeeper servers {', '.join(map(str, sorted(server_ids)))}"


class _Hold(NamedTuple):
    """The effect of one interference on its links."""

    links: tuple[Link, ...]
    slowness: Slowness | None
    """How slow they are; None for a cut."""
    rhythm: Rhythm | None = None
    """Set for a cut that comes and goes."""
    rests: bool = False
    """Whether such a cut is off at present."""


class Interference:
    """All interference on links, by the name of its cause."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._holds: dict[str, _Hold] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._turns: dict[str, asyncio.TimerHandle] = {}
        """Timers of the next turn of cuts that have a rhythm."""

    def cut(self, holder: str, links: Iterable[Link], *, at_most_s: float, rhythm: Rhythm | None = None) -> None:
        """Cut some links, all the time or in a rhythm; replaces the holder's earlier interference."""
        self._hold(holder, _Hold(tuple(links), None, rhythm), at_most_s)
        if rhythm is not None:
            self._turn_after(rhythm.cut_s, holder)

    def slow(self, holder: str, links: Iterable[Link], slowness: Slowness, *, at_most_s: float) -> None:
        """Slow some links down; if several holders do, the longest delay and jitter and the lowest rate apply."""
        self._hold(holder, _Hold(tuple(links), slowness), at_most_s)

    def release(self, holder: str) -> None:
        """End all interference of a holder; no-op if there is none."""
        hold = self._holds.pop(holder, None)
        if hold is not None:
            self._timers.pop(holder).cancel()
            self._stop_turning(holder)
            self._apply(hold)

    def holds(self, holder: str) -> bool:
        """Return whether any interference is in force."""
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

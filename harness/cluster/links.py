"""Who reaches whom, and how fast: one-way links between hosts, and the pipes that run over them.

What is sent over a cut link is not lost, as TCP sends it again: it waits, in order, until the link is healed or the
connection is gone.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context
from typing import Any

from harness.cluster.powers import Direction

SHORTEST_S = 0.0001
LONGEST_S = 0.001
SPIKE_SHARE = 0.01
"""How many of all messages take far longer than usual …"""
SPIKE_S = 0.03
"""… at most by this."""

Link = tuple[str, str]
"""Sender and receiver."""


def ways(own: str, others: Sequence[str], way: Direction) -> list[Link]:
    """Return the links between a host and others in a single direction, seen from the host."""
    return [(other, own) if way is Direction.INBOUND else (own, other) for other in others]


class Links:
    """All links between hosts; without `rng` nothing takes any time."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng
        self._cut: set[Link] = set()
        self._slow_s: dict[Link, float] = {}
        self._stalled: dict[Link, dict[Pipe, None]] = {}

    def delay_s(self, link: Link) -> float:
        """Return how long the next message takes, drawn from the seed."""
        if self._rng is None:
            return self._slow_s.get(link, 0.0)
        drawn = self._rng.random()
        delay_s = SHORTEST_S + drawn * (LONGEST_S - SHORTEST_S)
        if drawn < SPIKE_SHARE:
            delay_s += self._rng.random() * SPIKE_S
        return delay_s + self._slow_s.get(link, 0.0) if self._slow_s else delay_s

    def passes(self, link: Link) -> bool:
        """Whether what is sent now gets through."""
        return link not in self._cut

    def cut(self, sender: str, receiver: str) -> None:
        """Let nothing pass from one host to another; the other way is another link."""
        self._cut.add((sender, receiver))

    def heal(self, sender: str, receiver: str) -> None:
        """Let everything pass again, first what waited."""
        link = (sender, receiver)
        self._cut.discard(link)
        for pipe in self._stalled.pop(link, ()):
            pipe.go_on()

    def isolate(self, host: str, others: Iterable[str]) -> None:
        """Cut a host off from others, both ways."""
        for other in others:
            self.cut(host, other)
            self.cut(other, host)

    def rejoin(self, host: str, others: Iterable[str]) -> None:
        """Undo `isolate`."""
        for other in others:
            self.heal(host, other)
            self.heal(other, host)

    def slow(self, sender: str, receiver: str, extra_s: float) -> None:
        """Let everything take longer from now on; 0 for as usual."""
        if extra_s:
            self._slow_s[sender, receiver] = extra_s
        else:
            self._slow_s.pop((sender, receiver), None)

    def stalled(self, pipe: "Pipe") -> None:
        """Note a pipe that has something to send when its link is healed."""
        self._stalled.setdefault(pipe.link, {})[pipe] = None


class Pipe:
    """One direction of one connection: what is put in comes out later, in order, in the receiver's context."""

    __slots__ = ("_broken", "_context", "_deliver", "_last_s", "_links", "_loop", "_under_way", "_waiting", "link")

    def __init__(
        self, links: Links, sender: str, receiver: str, deliver: Callable[[Any], None], context: Context
    ) -> None:
        self.link = (sender, receiver)
        self._links = links
        self._deliver = deliver
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._last_s = 0.0
        self._under_way: deque[Any] = deque()
        self._waiting: deque[Any] = deque()
        self._broken = False

    def put(self, item: Any) -> None:
        """Send something."""
        if self._broken:
            return
        if self._waiting or not self._links.passes(self.link):
            self._waiting.append(item)
            self._links.stalled(self)
        else:
            self._send(item)

    def go_on(self) -> None:
        """Send what waited."""
        while self._waiting and self._links.passes(self.link):
            self._send(self._waiting.popleft())

    def hand_over(self, context: Context) -> None:
        """Let what is sent from now on come out in another context."""
        self._context = context

    def reset(self) -> "Pipe":
        """Lose what is on its way, and return a new pipe between the same ends."""
        self.break_off()
        return Pipe(self._links, *self.link, self._deliver, self._context)

    def break_off(self) -> None:
        """Let nothing come out any more, not even what is on its way."""
        self._broken = True
        self._under_way.clear()
        self._waiting.clear()

    def end_with(self, item: Any) -> None:
        """Let one more thing come out, at once, and nothing else any more."""
        self.break_off()
        asyncio.get_running_loop().call_soon(self._deliver, item, context=self._context)

    def _send(self, item: Any) -> None:
        loop, delay_s = self._loop, self._links.delay_s(self.link)
        now_s = loop.time()
        self._under_way.append(item)  # asyncio keeps no order among timers of one time, nor before what is to run soon
        if not delay_s and self._last_s <= now_s:
            loop.call_soon(self._arrive, context=self._context)
            return
        self._last_s = max(self._last_s, now_s + delay_s)
        loop.call_at(self._last_s, self._arrive, context=self._context)

    def _arrive(self) -> None:
        if not self._broken:
            self._deliver(self._under_way.popleft())

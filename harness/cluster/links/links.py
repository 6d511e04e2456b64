"""Which host reaches which, and how fast: one-way links between hosts, and the pipes that run over them.

What is sent over a cut link is not lost, as TCP resends it: it waits, in order, until the link is healed or the
connection is gone. Over a link with a rate it waits until everything sent before it has passed, on any connection.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context, copy_context
from typing import Any

from harness.cluster.capabilities import Direction

SHORTEST_S = 0.0001
LONGEST_S = 0.001
SPIKE_SHARE = 0.01
"""Share of messages that take far longer than usual …"""
SPIKE_S = 0.03
"""… and by how much at most."""

Link = tuple[str, str]
"""Sender and receiver."""


def ways(own: str, others: Sequence[str], way: Direction) -> list[Link]:
    """Return the links between a host and others in a single direction, seen from the host."""
    return [(other, own) if way is Direction.INBOUND else (own, other) for other in others]


def bytes_in(item: Any) -> int:
    """Return the length of what is sent, if it is bytes; anything else has length 0."""
    return len(item) if isinstance(item, bytes) else 0


class Links:
    """All links between hosts; without `rng` they have no delay, unless slowed down."""

    def __init__(
        self,
        rng: random.Random | None = None,
        size_of: Callable[[Any], int] = bytes_in,
        usual_s: Callable[[Link], float] | None = None,
    ) -> None:
        """Make links, none of them cut.

        Args:
            rng: Draws the delays of messages.
            size_of: Size in bytes of what is sent over a link with a rate.
            usual_s: Usual delay of the next message over a link, added to that of a slowed link.
        """
        self.size_of = size_of
        self._usual_s = usual_s
        self._rng = rng
        self._jitter = rng or random.Random(0)  # noqa: S311  repeatable, not secret
        self._cut: set[Link] = set()
        self._slow_s: dict[Link, tuple[float, float]] = {}
        self._rates: dict[Link, float] = {}
        self._passing: dict[Link, asyncio.TimerHandle] = {}
        """When the item in transit over a link with a rate will have passed."""
        self._stalled: dict[Link, dict[Pipe, None]] = {}
        self._context = copy_context()
        """Context of timers of links, which belong to no host."""

    def delay_s(self, link: Link) -> float:
        """Return the delay of the next message, drawn from the seed."""
        if self._rng is None:
            return self._slowed_s(link)
        drawn = self._rng.random()
        delay_s = SHORTEST_S + drawn * (LONGEST_S - SHORTEST_S)
        if drawn < SPIKE_SHARE:
            delay_s += self._rng.random() * SPIKE_S
        if self._usual_s is not None:
            delay_s += self._usual_s(link)
        return delay_s + self._slowed_s(link) if self._slow_s else delay_s

    def _slowed_s(self, link: Link) -> float:
        extra_s, jitter_s = self._slow_s.get(link, (0.0, 0.0))
        return extra_s + self._jitter.random() * jitter_s if jitter_s else extra_s

    def passes(self, link: Link) -> bool:
        """Whether what is sent now passes at once."""
        return link not in self._cut and link not in self._rates

    def cut(self, sender: str, receiver: str) -> None:
        """Cut the link from one host to another; the reverse direction is another link."""
        self._cut.add((sender, receiver))
        if self._rates:
            self._go_on((sender, receiver))

    def heal(self, sender: str, receiver: str) -> None:
        """Restore a link; what waited passes first."""
        self._cut.discard((sender, receiver))
        self._go_on((sender, receiver))

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

    def slow(self, sender: str, receiver: str, extra_s: float, jitter_s: float = 0.0) -> None:
        """Add a delay to a link, with up to `jitter_s` on top; 0 removes it."""
        if extra_s or jitter_s:
            self._slow_s[sender, receiver] = (extra_s, jitter_s)
        else:
            self._slow_s.pop((sender, receiver), None)

    def limit(self, sender: str, receiver: str, bytes_per_s: float | None) -> None:
        """Limit the rate of a link; None removes the limit, and what waited passes first."""
        link = (sender, receiver)
        if bytes_per_s is not None:
            self._rates[link] = bytes_per_s
        elif self._rates.pop(link, None) is None:
            return
        self._go_on(link)

    def stalled(self, pipe: "Pipe") -> None:
        """Register a pipe with waiting data, to continue when its link lets it pass."""
        self._stalled.setdefault(pipe.link, {})[pipe] = None
        if pipe.link in self._rates and pipe.link not in self._passing:
            self._go_on(pipe.link)

    def _go_on(self, link: Link) -> None:
        """Continue the pipes of a link in its present state; a cut link passes nothing."""
        if link in self._passing:
            self._passing.pop(link).cancel()
        if self.passes(link):
            for pipe in self._stalled.pop(link, ()):
                pipe.go_on()
        elif link not in self._cut and (waiting := self._stalled.get(link)):
            pipe = next(iter(waiting))
            taken_s = self.size_of(pipe.first) / self._rates[link]
            loop = asyncio.get_running_loop()
            self._passing[link] = loop.call_later(taken_s, self._passed, pipe, context=self._context)

    def _passed(self, pipe: "Pipe") -> None:
        """Pass the first item of a pipe, and give the next pipe its turn."""
        del self._passing[pipe.link]
        waiting = self._stalled[pipe.link]
        del waiting[pipe]
        if pipe.send_first():
            waiting[pipe] = None
        self._go_on(pipe.link)


class Pipe:
    """One direction of one connection: items come out later, in order, in the receiver's context."""

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
        """Send an item."""
        if self._broken:
            return
        links, link = self._links, self.link
        if self._waiting or link in links._cut or link in links._rates:  # as `passes` says; this is the hot path
            self._waiting.append(item)
            links.stalled(self)
        else:
            self._send(item)

    @property
    def passes(self) -> bool:
        """Whether an item put in now passes at once."""
        return self._links.passes(self.link)

    @property
    def first(self) -> Any:
        """The item that waits longest; None if none waits."""
        return self._waiting[0] if self._waiting else None

    def send_first(self) -> bool:
        """Send the item that waited longest, and return whether more wait."""
        if self._waiting:
            self._send(self._waiting.popleft())
        return bool(self._waiting)

    def go_on(self) -> None:
        """Send all that waits."""
        while self._waiting and self._links.passes(self.link):
            self._send(self._waiting.popleft())

    def hand_over(self, context: Context) -> None:
        """Deliver what is sent from now on in another context."""
        self._context = context

    def reset(self) -> "Pipe":
        """Drop what is in transit, and return a new pipe between the same ends."""
        self.break_off()
        return Pipe(self._links, *self.link, self._deliver, self._context)

    def break_off(self) -> None:
        """Deliver nothing from now on, not even what is in transit."""
        self._broken = True
        self._under_way.clear()
        self._waiting.clear()

    def end_with(self, item: Any) -> None:
        """Deliver one more item at once, and nothing after it."""
        self.break_off()
        asyncio.get_running_loop().call_soon(self._deliver, item, context=self._context)

    def _send(self, item: Any) -> None:
        loop, delay_s = self._loop, self._links.delay_s(self.link)
        now_s = loop.time()
        self._under_way.append(item)  # asyncio does not order timers of one instant
        if not delay_s and self._last_s <= now_s:
            loop.call_soon(self._arrive, context=self._context)
            return
        self._last_s = max(self._last_s, now_s + delay_s)
        loop.call_at(self._last_s, self._arrive, context=self._context)

    def _arrive(self) -> None:
        if not self._broken:
            self._deliver(self._under_way.popleft())

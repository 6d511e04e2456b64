"""All rules on messages, by the name of their holder; what they hold goes on when they end."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field

from harness.cluster.links.rules import Caught, Rule
from harness.kafka.requests import Head, Named


@dataclass(slots=True, eq=False)
class Held:
    """One rule, and what it has caught."""

    rule: Rule
    matches: int = 0
    caught: list[Caught] = field(default_factory=list)
    over: bool = False
    ends: list[Callable[[], None]] = field(default_factory=list)
    """What lets each caught message go; to be called once."""


class Interceptor:
    """The rules of one network or relay."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._context = copy_context()
        """Context of timers, which belong to no host."""

    def intercept(self, holder: str, rule: Rule, *, at_most_s: float) -> None:
        """Act on messages from now on, for so long at most; replaces the holder's earlier rule."""
        self.release(holder)
        self._held[holder] = Held(rule)
        loop = asyncio.get_running_loop()
        self._timers[holder] = loop.call_later(at_most_s, self.release, holder, context=self._context)

    def release(self, holder: str) -> None:
        """End a rule, and let go what it holds; what it has caught stays known."""
        held = self._held.get(holder)
        if held is None or held.over:
            return
        held.over = True
        self._timers.pop(holder).cancel()
        for end in held.ends:
            end()
        held.ends.clear()

    def after(self, delay_s: float, end: Callable[[], None]) -> None:
        """Let something go after a while."""
        asyncio.get_running_loop().call_later(delay_s, end, context=self._context)

    def caught(self, holder: str) -> list[Caught]:
        """Return what a rule has caught so far, the first one first."""
        held = self._held.get(holder)
        return [] if held is None else held.caught

    def catch(self, link: tuple[str, str], head: Head, named: Callable[[], Named | None]) -> tuple[Held, Caught] | None:
        """Return the rule that acts on a request, with its new entry; None when it passes."""
        for held in self._held.values():
            rule = held.rule
            if held.over or not rule.fits(link, head.api_key, named):
                continue
            held.matches += 1
            if rule.nth <= held.matches < rule.nth + rule.count:
                caught = Caught(
                    api_key=head.api_key,
                    correlation_id=head.correlation_id,
                    source=link[0],
                    destination=link[1],
                    action=rule.action,
                    caught_s=asyncio.get_running_loop().time(),
                )
                held.caught.append(caught)
                return held, caught
        return None

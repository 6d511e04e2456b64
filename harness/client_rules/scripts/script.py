"""What is a script? Steps of client calls as JSON, with symbols for names and ids that differ from play to play.

A symbol is a text: `$t:0`, `$g:0`, `$x:0` for the first topic, group and transactional id of the script; `$m:0` for the
first member id that a broker gave; `$p:0` and `$e:0` for the first producer id and its epoch; `$n:0` for the latest
generation of the first group; `$s:0` for the first fetch session. Records are written as
`harness.contracts.requests.records_of` says.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.contracts.requests import filled

ASK, BEGIN, AWAIT, SETTLE, RESTART = "ask", "begin", "await", "settle", "restart"
"""How a step ends: answered; sent only; the step that was sent before is answered; asked until nothing changes; the
broker has ended and serves again."""
STOP, KILL = "stop", "kill"
"""How a broker ends before it is started again: the `api` of a restart."""
NO_MEMBER, NO_PRODUCER, NO_SESSION = "unknown-member", 4_000_000, 1
NO_MEMBERS = ("", NO_MEMBER, "other")
"""Member ids that no broker gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of a script."""

    api: str
    version: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    how: str = ASK

    def as_json(self) -> dict[str, Any]:
        """Return the step as JSON."""
        shown = {"api": self.api, "version": self.version, "fields": self.fields}
        return shown if self.how == ASK else shown | {"how": self.how}


Script = tuple[Step, ...]


def script_of(steps: Sequence[Mapping[str, Any]]) -> Script:
    """Return the script that JSON holds."""
    return tuple(Step(**step) for step in steps)


def real_wall_ms() -> float:
    """Return milliseconds since 1970, by this machine's clock."""
    return time.time() * 1000


@dataclass(slots=True)
class Symbols:
    """What the symbols of a script stand for in one play."""

    prefix: str
    """Of every name; two plays have different ones."""
    members: list[str] = field(default_factory=list)
    producers: list[int] = field(default_factory=list)
    epochs: dict[int, int] = field(default_factory=dict)
    """By producer id."""
    generations: dict[str, int] = field(default_factory=dict)
    """By group."""
    sessions: list[int] = field(default_factory=list)
    """Of fetches, by their ids."""
    wall_ms: Callable[[], float] = real_wall_ms
    """The clock by which a time in an answer is near now."""

    def meaning(self, value: Any) -> Any:
        """Return fields with what their symbols stand for."""
        if isinstance(value, Mapping):
            return {name: self.meaning(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.meaning(each) for each in value]
        return self._of_symbol(value) if isinstance(value, str) and value.startswith("$") else value

    def _of_symbol(self, symbol: str) -> Any:
        kind, _, number = symbol[1:].partition(":")
        index = int(number)
        match kind:
            case "m":
                return self.members[index] if index < len(self.members) else NO_MEMBER
            case "p":
                return self.producers[index] if index < len(self.producers) else NO_PRODUCER
            case "e":
                return self.epochs.get(self.producers[index], 0) if index < len(self.producers) else 0
            case "n":
                return self.generations.get(f"{self.prefix}g{index}", 1)
            case "s":
                return self.sessions[index] if index < len(self.sessions) else NO_SESSION
        return f"{self.prefix}{kind}{index}"

    def member(self, member_id: str) -> str:
        """Return the symbol of a member id, which is new if it is unknown."""
        if member_id in NO_MEMBERS:
            return member_id
        if member_id not in self.members:
            self.members.append(member_id)
        return f"$m:{self.members.index(member_id)}"

    def producer(self, producer_id: int) -> int | str:
        """Return the symbol of a producer id, which is new if it is unknown."""
        if producer_id < 0 or producer_id == NO_PRODUCER:
            return producer_id
        if producer_id not in self.producers:
            self.producers.append(producer_id)
        return f"$p:{self.producers.index(producer_id)}"


def request_of(step: Step, symbols: Symbols) -> Any:
    """Return the request of a step."""
    return filled(step.api, symbols.meaning(step.fields), step.version)


def without(step: Step, path: Sequence[str | int], *, to: Any = None) -> Step:
    """Return the step with the element at a path removed from its list, or with another value there."""
    return replace(step, fields=_changed(step.fields, path, to))


def _changed(value: Any, path: Sequence[str | int], to: Any) -> Any:
    first, *rest = path
    if isinstance(value, Mapping):
        if rest:
            return {**value, first: _changed(value[first], rest, to)}
        return {name: each for name, each in value.items() if name != first} if to is None else {**value, first: to}
    index = int(first)
    if rest:
        return [*value[:index], _changed(value[index], rest, to), *value[index + 1 :]]
    return [*value[:index], *([] if to is None else [to]), *value[index + 1 :]]

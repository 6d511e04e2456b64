"""Which messages are intercepted, and what happens to them?"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from harness.kafka.requests import NAMES, Named


class Action(StrEnum):
    """What happens to a request, or to its answer."""

    HOLD = "hold"
    """The request waits, and all that follows it on its connection."""
    HOLD_ANSWER = "hold-answer"
    """The request is carried out; its answer waits, and all that follows it."""
    LOSE = "lose"
    """The request is lost, and all that follows it on its connection."""
    LOSE_ANSWER = "lose-answer"
    """The request is carried out; its answer is lost, and all that follows it."""
    CLOSE_BEFORE = "close-before"
    """The connection is closed instead of handing over the request."""
    CLOSE_AFTER = "close-after"
    """The request is carried out, and the connection is closed instead of handing over its answer."""
    ERROR = "error"
    """The sender gets an error as answer; the receiver never gets the request."""
    REDELIVER = "redeliver"
    """The connection is closed, and the request is delivered later over another connection, which gets the answer."""
    DUPLICATE = "duplicate"
    """The receiver gets the request twice; the sender gets the first answer."""
    REORDER = "reorder"
    """The request is delivered after the next one of its connection; the sender gets the answers in its own order."""


WAITING = frozenset({Action.HOLD, Action.HOLD_ANSWER, Action.REDELIVER, Action.REORDER})
"""What is delivered later, so that a rule may say when."""
UNDELIVERED = frozenset({Action.LOSE, Action.CLOSE_BEFORE, Action.ERROR})
"""What the receiver never gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The requests of certain APIs from one set of hosts to another; None and empty match anything."""

    links: frozenset[tuple[str, str]]
    """Sender and receiver of the request; its answer goes the other way."""
    api_keys: frozenset[int]
    action: Action
    nth: int = 1
    """The first match that it acts on …"""
    count: int = 1
    """… and on how many from there on."""
    topic: str = ""
    partition: int | None = None
    group: str = ""
    transactional_id: str = ""
    epoch: int | None = None
    """Least leader epoch, or epoch of a producer."""
    hold_s: float | None = None
    """How long something waits; None until the rule ends."""
    error_code: int = 0

    @property
    def reads(self) -> bool:
        """Whether it asks what requests name."""
        return bool(self.topic or self.group or self.transactional_id) or self.epoch is not None

    def fits(self, link: tuple[str, str], api_key: int, named: Callable[[], Named | None]) -> bool:
        """Return whether a request is one that it counts; what cannot be read is none."""
        if api_key not in self.api_keys or link not in self.links:
            return False
        return not self.reads or self._names(named())

    def _names(self, named: Named | None) -> bool:
        if named is None:
            return False
        partitions = {
            (topic, index)
            for topic, index in named.partitions
            if self.topic in ("", topic) and self.partition in (None, index)
        }
        return (
            (not self.topic or bool(partitions))
            and _has(self.group, named.groups)
            and _has(self.transactional_id, named.transactional_ids)
            and (self.epoch is None or any(epoch >= self.epoch for epoch in named.epochs))
        )


@dataclass(slots=True, eq=False, kw_only=True)
class Caught:
    """One request that a rule acted on; instants in seconds of the loop's clock, None for what did not happen."""

    api_key: int
    correlation_id: int
    source: str
    destination: str
    action: Action
    caught_s: float
    let_go_s: float | None = None
    """When what was held, the request or its answer, was handed over."""
    answered_s: float | None = None
    """When the receiver answered."""
    left_s: float | None = None
    """When the sender closed or broke the connection."""

    @property
    def waits(self) -> bool:
        """Whether something of it is held now."""
        if self.let_go_s is not None or self.action not in WAITING:
            return False
        return self.action is not Action.HOLD_ANSWER or self.answered_s is not None

    @property
    def described(self) -> str:
        """The message in a few words."""
        name = NAMES.get(self.api_key, f"API {self.api_key}")
        return f"{name} {self.correlation_id} from {self.source} to {self.destination}"


def rule_data(rule: Rule) -> dict[str, Any]:
    """Return a rule as plain data."""
    return asdict(rule) | {"links": sorted(rule.links), "api_keys": sorted(rule.api_keys)}


def rule_from(data: Mapping[str, Any]) -> Rule:
    """Return the rule of `rule_data`."""
    sets = {"links": frozenset(map(tuple, data["links"])), "api_keys": frozenset(data["api_keys"])}
    return Rule(**{**data, **sets, "action": Action(data["action"])})


def caught_from(data: Mapping[str, Any]) -> Caught:
    """Return what `asdict` made of a caught request."""
    return Caught(**{**data, "action": Action(data["action"])})


def _has(wanted: str, names: Collection[str]) -> bool:
    return not wanted or wanted in names

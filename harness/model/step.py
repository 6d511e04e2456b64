"""What is a rule of the protocol, a step that breaks one, and a subject that takes steps?"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]
"""One line of a state-change log, parsed."""
Key = tuple[Hashable, ...]
"""Names one thing of a kind, such as topic and partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One sentence of the protocol."""

    id: str
    """Unique among all rules, subject first: `replica.append-at-end`."""
    sentence: str
    """What holds, as a sentence."""
    source: str
    """The class of Kafka or the KIP that it is from."""
    needs: str = ""
    """A kind of event that no broker of the run may leave out, if the rule is to say anything."""


@dataclass(frozen=True, slots=True)
class Illegal:
    """An event that is no legal step."""

    rule: Rule
    then: Any
    """The state after it all the same, from which the walk goes on."""


Legal = Callable[[Any, Event], Any]
"""Takes the state before, None where it is unknown, and an event; returns the state after, or `Illegal`."""
Parts = Callable[[Event], Iterable[tuple[Key, Event]]]
"""Splits an event that is about several things of a kind."""


def of_partition(event: Event) -> Key:
    """Return the key of a line that is about one partition."""
    return event["topic"], event["partition"]


def of_broker(event: Event) -> Key:
    """Return the key of what a broker has one of."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A kind of thing that takes steps, and the rules of its steps."""

    name: str
    rules: tuple[Rule, ...]
    legal: Mapping[str, Legal]
    """By the kind of event."""
    fresh: Any
    """The state of one that a broker has not spoken of since it started."""
    key: Callable[[Event], Key] = of_partition
    parts: Mapping[str, Parts] = field(default_factory=dict)
    """For the kinds of event that are about several things."""

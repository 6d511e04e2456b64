"""One event of a story, and how brokers, records and ISRs are named in it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

CLIENTS, CONTROLLER, ZOOKEEPER, COORDINATOR = "clients", "controller", "ZooKeeper", "coordinator"
SHOWN_CHARACTERS = 60
"""Of a record's value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One event."""

    at_ns: int
    lane: str
    text: str
    matters: bool = False
    """Whether the story needs it."""


def broker(number: object) -> str:
    """Return a broker's name."""
    return f"broker {number}"


def brief(value: str | None) -> str:
    """Return the start of a record's value."""
    text = value or "without a value"
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def listed(brokers: Sequence[int] | None) -> str:
    """Return the members of an ISR as text."""
    if brokers is None:
        return "unknown"
    return ", ".join(map(str, brokers)) or "none"


def as_json(text: str) -> Any:
    """Return what a piece of evidence says; None if it is no JSON: a check may write any text."""
    try:
        return json.loads(text)
    except ValueError:
        return None

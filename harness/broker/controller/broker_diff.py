"""Brokers that came, went, or bounced since the controller's last look. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDiff:
    """The change, each list ascending."""

    new: tuple[int, ...] = ()
    dead: tuple[int, ...] = ()
    bounced: tuple[int, ...] = ()
    """Registered again since: a fast restart, or a new session. Handled as a failure and a start (KIP-380)."""


def diff_brokers(known: Mapping[int, int], now: Mapping[int, int]) -> BrokerDiff:
    """Return what changed between two views of the live brokers, each from id to broker epoch."""
    return BrokerDiff(
        new=tuple(sorted(now.keys() - known.keys())),
        dead=tuple(sorted(known.keys() - now.keys())),
        bounced=tuple(sorted(broker for broker in now.keys() & known.keys() if now[broker] > known[broker])),
    )

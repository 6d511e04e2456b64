"""Who leads a partition next? Pure functions of the assignment, the ISR and the living brokers (Kafka's `Election`).

"First" always means first in assignment order; the order of the ISR plays no role in the choice and is kept.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """What a selector looks at; the ISR is the one just read from ZooKeeper, never a cached one."""

    assigned: tuple[int, ...]
    isr: tuple[int, ...]
    live: frozenset[int]
    """Brokers that are registered, those that are shutting down included."""
    shutting_down: frozenset[int]
    """Brokers that asked for a controlled shutdown and are still registered."""
    unclean_allowed: bool = False
    """Whether a replica outside the ISR may lead; looked at only when no member of the ISR is online."""

    @property
    def online(self) -> frozenset[int]:
        """Brokers that may become leader: live and not about to leave."""
        return self.live - self.shutting_down

    @property
    def live_isr(self) -> tuple[int, ...]:
        """Members of the ISR that are online."""
        return tuple(replica for replica in self.isr if replica in self.online)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A selector's answer."""

    leader: int
    isr: tuple[int, ...]
    receivers: tuple[int, ...]
    """Replicas that are to be told."""
    unclean: bool = False
    """The leader was not in the ISR: committed records may be lost."""


class Strategy(StrEnum):
    """Why a leader is elected, and so by which rule."""

    OFFLINE = "offline"
    CONTROLLED_SHUTDOWN = "controlled_shutdown"


def offline(candidates: Candidates) -> Selection | None:
    """Return a leader for a partition that has none, or None when no replica may lead.

    The first assigned replica that is in the ISR and online; failing that, and only if unclean election is allowed,
    the first assigned one that is online, which then is the whole ISR.
    """
    live_isr = candidates.live_isr
    receivers = tuple(replica for replica in candidates.assigned if replica in candidates.online)
    leader = next((replica for replica in candidates.assigned if replica in live_isr), None)
    if leader is not None:
        return Selection(leader=leader, isr=live_isr, receivers=receivers)
    if candidates.unclean_allowed and receivers:
        return Selection(leader=receivers[0], isr=receivers[:1], receivers=receivers, unclean=True)
    return None


def controlled_shutdown(candidates: Candidates) -> Selection | None:
    """Return a leader in place of a broker that is shutting down, or None when no other member of the ISR lives."""
    receivers = tuple(replica for replica in candidates.assigned if replica in candidates.live)
    isr = tuple(replica for replica in candidates.isr if replica not in candidates.shutting_down)
    leader = next((replica for replica in receivers if replica in isr), None)
    return None if leader is None else Selection(leader=leader, isr=isr, receivers=receivers)


SELECTORS: dict[Strategy, Callable[[Candidates], Selection | None]] = {
    Strategy.OFFLINE: offline,
    Strategy.CONTROLLED_SHUTDOWN: controlled_shutdown,
}

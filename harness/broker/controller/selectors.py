"""The next leader of a partition: pure functions of the assignment, the ISR and the live brokers (Kafka's `Election`).

"First" always means first in assignment order; the order of the ISR plays no role in the choice and is kept.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.broker.rules import ProtocolRules
from harness.events import NO_LEADER


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Input of a selector; leader and ISR are freshly read from ZooKeeper, never cached."""

    assigned: tuple[int, ...]
    """In a reassignment the target replicas."""
    isr: tuple[int, ...]
    live: frozenset[int]
    """Registered brokers, including those shutting down."""
    shutting_down: frozenset[int]
    """Brokers that asked for a controlled shutdown and are still registered."""
    leader: int = NO_LEADER
    unclean_allowed: bool = False
    """Whether a replica outside the ISR may lead; looked at only when no member of the ISR is online."""
    rules: ProtocolRules = field(default_factory=ProtocolRules)

    @property
    def may_be_unclean(self) -> bool:
        """Whether a replica outside the ISR is chosen when no member of it is online."""
        return self.unclean_allowed or not self.rules.unclean_election_needs_permission

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
    """A selector's choice."""

    leader: int
    isr: tuple[int, ...]
    receivers: tuple[int, ...]
    """Replicas that get a LeaderAndIsr."""
    unclean: bool = False
    """The leader was not in the ISR: committed records may be lost."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """No replica may lead; the partition keeps the state it has."""

    reason: str
    kind: str = "StateChangeFailed"
    """Kafka's name of the error."""


Selector = Callable[[Candidates], Selection | Refusal]


class Strategy(StrEnum):
    """Why a leader is elected, and so by which rule."""

    INITIALIZE = "initialize"
    """The first leader of a new partition, which no selector chooses."""
    OFFLINE = "offline"
    REASSIGN = "reassign"
    PREFERRED = "preferred"
    CONTROLLED_SHUTDOWN = "controlled_shutdown"
    NO_OP = "no_op"


NO_REPLICA = Refusal("no replica is eligible")


def offline(candidates: Candidates) -> Selection | Refusal:
    """Return a leader for a partition that has none.

    The first assigned replica that is in the ISR and online; failing that, and only if unclean election is allowed,
    the first assigned one that is online, which then is the whole ISR. When all replicas are down there is none,
    and the partition waits: for a member of the ISR, or for any replica where unclean election is allowed.
    """
    live_isr = candidates.live_isr
    receivers = tuple(replica for replica in candidates.assigned if replica in candidates.online)
    leader = next((replica for replica in candidates.assigned if replica in live_isr), None)
    if leader is not None:
        return Selection(leader=leader, isr=live_isr, receivers=receivers)
    if not live_isr and candidates.may_be_unclean and receivers:
        isr = receivers[:1] if candidates.rules.unclean_leader_is_the_isr else candidates.isr
        return Selection(leader=receivers[0], isr=isr, receivers=receivers, unclean=True)
    return NO_REPLICA


def reassign(candidates: Candidates) -> Selection | Refusal:
    """Return a leader among the target replicas of a reassignment; all of them hear of it, dead ones too."""
    leader = next((replica for replica in candidates.assigned if replica in candidates.live_isr), None)
    if leader is None:
        return NO_REPLICA
    return Selection(leader=leader, isr=candidates.isr, receivers=candidates.assigned)


def preferred(candidates: Candidates) -> Selection | Refusal:
    """Return the preferred replica, the first assigned one, if it is online and in the ISR; all replicas hear of it."""
    leader = next(iter(candidates.assigned), NO_LEADER)
    if leader not in candidates.online or not may_be_preferred(leader, candidates.isr, candidates.rules):
        return NO_REPLICA
    return Selection(leader=leader, isr=candidates.isr, receivers=candidates.assigned)


def may_be_preferred(replica: int, isr: Collection[int], rules: ProtocolRules) -> bool:
    """Return whether an online replica may lead for being the preferred one."""
    return replica in isr or not rules.preferred_leader_is_in_isr


def controlled_shutdown(candidates: Candidates) -> Selection | Refusal:
    """Return a leader in place of a broker that is shutting down, among the other members of the ISR that live."""
    receivers = tuple(replica for replica in candidates.assigned if replica in candidates.live)
    isr = tuple(replica for replica in candidates.isr if replica not in candidates.shutting_down)
    leader = next((replica for replica in receivers if replica in isr), None)
    return NO_REPLICA if leader is None else Selection(leader=leader, isr=isr, receivers=receivers)


SELECTORS: Mapping[Strategy, Selector] = {
    Strategy.OFFLINE: offline,
    Strategy.REASSIGN: reassign,
    Strategy.PREFERRED: preferred,
    Strategy.CONTROLLED_SHUTDOWN: controlled_shutdown,
}
"""The profile of Kafka 2.5."""

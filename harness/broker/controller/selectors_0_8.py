"""The next leader of a partition, as Kafka 0.8 chose it (its `PartitionLeaderSelector`). Pure.

The choice is that of `selectors` but for a controlled shutdown; an answer without a leader says more precisely why.
"""

from collections.abc import Mapping

from harness.broker.controller import selectors
from harness.broker.controller.selectors import Candidates, Refusal, Selection, Selector, Strategy

NO_REPLICA_ONLINE = "NoReplicaOnline"
NOT_NEEDED = "LeaderElectionNotNeeded"


def offline(candidates: Candidates) -> Selection | Refusal:
    """Return a leader for a partition that has none."""
    if not candidates.assigned:
        return Refusal("the partition has no replicas assigned to it", NO_REPLICA_ONLINE)
    if not candidates.live_isr and not candidates.may_be_unclean:
        return Refusal(f"no broker of the ISR {list(candidates.isr)} is alive", NO_REPLICA_ONLINE)
    chosen = selectors.offline(candidates)
    if isinstance(chosen, Refusal):
        return Refusal(f"no replica of {list(candidates.assigned)} is alive", NO_REPLICA_ONLINE)
    return chosen


def reassign(candidates: Candidates) -> Selection | Refusal:
    """Return a leader among the target replicas of a reassignment."""
    if not candidates.assigned:
        return Refusal("the list of reassigned replicas is empty", NO_REPLICA_ONLINE)
    chosen = selectors.reassign(candidates)
    if isinstance(chosen, Refusal):
        return Refusal("none of the reassigned replicas is alive and in sync with the leader", NO_REPLICA_ONLINE)
    return chosen


def preferred(candidates: Candidates) -> Selection | Refusal:
    """Return the preferred replica, unless it leads already."""
    if candidates.assigned and candidates.leader == candidates.assigned[0]:
        return Refusal(f"preferred replica {candidates.leader} leads already", NOT_NEEDED)
    chosen = selectors.preferred(candidates)
    if isinstance(chosen, Refusal):
        return Refusal("the preferred replica is either not alive or not in the ISR")
    return chosen


def controlled_shutdown(candidates: Candidates) -> Selection | Refusal:
    """Return the head of what remains of the ISR, in the order of the ISR and whether it lives or not."""
    isr = tuple(replica for replica in candidates.isr if replica not in candidates.shutting_down)
    if not isr:
        return Refusal(f"no other replicas in ISR {list(candidates.isr)} besides shutting down brokers")
    receivers = tuple(replica for replica in candidates.assigned if replica in candidates.live)
    return Selection(leader=isr[0], isr=isr, receivers=receivers)


def no_op(candidates: Candidates) -> Selection | Refusal:
    """Return leader and ISR as they are: what a state change that is no election was given for a selector."""
    return Selection(leader=candidates.leader, isr=candidates.isr, receivers=candidates.assigned)


SELECTORS: Mapping[Strategy, Selector] = {
    Strategy.OFFLINE: offline,
    Strategy.REASSIGN: reassign,
    Strategy.PREFERRED: preferred,
    Strategy.CONTROLLED_SHUTDOWN: controlled_shutdown,
    Strategy.NO_OP: no_op,
}

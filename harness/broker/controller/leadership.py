"""The controller's writes to a partition's state: each decision that changes leader or ISR, pure.

Each raises the leader epoch by one and has the epoch of the deciding controller.
"""

from dataclasses import replace

from harness.broker.controller.selectors import Selection
from harness.broker.zookeeper.partition_state import VersionedState
from harness.broker.zookeeper.znodes import PartitionStateZnode
from harness.events import NO_LEADER, PartitionState

INITIAL_LEADER_EPOCH = 0


def initial(live_replicas: tuple[int, ...], controller_epoch: int) -> PartitionStateZnode:
    """Return the first state of a partition: its first live replica leads, and all live ones are in the ISR."""
    return PartitionStateZnode(
        leader=live_replicas[0],
        leader_epoch=INITIAL_LEADER_EPOCH,
        isr=live_replicas,
        controller_epoch=controller_epoch,
    )


def elected(state: PartitionStateZnode, selection: Selection, controller_epoch: int) -> PartitionStateZnode:
    """Return the state after an election."""
    return PartitionStateZnode(
        leader=selection.leader,
        leader_epoch=state.leader_epoch + 1,
        isr=selection.isr,
        controller_epoch=controller_epoch,
    )


def bumped(state: PartitionStateZnode, controller_epoch: int) -> PartitionStateZnode:
    """Return the same leader and ISR in the next leader epoch: a reassignment has changed the replicas."""
    return replace(state, leader_epoch=state.leader_epoch + 1, controller_epoch=controller_epoch)


def without_replica(
    state: PartitionStateZnode, replica: int, controller_epoch: int, *, keep_last: bool = True
) -> PartitionStateZnode | None:
    """Return the state once `replica` is out of the ISR, or None when it is not in it.

    A leader that leaves makes the partition leaderless (-1). With `keep_last` the last member stays in the ISR, so that
    it can be elected cleanly on its return; in Kafka 0.8 only if unclean election is not allowed.
    """
    if replica not in state.isr:
        return None
    remaining = tuple(member for member in state.isr if member != replica)
    return PartitionStateZnode(
        leader=NO_LEADER if replica == state.leader else state.leader,
        leader_epoch=state.leader_epoch + 1,
        isr=state.isr if keep_last and not remaining else remaining,
        controller_epoch=controller_epoch,
    )


def as_evidence(versioned: VersionedState) -> PartitionState:
    """Return a state in the form of the state-change log."""
    return PartitionState(
        leader=versioned.state.leader,
        leader_epoch=versioned.state.leader_epoch,
        isr=list(versioned.state.isr),
        zk_version=versioned.zk_version,
        controller_epoch=versioned.state.controller_epoch,
    )

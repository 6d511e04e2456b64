"""Which steps may a controller take with the states that it has of partitions and of replicas, within its term?

A term is one controller epoch. What state a partition or replica has when the term begins is not told: the first
transition shows it.
"""

from msgspec import Struct

from harness.model.step import Event, Illegal, Key, Rule, Subject

NEW, ONLINE, OFFLINE, GONE = "NewPartition", "OnlinePartition", "OfflinePartition", "NonExistentPartition"
PARTITION_STEPS = {
    NEW: frozenset({GONE}),
    ONLINE: frozenset({NEW, ONLINE, OFFLINE}),
    OFFLINE: frozenset({NEW, ONLINE, OFFLINE}),
    GONE: frozenset({OFFLINE}),
}
"""From which states each is reached: `PartitionState.validPreviousStates`."""
REPLICA_STEPS = {
    "NewReplica": frozenset({"NonExistentReplica"}),
    "OnlineReplica": frozenset({"NewReplica", "OnlineReplica", "OfflineReplica", "ReplicaDeletionIneligible"}),
    "OfflineReplica": frozenset({"NewReplica", "OnlineReplica", "OfflineReplica", "ReplicaDeletionIneligible"}),
    "ReplicaDeletionStarted": frozenset({"OfflineReplica"}),
    "ReplicaDeletionSuccessful": frozenset({"ReplicaDeletionStarted"}),
    "ReplicaDeletionIneligible": frozenset({"OfflineReplica", "ReplicaDeletionStarted"}),
    "NonExistentReplica": frozenset({"ReplicaDeletionSuccessful"}),
}
"""From which states each is reached: `ReplicaState.validPreviousStates`."""


class Machine(Struct, frozen=True, kw_only=True):
    """The state of one partition or replica in a term; None is unknown."""

    state: str | None = None
    elected: bool | None = None
    """Whether a leader was elected since the last transition."""


PARTITION_VALID = Rule(
    id="controller.partition-valid",
    sentence="A partition enters a state only from one of its valid previous states.",
    source="PartitionState.validPreviousStates",
)
PARTITION_CONTINUES = Rule(
    id="controller.partition-continues",
    sentence="A transition of a partition begins in the state in which the last one ended.",
    source="ZkPartitionStateMachine.doHandleStateChanges",
)
ONLINE_ELECTED = Rule(
    id="controller.online-elected",
    sentence="A partition comes online by an election that has a result, and by no other step.",
    source="ZkPartitionStateMachine.electLeaderForPartitions",
    needs="election",
)
REPLICA_VALID = Rule(
    id="controller.replica-valid",
    sentence="A replica enters a state only from one of its valid previous states.",
    source="ReplicaState.validPreviousStates",
)
REPLICA_CONTINUES = Rule(
    id="controller.replica-continues",
    sentence="A transition of a replica begins in the state in which the last one ended.",
    source="ZkReplicaStateMachine.doHandleStateChanges",
)


def elects(state: Machine | None, event: Event) -> Machine | Illegal:
    """An election has ended, with a leader or without."""
    known = state.state if state is not None else None
    return Machine(state=known, elected=event["result"] is not None)


def moves_partition(state: Machine | None, event: Event) -> Machine | Illegal:
    """A partition is in another state."""
    known, before, now = state or Machine(), event["from_state"], event["to_state"]
    after = Machine(state=now, elected=False)
    if before not in PARTITION_STEPS.get(now, ()):
        return Illegal(PARTITION_VALID, after)
    if known.state is not None and known.state != before:
        return Illegal(PARTITION_CONTINUES, after)
    if now == ONLINE and known.elected is False:
        return Illegal(ONLINE_ELECTED, after)
    return after


def moves_replica(state: Machine | None, event: Event) -> Machine | Illegal:
    """A replica is in another state."""
    known, before, now = state or Machine(), event["from_state"], event["to_state"]
    after = Machine(state=now)
    if before not in REPLICA_STEPS.get(now, ()):
        return Illegal(REPLICA_VALID, after)
    if known.state is not None and known.state != before:
        return Illegal(REPLICA_CONTINUES, after)
    return after


def _of_partition(event: Event) -> Key:
    return event["topic"], event["partition"], event["controller_epoch"]


def _of_replica(event: Event) -> Key:
    return event["topic"], event["partition"], event["replica"], event["controller_epoch"]


PARTITION = Subject(
    name="partition",
    rules=(PARTITION_VALID, PARTITION_CONTINUES, ONLINE_ELECTED),
    legal={"election": elects, "partition_state": moves_partition},
    fresh=Machine(elected=False),
    key=_of_partition,
)
REPLICA = Subject(
    name="controlled replica",
    rules=(REPLICA_VALID, REPLICA_CONTINUES),
    legal={"replica_state": moves_replica},
    fresh=Machine(),
    key=_of_replica,
)

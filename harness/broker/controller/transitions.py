"""Which states partitions and replicas have in the controller, and from which to which they may go. Pure tables.

From Kafka's `PartitionStateMachine` and `ReplicaStateMachine`; the states of topic deletion come with it.
"""

from enum import StrEnum


class PartitionStatus(StrEnum):
    """A partition's state."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


class ReplicaStatus(StrEnum):
    """A replica's state."""

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    """On a dead broker; also what a new controller takes for granted of such a replica until it has dealt with it."""


PARTITION_PREVIOUS: dict[PartitionStatus, frozenset[PartitionStatus]] = {
    PartitionStatus.NEW: frozenset({PartitionStatus.NON_EXISTENT}),
    PartitionStatus.ONLINE: frozenset({PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE}),
    PartitionStatus.OFFLINE: frozenset({PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE}),
}
"""Target state → states that it may be reached from; a partition stops existing only by topic deletion."""

_ASSIGNED = frozenset(
    {ReplicaStatus.NEW, ReplicaStatus.ONLINE, ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_INELIGIBLE}
)
REPLICA_PREVIOUS: dict[ReplicaStatus, frozenset[ReplicaStatus]] = {
    ReplicaStatus.NEW: frozenset({ReplicaStatus.NON_EXISTENT}),
    ReplicaStatus.ONLINE: _ASSIGNED,
    ReplicaStatus.OFFLINE: _ASSIGNED,
}
"""Target state → states that it may be reached from; a replica stops existing only by topic deletion."""

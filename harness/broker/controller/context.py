"""The active controller's view of the cluster; only the task that processes its events changes it.

ZooKeeper has the truth. The view may be behind, so decisions that are written re-read what they change.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from harness.broker.controller.assignment import Assignment
from harness.broker.controller.election import ControllerEpoch
from harness.broker.controller.transitions import PartitionStatus, ReplicaStatus
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.zookeeper.partition_state import VersionedState
from harness.broker.zookeeper.registration import LiveBroker
from harness.broker.zookeeper.znodes import TopicAssignment
from harness.events import NO_LEADER
from harness.values import TopicPartition

Replica = tuple[str, int, int]
"""Topic, partition, broker id."""


@dataclass(slots=True, kw_only=True)
class ControllerContext:
    """The view during one controller epoch."""

    epoch: ControllerEpoch
    live: dict[int, LiveBroker] = field(default_factory=dict)
    """All registered brokers, those that are shutting down included."""
    shutting_down: set[int] = field(default_factory=set)
    """Asked for a controlled shutdown; removed once seen dead."""
    topics: dict[str, TopicAssignment] = field(default_factory=dict)
    leadership: dict[TopicPartition, VersionedState] = field(default_factory=dict)
    partition_status: dict[TopicPartition, PartitionStatus] = field(default_factory=dict)
    replica_status: dict[Replica, ReplicaStatus] = field(default_factory=dict)
    offline_dirs: dict[int, set[TopicPartition]] = field(default_factory=dict)
    """Replicas whose log directory has failed, by broker id; removed when the broker starts again."""
    reassigning: set[TopicPartition] = field(default_factory=set)
    """Partitions whose replicas are being replaced; their topics are not deleted meanwhile."""
    unstarted: set[Replica] = field(default_factory=set)
    """New replicas without a status: the partition's state could not be written, or they were in sync before they were
    started, as they had heard of themselves when replicas of an earlier target were removed."""
    deleting: set[str] = field(default_factory=set)
    """Topics that are to be deleted."""
    deletion_started: set[str] = field(default_factory=set)
    """Those of them whose partitions are gone already."""
    deletion_ineligible: set[str] = field(default_factory=set)
    """Those of them that cannot be deleted now."""

    @property
    def broker_epochs(self) -> dict[int, int]:
        """Return the epoch of every registered broker."""
        return {broker_id: broker.epoch for broker_id, broker in self.live.items()}

    @property
    def live_or_shutting_down(self) -> list[int]:
        """Return the registered brokers, ascending."""
        return sorted(self.live)

    def is_online(self, broker_id: int, partition: TopicPartition) -> bool:
        """Whether a replica may lead: its broker is alive and not shutting down, and its log directory works."""
        return (
            broker_id in self.live
            and broker_id not in self.shutting_down
            and partition not in self.offline_dirs.get(broker_id, ())
        )

    def live_for(self, partition: TopicPartition) -> frozenset[int]:
        """Return registered brokers, including those shutting down, without those with a failed log directory of it."""
        return frozenset(b for b in self.live if partition not in self.offline_dirs.get(b, ()))

    def assignment(self, partition: TopicPartition) -> Assignment:
        """Return the assignment of a partition; empty for an unknown one."""
        topic, number = partition
        known = self.topics.get(topic)
        if known is None:
            return Assignment(replicas=())
        return Assignment(
            replicas=known.partitions.get(number, ()),
            adding=known.adding.get(number, ()),
            removing=known.removing.get(number, ()),
        )

    def assign(self, partition: TopicPartition, assignment: Assignment) -> None:
        """Set a changed assignment of a partition of a known topic."""
        topic, number = partition
        self.topics[topic] = self.topics[topic].with_partition(
            number, assignment.replicas, adding=assignment.adding, removing=assignment.removing
        )

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """Return the assigned brokers of a partition in order; none for an unknown one."""
        topic, number = partition
        return self.topics[topic].partitions.get(number, ()) if topic in self.topics else ()

    def partitions(self) -> list[TopicPartition]:
        """Return every known partition, by topic and number."""
        return [(topic, number) for topic in sorted(self.topics) for number in sorted(self.topics[topic].partitions)]

    def replicas_on(self, broker_ids: Collection[int]) -> list[Replica]:
        """Return all replicas that are assigned to these brokers."""
        return [replica for replica in self.replicas_of(self.partitions()) if replica[2] in broker_ids]

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        """Return all replicas of these partitions, in assignment order."""
        return [(topic, number, broker) for topic, number in partitions for broker in self.replicas((topic, number))]

    def leader(self, partition: TopicPartition) -> int:
        """Return the known leader of a partition; -1 for none."""
        known = self.leadership.get(partition)
        return NO_LEADER if known is None else known.state.leader

    def partitions_with_offline_leader(self) -> list[TopicPartition]:
        """Return the partitions whose last known leader is not online; not of topics that are to be deleted."""
        return sorted(
            partition
            for partition, known in self.leadership.items()
            if partition[0] not in self.deleting and not self.is_online(known.state.leader, partition)
        )

    def partitions_in(self, *statuses: PartitionStatus) -> list[TopicPartition]:
        """Return the partitions that are in one of these states."""
        return sorted(partition for partition, status in self.partition_status.items() if status in statuses)

    def replicas_in(self, status: ReplicaStatus, topic: str) -> list[Replica]:
        """Return the replicas of a topic that are in this state."""
        return sorted(replica for replica, now in self.replica_status.items() if replica[0] == topic and now is status)

    def replicas_of_topic(self, topic: str) -> list[Replica]:
        """Return every assigned replica of a topic."""
        known = self.topics.get(topic)
        return [] if known is None else self.replicas_of((topic, number) for number in sorted(known.partitions))

    def remove_replica(self, replica: Replica) -> None:
        """Remove a deleted replica: its state, and its place in the assignment."""
        topic, number, broker_id = replica
        self.replica_status.pop(replica, None)
        if topic in self.topics and number in self.topics[topic].partitions:
            self.assign((topic, number), self.assignment((topic, number)).without(broker_id))

    def remove_broker(self, broker_id: int) -> None:
        """Remove a registration, its shutdown, and its failed log directories."""
        self.live.pop(broker_id, None)
        self.shutting_down.discard(broker_id)
        self.offline_dirs.pop(broker_id, None)

    def dirs_answered(self, broker_id: int, errors: Mapping[TopicPartition, ErrorCode]) -> list[TopicPartition]:
        """Set a broker's answer about its replicas; return those whose log directory has failed now."""
        known = self.offline_dirs.get(broker_id, set())
        working = {partition for partition, error in errors.items() if error is ErrorCode.NONE}
        failed = {partition for partition, error in errors.items() if error is ErrorCode.KAFKA_STORAGE_ERROR}
        self.offline_dirs[broker_id] = known - working | failed
        return sorted(failed - known)

    def remove_topic(self, topic: str) -> None:
        """Remove a topic."""
        self.topics.pop(topic, None)
        self.deleting.discard(topic)
        self.deletion_started.discard(topic)
        self.deletion_ineligible.discard(topic)
        self.reassigning = {partition for partition in self.reassigning if partition[0] != topic}
        for partition in [known for known in self.leadership if known[0] == topic]:
            del self.leadership[partition]
        for partition in [known for known in self.partition_status if known[0] == topic]:
            del self.partition_status[partition]
        for replica in [known for known in self.replica_status if known[0] == topic]:
            del self.replica_status[replica]

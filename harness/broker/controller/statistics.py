"""The controller's present work, the durations of its events, and the nine gauges of Kafka's `KafkaController`.

Plain numbers. The gauges are counted from the context when they are asked for, not after every
event as in Kafka: on one loop the context is never seen in the middle of a step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from harness.broker.controller.context import ControllerContext
from harness.broker.controller.transitions import PartitionStatus, ReplicaStatus
from harness.values import TopicPartition


class ControllerState(IntEnum):
    """Kafka's numbers of a controller's state."""

    IDLE = 0
    CONTROLLER_CHANGE = 1
    BROKER_CHANGE = 2
    TOPIC_CHANGE = 3
    TOPIC_DELETION = 4
    ALTER_PARTITION_REASSIGNMENT = 5
    AUTO_LEADER_BALANCE = 6
    MANUAL_LEADER_BALANCE = 7
    CONTROLLED_SHUTDOWN = 8
    ISR_CHANGE = 9
    LEADER_AND_ISR_RESPONSE_RECEIVED = 10
    LOG_DIR_CHANGE = 11
    CONTROLLER_SHUTDOWN = 12
    UNCLEAN_LEADER_ELECTION_ENABLE = 13
    TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE = 14
    LIST_PARTITION_REASSIGNMENT = 15
    UPDATE_METADATA_RESPONSE_RECEIVED = 16


EVENT_STATES: Mapping[str, ControllerState] = {
    "Startup": ControllerState.CONTROLLER_CHANGE,
    "ControllerChange": ControllerState.CONTROLLER_CHANGE,
    "Reelect": ControllerState.CONTROLLER_CHANGE,
    "RegisterBrokerAndReelect": ControllerState.CONTROLLER_CHANGE,
    "Expire": ControllerState.CONTROLLER_CHANGE,
    "BrokerChange": ControllerState.BROKER_CHANGE,
    "BrokerModifications": ControllerState.BROKER_CHANGE,
    "TopicChange": ControllerState.TOPIC_CHANGE,
    "PartitionModifications": ControllerState.TOPIC_CHANGE,
    "TopicDeletion": ControllerState.TOPIC_DELETION,
    "TopicDeletionStopReplicaResponseReceived": ControllerState.TOPIC_DELETION,
    "ZkPartitionReassignment": ControllerState.ALTER_PARTITION_REASSIGNMENT,
    "ApiPartitionReassignment": ControllerState.ALTER_PARTITION_REASSIGNMENT,
    "PartitionReassignmentIsrChange": ControllerState.ALTER_PARTITION_REASSIGNMENT,
    "ListPartitionReassignments": ControllerState.LIST_PARTITION_REASSIGNMENT,
    "AutoPreferredReplicaLeaderElection": ControllerState.AUTO_LEADER_BALANCE,
    "ReplicaLeaderElection": ControllerState.MANUAL_LEADER_BALANCE,
    "ControlledShutdown": ControllerState.CONTROLLED_SHUTDOWN,
    "IsrChangeNotification": ControllerState.ISR_CHANGE,
    "LeaderAndIsrResponseReceived": ControllerState.LEADER_AND_ISR_RESPONSE_RECEIVED,
    "LogDirEventNotification": ControllerState.LOG_DIR_CHANGE,
    "UncleanLeaderElectionEnable": ControllerState.UNCLEAN_LEADER_ELECTION_ENABLE,
    "TopicUncleanLeaderElectionEnable": ControllerState.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE,
    "UpdateMetadataResponseReceived": ControllerState.UPDATE_METADATA_RESPONSE_RECEIVED,
}
"""Every event but the end of the queue itself, which is no event here: the queue is stopped."""


@dataclass(slots=True)
class Timer:
    """Count and total duration of something."""

    count: int = 0
    total_s: float = 0.0

    def took(self, seconds: float) -> None:
        """Add one."""
        self.count += 1
        self.total_s += seconds


@dataclass(slots=True)
class EventTimes:
    """The queue's work so far, over all terms."""

    state: ControllerState = ControllerState.IDLE
    queued: Timer = field(default_factory=Timer)
    """From an event's arrival to its start."""
    processed: dict[ControllerState, Timer] = field(default_factory=dict)

    def begin(self, event: str, queued_s: float) -> None:
        """An event starts."""
        self.state = EVENT_STATES.get(event, ControllerState.IDLE)
        self.queued.took(queued_s)

    def end(self, duration_s: float) -> None:
        """It has ended."""
        self.processed.setdefault(self.state, Timer()).took(duration_s)
        self.state = ControllerState.IDLE


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerStatistics:
    """The nine gauges; all but the first are 0 on a broker that is not controller."""

    active_controller_id: int
    offline_partition_count: int = 0
    preferred_replica_imbalance_count: int = 0
    global_topic_count: int = 0
    global_partition_count: int = 0
    topics_to_delete_count: int = 0
    replicas_to_delete_count: int = 0
    ineligible_topics_to_delete_count: int = 0
    ineligible_replicas_to_delete_count: int = 0


def statistics_of(context: ControllerContext, active_controller_id: int) -> ControllerStatistics:
    """Return the gauges of a broker that is controller."""
    offline = context.partitions_in(PartitionStatus.OFFLINE)
    doomed = [replica for topic in context.deleting for replica in context.replicas_of_topic(topic)]
    states = [context.replica_status.get(replica) for replica in doomed]
    return ControllerStatistics(
        active_controller_id=active_controller_id,
        offline_partition_count=sum(topic not in context.deletion_started for topic, _ in offline),
        preferred_replica_imbalance_count=sum(_is_imbalanced(context, partition) for partition in context.leadership),
        global_topic_count=len(context.topics),
        global_partition_count=len(context.leadership),
        topics_to_delete_count=len(context.deleting),
        replicas_to_delete_count=sum(state is not ReplicaStatus.DELETION_SUCCESSFUL for state in states),
        ineligible_topics_to_delete_count=len(context.deletion_ineligible),
        ineligible_replicas_to_delete_count=states.count(ReplicaStatus.DELETION_INELIGIBLE),
    )


def _is_imbalanced(context: ControllerContext, partition: TopicPartition) -> bool:
    """Whether a replica other than the first leads; a replica being added counts once it is in the ISR."""
    topic, number = partition
    replicas = context.replicas(partition)
    if topic in context.deleting or not replicas:
        return False
    preferred, state = replicas[0], context.leadership[partition].state
    if preferred in context.topics[topic].adding.get(number, ()):
        return preferred in state.isr
    return state.leader != preferred

"""Which events does a broker write to its state-change log, and what does each line hold?

One JSON object a line; each class here is a kind of line (`ev`). Field names are Kafka's. Every line also has the
fields of `COMMON`, which the writer of the log adds.
A field that may be null is so where another system's lines do not say it; ours always do, but for `acks`.
The broker imports this module and `harness.values`, and nothing else of the harness.
"""

import re
from dataclasses import fields
from typing import Any, ClassVar

import msgspec

from harness.values import value_class

KIND = re.compile(rb'"ev":"([a-z_]+)"')
"""Of a line as it is written, without parsing it."""
NO_LEADER = -1
NO_OFFSET = -1
FORGOTTEN = -2
"""As leader in UpdateMetadata: the topic is being deleted, and the metadata cache knows it no more."""

COMMON: tuple[tuple[str, type], ...] = (
    ("ts", int),  # wall clock, nanoseconds since 1970; never used to order events of two brokers
    ("mono", int),  # monotonic clock of that process, nanoseconds
    ("seq", int),  # gap-free within one incarnation, from 0
    ("broker", int),
    ("inc", str),  # a fresh id each time the process starts
    ("session", str),  # ZooKeeper session id in hexadecimal, "" while there is none
    ("broker_epoch", int),  # czxid of the registration, -1 while there is none
    ("ev", str),
)


@value_class(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """What the partition's state znode holds, with the znode's version."""

    leader: int
    leader_epoch: int
    isr: list[int]
    zk_version: int
    controller_epoch: int


@value_class(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all lines; a subclass has the kind's name in `ev` and adds its fields."""

    ev: ClassVar[str] = ""


@value_class(frozen=True, slots=True, kw_only=True)
class PartitionEvent(Event):
    """Base of the lines that are about one partition."""

    topic: str
    partition: int


@value_class(frozen=True, slots=True, kw_only=True)
class BrokerStart(Event):
    """The process has started and read its configuration; nothing else has happened yet."""

    ev: ClassVar[str] = "broker_start"
    config_digest: str
    clean_marker: bool
    """Whether this log directory was closed cleanly the last time."""
    planted_bugs: list[str]


@value_class(frozen=True, slots=True, kw_only=True)
class BrokerStop(Event):
    """The end of a clean stop."""

    ev: ClassVar[str] = "broker_stop"
    controlled: bool
    """Whether the controller moved every leader away first."""


@value_class(frozen=True, slots=True, kw_only=True)
class LogsClose(Event):
    """A stopping broker is about to sync and close its logs, and then to mark them as clean."""

    ev: ClassVar[str] = "logs_close"


@value_class(frozen=True, slots=True, kw_only=True)
class UnexpectedError(Event):
    """Code of this broker raised an error that it does not foresee, and has given up what it was doing."""

    ev: ClassVar[str] = "unexpected_error"
    operation: str
    """What failed."""
    error: str
    """Type and message."""
    at: str
    """Module, line and function that raised it."""


@value_class(frozen=True, slots=True, kw_only=True)
class LeaveRequest(Event):
    """This broker asks the controller to move its leaders away, because it is about to stop; logged before it asks."""

    ev: ClassVar[str] = "leave_request"
    tries_left: int
    """How often it will ask again."""


@value_class(frozen=True, slots=True, kw_only=True)
class ZkSession(Event):
    """A change of the ZooKeeper session's state."""

    ev: ClassVar[str] = "zk_session"
    state: str
    """connected, suspended, lost, or reinit (a new session replaced an expired one)."""


@value_class(frozen=True, slots=True, kw_only=True)
class BrokerRegistered(Event):
    """`/brokers/ids/<id>` was created by this session."""

    ev: ClassVar[str] = "broker_registered"
    czxid: int | None


@value_class(frozen=True, slots=True, kw_only=True)
class ControllerElected(Event):
    """This broker won `/controller` and raised the controller epoch in the same multi."""

    ev: ClassVar[str] = "controller_elected"
    controller_epoch: int
    epoch_zk_version: int | None


@value_class(frozen=True, slots=True, kw_only=True)
class ControllerReady(Event):
    """Failover is complete."""

    ev: ClassVar[str] = "controller_ready"
    controller_epoch: int


@value_class(frozen=True, slots=True, kw_only=True)
class RegistrationsRead(Event):
    """This controller has read which brokers are registered; it acts on that after this line."""

    ev: ClassVar[str] = "registrations_read"
    controller_epoch: int
    registrations: list[tuple[int, int]]
    """Broker ids, each with the transaction that registered it."""


@value_class(frozen=True, slots=True, kw_only=True)
class ControllerResigned(Event):
    """This broker stopped acting as controller."""

    ev: ClassVar[str] = "controller_resigned"
    controller_epoch: int
    reason: str


@value_class(frozen=True, slots=True, kw_only=True)
class ControllerMoved(Event):
    """A fenced ZooKeeper write showed this controller that another one has taken over."""

    ev: ClassVar[str] = "controller_moved"
    controller_epoch: int
    event: str


@value_class(frozen=True, slots=True, kw_only=True)
class ControllerEvent(Event):
    """One processed event of the controller's queue."""

    ev: ClassVar[str] = "controller_event"
    name: str
    queued_ms: float
    duration_ms: float
    outcome: str
    """ok, moved, or the error's class name."""


@value_class(frozen=True, slots=True, kw_only=True)
class ZkWrite(Event):
    """One write to ZooKeeper by the controller or a partition leader, with how it ended."""

    ev: ClassVar[str] = "zk_write"
    path: str
    op: str
    """create, set or delete."""
    expected_version: int
    result: str
    """ok, badversion, nodeexists, nonode or fenced."""
    new_version: int
    """Version of the znode after the write; -1 when it failed or was deleted."""
    by: str
    """controller or leader."""
    controller_epoch: int


@value_class(frozen=True, slots=True, kw_only=True)
class Election(PartitionEvent):
    """One leader election of one partition: all inputs of the selector and its answer."""

    ev: ClassVar[str] = "election"
    strategy: str
    """initialize, offline, controlled_shutdown, preferred or reassign."""
    trigger: str
    controller_epoch: int
    previous: PartitionState | None
    online: list[int]
    """Live brokers that hold the replica's directory and are not about to leave."""
    shutting_down: list[int]
    """Brokers that asked for a controlled shutdown and are still registered."""
    assigned: list[int]
    """In a reassignment the target replicas."""
    profile: str
    """The Kafka by whose rules leaders are chosen: 2.5 or 0.8."""
    unclean_allowed: bool
    unclean: bool
    result: PartitionState | None
    error: str
    """Empty when the election succeeded."""


@value_class(frozen=True, slots=True, kw_only=True)
class IsrRemove(PartitionEvent):
    """The controller took a replica that went offline out of the ISR."""

    ev: ClassVar[str] = "isr_remove"
    replica: int
    controller_epoch: int
    previous: PartitionState
    result: PartitionState


@value_class(frozen=True, slots=True, kw_only=True)
class EpochBump(PartitionEvent):
    """The controller raised the leader epoch alone: a reassignment has changed the replicas."""

    ev: ClassVar[str] = "epoch_bump"
    controller_epoch: int
    previous: PartitionState
    result: PartitionState


@value_class(frozen=True, slots=True, kw_only=True)
class PartitionStateChange(PartitionEvent):
    """A transition of the controller's partition state machine."""

    ev: ClassVar[str] = "partition_state"
    from_state: str
    to_state: str
    controller_epoch: int


@value_class(frozen=True, slots=True, kw_only=True)
class ReplicaStateChange(PartitionEvent):
    """A transition of the controller's replica state machine."""

    ev: ClassVar[str] = "replica_state"
    replica: int
    from_state: str
    to_state: str
    controller_epoch: int


@value_class(frozen=True, slots=True, kw_only=True)
class ControlSend(Event):
    """The controller hands one control request to the network."""

    ev: ClassVar[str] = "ctl_send"
    api: str
    to: int
    correlation_id: int
    controller_epoch: int
    target_broker_epoch: int
    partitions: list[str]
    """As topic-partition."""
    live_brokers: list[int] | None
    """Of UpdateMetadata: the brokers that it names as alive."""
    queued_ms: float
    """How long ago the controller made it."""
    made_seq: int
    """Number of the line that was the next one when the controller made it."""


@value_class(frozen=True, slots=True, kw_only=True)
class ControlResponse(Event):
    """The controller received the response to one control request."""

    ev: ClassVar[str] = "ctl_resp"
    api: str
    sender: int
    correlation_id: int
    controller_epoch: int
    error: int


@value_class(frozen=True, slots=True, kw_only=True)
class ControlledPartition:
    """One partition in a control request, and what the broker did with it."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    isr: list[int]
    zk_version: int
    replicas: list[int]
    verdict: str
    """applied, ignored_old, ignored_same, not_assigned, leader_unavailable or storage_error."""


@value_class(frozen=True, slots=True, kw_only=True)
class ControlReceive(Event):
    """A control request, and what this broker did with it."""

    ev: ClassVar[str] = "ctl_recv"
    api: str
    sender: int
    controller_epoch: int
    request_broker_epoch: int | None
    verdict: str
    """applied, stale_controller_epoch or stale_broker_epoch."""
    partitions: list[ControlledPartition]
    """Of UpdateMetadata: what the metadata cache holds of them from then on, or the leader `FORGOTTEN`."""
    live_brokers: list[int] | None
    """Of UpdateMetadata that is applied: the brokers that it names as alive."""


@value_class(frozen=True, slots=True, kw_only=True)
class BecomeLeader(PartitionEvent):
    """This broker became the leader of a partition."""

    ev: ClassVar[str] = "become_leader"
    leader_epoch: int
    previous_leader_epoch: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    isr: list[int]
    zk_version: int


@value_class(frozen=True, slots=True, kw_only=True)
class BecomeFollower(PartitionEvent):
    """This broker follows `leader` from now on."""

    ev: ClassVar[str] = "become_follower"
    leader: int
    leader_epoch: int
    previous_leader_epoch: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int


@value_class(frozen=True, slots=True, kw_only=True)
class Append(PartitionEvent):
    """One record batch was appended to the log."""

    ev: ClassVar[str] = "append"
    role: str
    """leader or follower."""
    leader_epoch: int
    """The epoch this broker serves or follows in."""
    base_offset: int
    last_offset: int
    batch_epoch: int | None
    """The epoch stamped on the batch."""
    crc: int | None
    producer_id: int | None
    producer_epoch: int | None
    base_sequence: int | None
    isr_size: int | None
    acks: int | None
    """What the producer waits for: 0, 1 or -1 for all; null on a follower."""


@value_class(frozen=True, slots=True, kw_only=True)
class BatchRefused(PartitionEvent):
    """The log of a leader refused a batch of an idempotent producer; nothing was written."""

    ev: ClassVar[str] = "batch_refused"
    leader_epoch: int
    log_start_offset: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    error: int


@value_class(frozen=True, slots=True, kw_only=True)
class TransactionMarker(PartitionEvent):
    """A transaction marker was appended; the line of its batch (`append`) comes first."""

    ev: ClassVar[str] = "txn_marker"
    role: str
    """leader or follower."""
    leader_epoch: int
    offset: int
    producer_id: int
    producer_epoch: int
    result: str
    """commit or abort."""
    coordinator_epoch: int
    first_offset: int
    """Where the transaction began; -1 when the producer had none open in this log."""
    stable_offset: int
    """Where the first transaction begins that is still open; after the marker when none is."""


@value_class(frozen=True, slots=True, kw_only=True)
class MarkerRefused(PartitionEvent):
    """A leader refused a transaction marker; nothing was written."""

    ev: ClassVar[str] = "txn_marker_refused"
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    """Of the marker."""
    known_producer_epoch: int
    """That the log knows; -1 for a producer that it does not know."""
    result: str
    coordinator_epoch: int
    known_coordinator_epoch: int
    error: int


@value_class(frozen=True, slots=True, kw_only=True)
class PartitionVerification(PartitionEvent):
    """A leader has asked the coordinator whether the partition is in a producer's transaction (KIP-890)."""

    ev: ClassVar[str] = "txn_verification"
    leader_epoch: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    error: int
    """What the coordinator said; 0 when the partition is in the transaction."""


@value_class(frozen=True, slots=True, kw_only=True)
class LastStableOffset(PartitionEvent):
    """The last stable offset of one replica changed, and is or was below its high watermark.

    Unless a transaction holds it back, it equals the high watermark, and the lines of that cover it.
    """

    ev: ClassVar[str] = "lso"
    role: str
    leader_epoch: int
    old: int
    new: int
    high_watermark: int
    first_unstable_offset: int
    """-1 when no transaction is open or waits for its marker to be committed."""


@value_class(frozen=True, slots=True, kw_only=True)
class HighWatermark(PartitionEvent):
    """The high watermark of one replica changed."""

    ev: ClassVar[str] = "hw"
    role: str
    leader_epoch: int
    old: int
    new: int
    log_end_offset: int | None
    isr: list[int]
    """Empty on a follower."""
    zk_version: int
    """Version of the state znode that `isr` is from, as this broker believes."""
    cause: str


@value_class(frozen=True, slots=True, kw_only=True)
class EpochAssign(PartitionEvent):
    """The leader-epoch cache gained an entry."""

    ev: ClassVar[str] = "epoch_assign"
    leader_epoch: int
    start_offset: int


@value_class(frozen=True, slots=True, kw_only=True)
class Truncate(PartitionEvent):
    """A log is about to lose everything from `to` on; written before the files change."""

    ev: ClassVar[str] = "truncate"
    log_end_offset: int | None
    to: int
    high_watermark: int | None
    leader_epoch: int | None
    reason: str
    """epoch, hw (no usable epoch), out_of_range, full or recovery."""
    asked_epoch: int | None
    answer_epoch: int | None
    answer_end_offset: int | None
    latest_epoch: int | None
    """The newest epoch in this log's own cache; -1 when it has none."""
    local_epoch: int | None
    """The largest epoch in the own cache that is not above `answer_epoch`; -1 when unknown."""
    local_end_offset: int | None
    """Where that epoch ends in this log; -1 when unknown."""


@value_class(frozen=True, slots=True, kw_only=True)
class LogStart(PartitionEvent):
    """The first offset of a log has moved."""

    ev: ClassVar[str] = "log_start"
    old: int
    new: int
    high_watermark: int
    cause: str
    """retention, delete_records, leader (a follower takes over its leader's), or truncation, which may move it back."""


@value_class(frozen=True, slots=True, kw_only=True)
class SegmentDelete(PartitionEvent):
    """Retention is about to delete the oldest segment of a log."""

    ev: ClassVar[str] = "segment_delete"
    base_offset: int
    end_offset: int
    """After its last record."""
    reason: str
    """start (the log starts behind it), size or age."""
    log_start_offset: int
    high_watermark: int
    segment_bytes: int
    log_bytes: int
    """Of the whole log, this segment included."""
    retention_bytes: int
    """As the broker has it for the topic; -1 for no limit."""
    youngest_ms: int
    """Largest timestamp in the segment; -1 when it has none."""
    now_ms: int
    retention_ms: int
    """As the broker has it for the topic; -1 for no limit."""


@value_class(frozen=True, slots=True, kw_only=True)
class ConfigurationInForce(PartitionEvent):
    """A replica acts on other properties than the last line about its topic says, or none of the topic is left here.

    Where several replicas of a topic take the same properties in force, the first of them is named.
    """

    ev: ClassVar[str] = "config_in_force"
    hosted: bool
    """Whether this broker hosts a replica of the topic; false of the last one that it gives up."""
    properties: list[str]
    """As name=value, by Kafka's names; what a list holds is in alphabetical order. Empty if it hosts none."""


@value_class(frozen=True, slots=True, kw_only=True)
class CleaningStart(PartitionEvent):
    """A cleaner has chosen a log, with the figures of its choice."""

    ev: ClassVar[str] = "cleaning_start"
    from_offset: int
    """Where the last cleaning ended."""
    until_offset: int
    clean_bytes: int
    dirty_bytes: int
    min_dirty_ratio: float
    """`min.cleanable.dirty.ratio`, as the broker has it for the topic."""
    delay_ms: int
    """For how long it has been due by `max.compaction.lag.ms`."""


@value_class(frozen=True, slots=True, kw_only=True)
class Compaction(PartitionEvent):
    """A log is about to lose those of its records in a range of offsets that later ones with their keys replace."""

    ev: ClassVar[str] = "compaction"
    from_offset: int
    until_offset: int


@value_class(frozen=True, slots=True, kw_only=True)
class IsrPropose(PartitionEvent):
    """The leader is about to write a changed ISR to ZooKeeper."""

    ev: ClassVar[str] = "isr_propose"
    kind: str
    """shrink or expand."""
    leader_epoch: int
    old: list[int]
    new: list[int]
    zk_version: int
    log_end_offset: int
    high_watermark: int
    epoch_start_offset: int
    """Where the log ended when this leader's epoch began."""
    ends: list[int]
    """Log ends of the members of `new`, in its order, as far as the leader knows them."""


@value_class(frozen=True, slots=True, kw_only=True)
class IsrResult(PartitionEvent):
    """How ZooKeeper answered the preceding proposal."""

    ev: ClassVar[str] = "isr_result"
    kind: str
    leader_epoch: int
    old: list[int]
    new: list[int]
    zk_version: int
    result: str
    """ok, badversion, discarded (the partition changed role meanwhile) or unknown (the session ended first)."""
    new_zk_version: int


@value_class(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpoch(PartitionEvent):
    """A leader answered where a leader epoch ends (OffsetForLeaderEpoch)."""

    ev: ClassVar[str] = "ofle"
    sender: int
    current_leader_epoch: int
    asked_epoch: int
    answer_epoch: int
    end_offset: int
    error: int
    leader_epoch: int
    """The one in which it answers; -1 when it refuses."""
    log_end_offset: int
    """Of its log then; -1 when it refuses."""
    leader_epochs: list[tuple[int, int]]
    """All epochs that its log has then, each with its first offset."""


@value_class(frozen=True, slots=True, kw_only=True)
class OffsetListed(PartitionEvent):
    """A leader told a consumer an offset (ListOffsets)."""

    ev: ClassVar[str] = "list_offsets"
    leader_epoch: int
    """The one in which it answers."""
    timestamp: int
    """Asked for: -1 for the latest offset, -2 for the earliest, -3 for the youngest record."""
    read_committed: bool
    offset: int
    """-1 if no record has the timestamp or a later one."""
    record_timestamp: int
    """Of the record that was found; -1 for none."""


@value_class(frozen=True, slots=True, kw_only=True)
class ProduceResponse(Event):
    """The result of a produce request for one partition; logged before the response is sent."""

    ev: ClassVar[str] = "produce_resp"
    correlation_id: int
    client: str
    topic: str
    partition: int
    acks: int
    base_offset: int
    last_offset: int
    error: int
    isr_size: int
    high_watermark: int
    leader_epoch: int
    duration_ms: float


@value_class(frozen=True, slots=True, kw_only=True)
class FetchResponse(PartitionEvent):
    """Records of one partition were returned to a fetch; responses without records are not logged."""

    ev: ClassVar[str] = "fetch_resp"
    replica: int
    """-1 for a consumer."""
    fetch_offset: int
    current_leader_epoch: int
    high_watermark: int
    last_offset: int
    leader_epoch: int


@value_class(frozen=True, slots=True, kw_only=True)
class Recovery(PartitionEvent):
    """A log was loaded at start."""

    ev: ClassVar[str] = "recovery"
    clean: bool | None
    log_start_offset: int
    log_end_offset: int
    recovery_point: int | None
    high_watermark: int
    truncated_bytes: int | None


@value_class(frozen=True, slots=True, kw_only=True)
class ProducersExpired(PartitionEvent):
    """A log has forgotten producers that wrote nothing for `producer.id.expiration.ms`."""

    ev: ClassVar[str] = "producers_expired"
    producer_ids: list[int]


@value_class(frozen=True, slots=True, kw_only=True)
class LogDirectoryFailure(Event):
    """An I/O error of a log directory: every replica in it is offline until the broker starts again."""

    ev: ClassVar[str] = "log_dir_failure"
    error: str
    replicas: int
    """How many went offline."""


@value_class(frozen=True, slots=True, kw_only=True)
class HighWatermarkCheckpoint(Event):
    """`replication-offset-checkpoint` was written."""

    ev: ClassVar[str] = "hw_checkpoint"
    count: int


@value_class(frozen=True, slots=True, kw_only=True)
class CoordinatorLoad(Event):
    """The committed offsets of one partition of `__consumer_offsets` were loaded."""

    ev: ClassVar[str] = "gc_load"
    partition: int
    leader_epoch: int
    groups: int
    offsets: int
    log_end_offset: int
    disk_error: str
    """Why the disk gave no more of the log; empty if it gave all."""


@value_class(frozen=True, slots=True, kw_only=True)
class CoordinatorUnload(Event):
    """This broker stopped coordinating one partition of `__consumer_offsets`."""

    ev: ClassVar[str] = "gc_unload"
    partition: int
    leader_epoch: int
    groups: int


@value_class(frozen=True, slots=True, kw_only=True)
class GroupEvent(Event):
    """Base of the lines that are about one consumer group."""

    group: str
    offsets_partition: int
    """The partition of `__consumer_offsets` that holds the group."""
    coordinator_epoch: int
    """Leader epoch of that partition, in which this broker coordinates the group."""
    generation: int


@value_class(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One member of a group."""

    member: str
    """Its member id."""
    instance: str | None
    """`group.instance.id` of a static member."""


@value_class(frozen=True, slots=True, kw_only=True)
class GroupStateChange(GroupEvent):
    """A group came into another state, or was read from the log."""

    ev: ClassVar[str] = "group_state"
    from_state: str
    """Kafka's name; empty when it was read from the log."""
    to_state: str
    """Empty, PreparingRebalance, CompletingRebalance, Stable or Dead."""
    protocol_type: str | None
    protocol: str | None
    group_leader: str | None
    """Member id of the member that assigns."""
    members: list[GroupMember]
    rebalance_timeout_ms: int
    """The longest that any member has."""
    session_timeout_ms: int
    """The longest that any member has."""
    reason: str


@value_class(frozen=True, slots=True, kw_only=True)
class GroupMemberChange(GroupEvent):
    """A group has one member more or less, or an instance came back under another member id."""

    ev: ClassVar[str] = "group_member"
    member: str
    instance: str | None
    change: str
    """joined, removed or replaced."""
    old_member: str | None
    """The id that was replaced."""
    reason: str
    """Of a removal: session expired, rebalance time-out, sync time-out, left, or group full; empty otherwise."""


@value_class(frozen=True, slots=True, kw_only=True)
class GroupHeartbeat(GroupEvent):
    """A member's Heartbeat was accepted: its session begins again."""

    ev: ClassVar[str] = "group_heartbeat"
    member: str
    session_timeout_ms: int
    """Of this member."""


@value_class(frozen=True, slots=True, kw_only=True)
class AssignedPartition:
    """One partition that a member is to consume."""

    topic: str
    partition: int


@value_class(frozen=True, slots=True, kw_only=True)
class MemberAssignment:
    """What one member was assigned."""

    member: str
    instance: str | None
    partitions: list[AssignedPartition] | None
    """By Kafka's consumer protocol; null where the assignment is of another kind."""


@value_class(frozen=True, slots=True, kw_only=True)
class GroupAssignment(GroupEvent):
    """The assignment of a generation is stored, was stored again for an instance that came back, or was loaded."""

    ev: ClassVar[str] = "group_assignment"
    reason: str
    """stored, replaced or loaded."""
    assignments: list[MemberAssignment]


@value_class(frozen=True, slots=True, kw_only=True)
class OffsetCommit(Event):
    """The result of one offset commit; logged before the response is sent."""

    ev: ClassVar[str] = "offset_commit"
    group: str
    generation: int
    """As the committer gave it; -1 for a committer that is not a member."""
    member: str
    instance: str | None
    coordinator_epoch: int
    """Leader epoch in which this broker coordinates the group; -1 when it does not."""
    decided_seq: int
    """Number of this log's next line when it was decided whether the commit may be taken."""
    topic: str
    partition: int
    offset: int
    log_offset: int
    """Offset of the commit in `__consumer_offsets`; -1 when it was refused."""
    error: int


@value_class(frozen=True, slots=True, kw_only=True)
class OffsetRetired(Event):
    """A committed offset is no more: it has expired, or it, its group or its topic was deleted.

    Logged when it is read back no more, and again when that is stored for later coordinators.
    """

    ev: ClassVar[str] = "offset_retired"
    group: str
    coordinator_epoch: int
    topic: str
    partition: int
    log_offset: int
    """Offset of its tombstone in `__consumer_offsets`; -1 while it is not stored."""


@value_class(frozen=True, slots=True, kw_only=True)
class OffsetFetch(Event):
    """One committed offset was read back."""

    ev: ClassVar[str] = "offset_fetch"
    group: str
    topic: str
    partition: int
    offset: int
    error: int


@value_class(frozen=True, slots=True, kw_only=True)
class TransactionLoad(Event):
    """The transactions of one partition of `__transaction_state` were loaded."""

    ev: ClassVar[str] = "txn_load"
    partition: int
    leader_epoch: int
    transactions: int
    log_end_offset: int
    disk_error: str
    """Why the disk gave no more of the log; empty if it gave all."""


@value_class(frozen=True, slots=True, kw_only=True)
class TransactionUnload(Event):
    """This broker stopped coordinating one partition of `__transaction_state`."""

    ev: ClassVar[str] = "txn_unload"
    partition: int
    leader_epoch: int
    transactions: int


@value_class(frozen=True, slots=True, kw_only=True)
class TransactionEvent(Event):
    """Base of the lines that are about one transactional id."""

    transactional_id: str
    state_partition: int
    """The partition of `__transaction_state` that holds the transactional id."""
    coordinator_epoch: int
    """Leader epoch of that partition, in which this broker coordinates the transaction; -1 when it does not."""
    producer_id: int
    producer_epoch: int


@value_class(frozen=True, slots=True, kw_only=True)
class TransactionStateChange(TransactionEvent):
    """The next state of a transaction is stored, or it was read from the log."""

    ev: ClassVar[str] = "txn_state"
    from_state: str
    """Kafka's name; empty when it was read from the log."""
    to_state: str
    """Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort or Dead."""
    timeout_ms: int
    partitions: list[str]
    """Those of the transaction that have no marker yet, as topic-partition."""
    log_offset: int
    """Offset of the record in `__transaction_state`; -1 when it was read from the log."""


@value_class(frozen=True, slots=True, kw_only=True)
class TransactionResponse(TransactionEvent):
    """A producer's request was decided; logged before the response is sent."""

    ev: ClassVar[str] = "txn_response"
    api: str
    """InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn or EndTxn."""
    error: int


@value_class(frozen=True, slots=True, kw_only=True)
class TransactionalOffsetCommit(Event):
    """The result of one offset that a producer commits in a transaction; logged before the response is sent."""

    ev: ClassVar[str] = "txn_offset_commit"
    group: str
    transactional_id: str
    producer_id: int
    producer_epoch: int
    generation: int
    """As the producer gave it; -1 of one that names no member."""
    member: str
    coordinator_epoch: int
    """Leader epoch in which this broker coordinates the group; -1 when it does not."""
    decided_seq: int
    """Number of this log's next line when it was decided whether the commit may be taken."""
    topic: str
    partition: int
    offset: int
    error: int


@value_class(frozen=True, slots=True, kw_only=True)
class TransactionMarkerSend(TransactionEvent):
    """A coordinator hands one marker for a broker to the network."""

    ev: ClassVar[str] = "txn_marker_send"
    to: int
    commits: bool
    partitions: list[str]
    """As topic-partition."""


@value_class(frozen=True, slots=True, kw_only=True)
class TransactionMarkerResponse(TransactionEvent):
    """A coordinator received the answer to one marker."""

    ev: ClassVar[str] = "txn_marker_resp"
    sender: int
    commits: bool
    partitions: list[str]
    """As topic-partition."""
    errors: list[int]
    """One a partition, in their order."""


@value_class(frozen=True, slots=True, kw_only=True)
class Holdings(Event):
    """What this broker holds at an instant, beside what it needs; logged at intervals."""

    ev: ClassVar[str] = "holdings"
    fetchers: list[int]
    """Leaders that fetchers run for."""
    followed: list[int]
    """Leaders of the replicas that follow here."""
    without_session: list[int]
    """Leaders that answered the last full fetch without a fetch session."""
    session_slots: int
    """Fetch sessions that this broker may have."""
    channels: list[int]
    """Brokers to which it has a channel as controller."""
    live: list[int]
    """Brokers that it takes for registered as controller."""
    unanswered: list[int]
    """Brokers that have yet to answer a request of this controller, or to get one."""
    controller_idle: bool
    """Whether it is controller and has handled every event."""
    controller: int
    """The controller that it knows; -1 for none."""
    known_brokers: list[int]
    """Brokers that are alive by its metadata."""
    group_partitions: list[int]
    """Partitions of `__consumer_offsets` that its group coordinator has loaded or loads."""
    group_leads: list[int]
    """Those that it leads."""
    transaction_partitions: list[int]
    """Partitions of `__transaction_state` that its transaction coordinator has loaded or loads."""
    transaction_leads: list[int]
    """Those that it leads."""
    timers_missing: list[str]
    """Timers that a group's state needs and that do not run: group, kind and member."""
    timers_left: list[str]
    """Timers that run although nothing of the group's state needs them."""
    unclaimed: list[str]
    """Groups, `JoinGroup` or `SyncGroup` requests of which wait although no member has them."""
    due: list[str]
    """Waiting requests whose condition holds: kind and partition, or what an idle controller was asked for."""
    stuck_transactions: list[str]
    """Transactional ids whose next state is neither being stored nor waits for markers."""
    differences: list[str]
    """What this broker keeps in two places that do not agree, such as the members of a group and their instances.

    In virtual time, the last line also has the differences between its memory and what a restart would load.
    """
    controller_differences: list[str]
    """The same of its view of the cluster as controller, once it has handled every event."""
    overdue: list[str]
    """Waiting requests, open transactions and followers in the ISR that have outlived their time-outs."""


@value_class(frozen=True, slots=True, kw_only=True)
class Fenced(Event):
    """A request was refused because an epoch in it was wrong."""

    ev: ClassVar[str] = "fenced"
    what: str
    """controller_epoch, broker_epoch or leader_epoch."""
    api: str
    topic: str
    partition: int
    """-1 when the whole request was refused."""
    got: int
    have: int
    sender: int
    error: int


KINDS: dict[str, type[Event]] = {
    kind.ev: kind for kind in list(globals().values()) if isinstance(kind, type) and issubclass(kind, Event) and kind.ev
}

FIELDS: dict[str, tuple[str, ...]] = {name: tuple(each.name for each in fields(kind)) for name, kind in KINDS.items()}
"""Of each kind of line, without the common ones."""


# Encoding is on the broker's hot path: several lines a record.
_KINDS_IN_JSON = {kind: f',"ev":"{kind.ev}"{"," if FIELDS[kind.ev] else ""}'.encode() for kind in KINDS.values()}
"""What a line has between the common fields and those of its kind."""
_to_json = msgspec.json.Encoder().encode


def encode(event: Event, common: dict[str, Any]) -> bytes:
    """Return the line for `event`, newline included; `common` holds every field of `COMMON` except `ev`."""
    return b"%b%b%b\n" % (_to_json(common)[:-1], _KINDS_IN_JSON[type(event)], _to_json(event)[1:])

"""The rules of replication, without sockets, clock or disk: high watermark, ISR, truncation, fencing.

Committed means *below* the high watermark: it is the offset of the next record to be committed. Sources: `Partition`,
`Replica`, `AbstractFetcherThread` and `ReplicaManager` of Kafka 2.5; KIP-101, KIP-279, KIP-320, KIP-392, KIP-570.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from harness.broker.log.epoch_cache import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochEnd
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import EPOCH_DURING_DELETE, NO_EPOCH
from harness.events import NO_OFFSET

NEVER_S = float("-inf")


@dataclass(slots=True)
class FollowerProgress:
    """What a leader knows about one follower. Changed at every fetch, hence mutable."""

    log_end_offset: int = NO_OFFSET
    """Its fetch offset: it has everything before. -1 until it fetches in this leader's term."""
    log_start_offset: int = NO_OFFSET
    """Start of its log, by its last fetch."""
    last_fetch_s: float = NEVER_S
    leader_log_end_at_last_fetch: int = NO_OFFSET
    last_caught_up_s: float = NEVER_S
    """When it was last known to have all of the leader's records."""

    def fetched(self, fetch_offset: int, leader_log_end_offset: int, now_s: float) -> bool:
        """Apply a fetch and return whether the follower's log end moved.

        `leader_log_end_offset` is the leader's before it reads for this fetch. A follower at the end now is caught up
        now; one that has reached the end of its previous fetch was caught up at that time.
        """
        if fetch_offset >= leader_log_end_offset:
            self.last_caught_up_s = max(self.last_caught_up_s, now_s)
        elif fetch_offset >= self.leader_log_end_at_last_fetch:
            self.last_caught_up_s = max(self.last_caught_up_s, self.last_fetch_s)
        moved = fetch_offset != self.log_end_offset
        self.log_end_offset = fetch_offset
        self.leader_log_end_at_last_fetch = leader_log_end_offset
        self.last_fetch_s = now_s
        return moved

    def start_term(self, leader_log_end_offset: int, now_s: float, *, in_isr: bool, was_leader: bool) -> None:
        """Begin a leader epoch: members of the ISR get the full lag time; a new leader knows no follower's log end."""
        self.leader_log_end_at_last_fetch = leader_log_end_offset
        self.last_fetch_s = now_s
        self.last_caught_up_s = now_s if in_isr else NEVER_S
        if not was_leader:
            self.log_end_offset = NO_OFFSET
            self.log_start_offset = NO_OFFSET


def next_high_watermark(
    current: int,
    leader_log_end_offset: int,
    isr: Iterable[int],
    followers: Mapping[int, FollowerProgress],
    now_s: float,
    lag_s: float,
) -> int:
    """Return the leader's high watermark: the smallest log end of all that must have a record, never lower than now.

    Those are the leader, the ISR, and every caught-up follower outside the ISR: it may be in the next ISR, and must not
    miss records committed meanwhile.
    """
    members = frozenset(isr)
    smallest = leader_log_end_offset
    for broker_id, progress in followers.items():
        counts = broker_id in members or now_s - progress.last_caught_up_s <= lag_s
        if counts and progress.log_end_offset < smallest:
            smallest = progress.log_end_offset
    return max(current, smallest)


def follower_high_watermark(leader_high_watermark: int, log_start_offset: int, log_end_offset: int) -> int:
    """Return a follower's high watermark: the leader's, up to the own log's end; it may go down."""
    return max(log_start_offset, min(leader_high_watermark, log_end_offset))


def out_of_sync(
    isr: Iterable[int],
    replicas: Collection[int],
    leader_id: int,
    leader_log_end_offset: int,
    followers: Mapping[int, FollowerProgress],
    now_s: float,
    lag_s: float,
) -> list[int]:
    """Return the members of the ISR that must leave it, in its order.

    One that has lagged for too long must; a complete one never lags (KAFKA-7152). So must one that is no longer a
    replica: it may have joined after the controller wrote a smaller assignment, and before it sent that (KAFKA-9672).
    """

    def lags(follower: FollowerProgress) -> bool:
        return follower.log_end_offset != leader_log_end_offset and now_s - follower.last_caught_up_s > lag_s

    return [
        broker_id
        for broker_id in isr
        if broker_id != leader_id and (broker_id not in replicas or lags(followers[broker_id]))
    ]


def may_join_isr(follower_log_end_offset: int, high_watermark: int, epoch_start_offset: int) -> bool:
    """Whether a follower has all committed records, of this leader and of earlier ones (KAFKA-7128)."""
    return follower_log_end_offset >= high_watermark and follower_log_end_offset >= epoch_start_offset


def required_insync_replicas(min_insync_replicas: int, replica_count: int) -> int:
    """Return how many ISR members acks=all needs; a topic with fewer replicas needs all of them."""
    return min(min_insync_replicas, replica_count)


def check_leader_epoch(expected: int, current: int) -> ErrorCode:
    """Return what a request with `current_leader_epoch` gets from a replica in epoch `current` (KIP-320)."""
    if expected in (NO_EPOCH, current):
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if expected < current else ErrorCode.UNKNOWN_LEADER_EPOCH


class ControlOutcome(StrEnum):
    """The outcome of one partition of a control request."""

    APPLIED = "applied"
    IGNORED_OLD = "ignored_old"
    IGNORED_SAME = "ignored_same"
    NOT_ASSIGNED = "not_assigned"
    LEADER_UNAVAILABLE = "leader_unavailable"
    STORAGE_ERROR = "storage_error"


LEADER_AND_ISR_ERRORS: dict[ControlOutcome, ErrorCode] = {
    ControlOutcome.APPLIED: ErrorCode.NONE,
    ControlOutcome.IGNORED_OLD: ErrorCode.STALE_CONTROLLER_EPOCH,
    ControlOutcome.IGNORED_SAME: ErrorCode.STALE_CONTROLLER_EPOCH,
    ControlOutcome.NOT_ASSIGNED: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ControlOutcome.LEADER_UNAVAILABLE: ErrorCode.NONE,
    ControlOutcome.STORAGE_ERROR: ErrorCode.KAFKA_STORAGE_ERROR,
}
"""LeaderAndIsr's error for each outcome; an unavailable leader is no error (KAFKA-1647)."""


def judge_leader_and_isr(
    requested_epoch: int, local_epoch: int, *, assigned: bool, leads: bool, leader_alive: bool
) -> ControlOutcome:
    """Return the outcome of a LeaderAndIsr for one partition of a broker in `local_epoch`.

    Only a larger leader epoch is new: the controller resends equal ones all the time. A follower whose new leader is
    not alive (or is -1) keeps its old state, including the epoch, and waits for the next request.
    """
    if requested_epoch < local_epoch:
        return ControlOutcome.IGNORED_OLD
    if requested_epoch == local_epoch:
        return ControlOutcome.IGNORED_SAME
    if not assigned:
        return ControlOutcome.NOT_ASSIGNED
    return ControlOutcome.APPLIED if leads or leader_alive else ControlOutcome.LEADER_UNAVAILABLE


def judge_stop_replica(requested_epoch: int, local_epoch: int) -> ControlOutcome:
    """Return the outcome of a StopReplica for one partition (KIP-570): an older epoch than the replica's stops nothing.

    The replica's own epoch does: the controller stops a replica before it raises the epoch of those that stay.
    """
    fenced = requested_epoch not in (NO_EPOCH, EPOCH_DURING_DELETE) and requested_epoch < local_epoch
    return ControlOutcome.IGNORED_OLD if fenced else ControlOutcome.APPLIED


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """One step of a follower's truncation."""

    to: int
    done: bool
    """False when the next older common epoch must be looked up (KIP-279)."""
    reason: str
    """epoch, or hw when no epoch could be used."""


def truncation_without_epochs(high_watermark: int) -> Truncation:
    """Return the step of a follower without any leader epochs: back to its high watermark."""
    return Truncation(to=high_watermark, done=True, reason="hw")


def truncation_after(answer: EpochEnd, local_end: EpochEnd, log_end_offset: int, high_watermark: int) -> Truncation:
    """Return a follower's step after its leader's answer about the end of an epoch (KIP-101, KIP-279).

    `local_end` is the end of the answered epoch in the follower's own log. If the follower never saw that epoch, it
    drops what came after its largest older one and asks again.
    """
    if answer.end_offset == UNDEFINED_OFFSET:
        return truncation_without_epochs(high_watermark)
    if answer.epoch == UNDEFINED_EPOCH or local_end.end_offset == UNDEFINED_OFFSET:
        return Truncation(to=min(answer.end_offset, log_end_offset), done=True, reason="epoch")
    if local_end.epoch != answer.epoch:
        return Truncation(to=min(local_end.end_offset, log_end_offset), done=False, reason="epoch")
    return Truncation(to=min(local_end.end_offset, answer.end_offset, log_end_offset), done=True, reason="epoch")

"""One replica of one partition on this broker: its role, its high watermark, and its followers' progress.

Nothing here waits: every method is one step on the broker's loop, so a partition is never seen half changed. Its
changes are in the state-change log before a method returns.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from harness.broker.log.epoch_cache import EpochEnd
from harness.broker.log.log import AppendInfo, InvalidRecords, Log, OffsetOutOfRange, OffsetsOutOfOrder
from harness.broker.log.retention import delete_old_segments
from harness.broker.log.verification import Verification
from harness.broker.replicas.partition_lines import Role, appended, marked, refused
from harness.broker.replicas.replication import (
    NEVER_S,
    FollowerProgress,
    check_leader_epoch,
    follower_high_watermark,
    may_join_isr,
    next_high_watermark,
    out_of_sync,
    required_insync_replicas,
)
from harness.broker.rules import ProtocolRules
from harness.broker.state_log import StateLog
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import NO_EPOCH
from harness.events import (
    NO_LEADER,
    NO_OFFSET,
    BecomeFollower,
    BecomeLeader,
    HighWatermark,
    LastStableOffset,
    LogStart,
    Truncate,
)
from harness.values import ACKS_ALL, TopicPartition, value_class


class PartitionError(Exception):
    """A request cannot be carried out on this partition; `error` is the answer."""

    def __init__(self, error: ErrorCode, message: str = "") -> None:
        super().__init__(message or error.name)
        self.error = error


def nobody_else(_topic: str) -> int:
    """Return that a leader may commit on its own, as up to Kafka 3.6; later it needs as many as acks=all does."""
    return 0


@value_class(frozen=True, slots=True, kw_only=True)
class LeaderAndIsr:
    """One partition in LeaderAndIsr."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int
    replicas: tuple[int, ...]
    controller_epoch: int


@value_class(frozen=True, slots=True, kw_only=True)
class TruncationCause:
    """Why a follower truncates, for the state-change log."""

    reason: str
    requested_epoch: int = NO_EPOCH
    answer_epoch: int = NO_EPOCH
    answer_end_offset: int = NO_OFFSET


@dataclass(slots=True, kw_only=True)
class Partition:
    """A replica; mutable because append, fetch and high watermark are the hot path."""

    key: TopicPartition
    broker_id: int
    log: Log
    state_log: StateLog
    rules: ProtocolRules
    lag_s: float
    """A follower that lags for longer leaves the ISR (`replica.lag.time.max.ms`)."""
    high_watermark: int
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    controller_epoch: int = -1
    """Epoch of the controller that wrote this state; leaders repeat it with every ISR change."""
    zk_version: int = -1
    isr: tuple[int, ...] = ()
    """As ZooKeeper last accepted it; empty on a follower."""
    replicas: tuple[int, ...] = ()
    epoch_start_offset: int = NO_OFFSET
    """Where this leader's epoch started; -1 on a follower."""
    followers: dict[int, FollowerProgress] = field(default_factory=dict)
    offline: bool = False
    """Whether the log's disk has failed."""
    proposed_isr: tuple[int, ...] = ()
    """The ISR in flight to ZooKeeper; one at a time, and empty means none."""
    committing_needs: Callable[[str], int] = nobody_else
    """Returns how many replicas must be in sync for a topic's high watermark to rise."""
    being_deleted: bool = False
    """Whether the controller is deleting the topic."""
    unsettled_isr: tuple[int, ...] = ()
    """An ISR that ZooKeeper may have accepted without an answer; empty means none."""
    noted_stable_offset: int = 0
    """The last logged last stable offset."""
    held_back: bool = False
    """Whether it was below the high watermark then."""

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads the partition, by the last LeaderAndIsr."""
        return self.leader == self.broker_id

    @property
    def last_stable_offset(self) -> int:
        """The first offset that is part of an undecided transaction, at most the high watermark."""
        unstable = self.log.first_unstable_offset(self.high_watermark)
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    # --- roles ---

    def take_offline(self) -> None:
        """The disk has failed: holders of this object find neither leader nor follower here."""
        self.offline = True
        self.leader = NO_LEADER
        self.isr = ()
        self.followers = {}

    def make_leader(self, state: LeaderAndIsr, now_s: float) -> None:
        """Become leader: the epoch starts at the log's end and is on disk before any append (KAFKA-7415).

        Raises:
            OSError: the disk failed; the replica is unchanged.
        """
        was_leader, previous_epoch = self.is_leader, self.leader_epoch
        self.log.assign_epoch(state.leader_epoch, self.log.log_end_offset)
        self._take_over(state)
        self.isr = state.isr
        self.epoch_start_offset = self.log.log_end_offset
        remote = [
            broker_id for broker_id in dict.fromkeys((*state.replicas, *state.isr)) if broker_id != self.broker_id
        ]
        self.followers = {broker_id: self.followers.get(broker_id, FollowerProgress()) for broker_id in remote}
        for broker_id, progress in self.followers.items():
            progress.start_term(self.log.log_end_offset, now_s, in_isr=broker_id in state.isr, was_leader=was_leader)
        topic, partition = self.key
        self.state_log.emit(
            BecomeLeader(
                topic=topic,
                partition=partition,
                leader_epoch=self.leader_epoch,
                previous_leader_epoch=previous_epoch,
                log_start_offset=self.log.log_start_offset,
                high_watermark=self.high_watermark,
                log_end_offset=self.log.log_end_offset,
                isr=list(self.isr),
                zk_version=self.zk_version,
            )
        )
        self.advance_high_watermark(now_s, cause="become_leader")

    def make_follower(self, state: LeaderAndIsr) -> None:
        """Follow another broker from now on; the log is unchanged until that leader was asked about it."""
        previous_epoch = self.leader_epoch
        self._take_over(state)
        self.isr = ()
        self.epoch_start_offset = NO_OFFSET
        self.followers = {}
        topic, partition = self.key
        self.state_log.emit(
            BecomeFollower(
                topic=topic,
                partition=partition,
                leader=self.leader,
                leader_epoch=self.leader_epoch,
                previous_leader_epoch=previous_epoch,
                log_start_offset=self.log.log_start_offset,
                high_watermark=self.high_watermark,
                log_end_offset=self.log.log_end_offset,
            )
        )

    def _take_over(self, state: LeaderAndIsr) -> None:
        self.leader = state.leader
        self.leader_epoch = state.leader_epoch
        self.unsettled_isr = ()
        self.being_deleted = False
        self.controller_epoch = state.controller_epoch
        self.zk_version = state.zk_version
        self.replicas = state.replicas

    # --- leader ---

    def check_leads(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """Return when this broker leads in the sender's epoch.

        Raises:
            PartitionError: the epochs differ, or another broker leads.
        """
        self.check_epoch(current_leader_epoch)
        if self.leader != self.broker_id:
            raise PartitionError(ErrorCode.NOT_LEADER_FOR_PARTITION)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Return when the sender's leader epoch is the same, or undefined; raises PartitionError."""
        expected = current_leader_epoch if self.rules.leader_epoch_fences else NO_EPOCH
        error = check_leader_epoch(expected, self.leader_epoch)
        if error is not ErrorCode.NONE:
            raise PartitionError(error)

    def append_as_leader(
        self,
        records: bytes,
        *,
        acks: int,
        min_insync_replicas: int,
        now_ms: int = 0,
        internal: bool = False,
        verification: Verification | None = None,
    ) -> AppendInfo:
        """Append the records of one producer request and return their place.

        The last three arguments are those of `Log.append_as_leader`.

        Raises:
            PartitionError: not the leader, or too few replicas in sync; nothing was written.
            InvalidRecords: the log refused them; nothing was written.
        """
        self.check_leads()
        enough = self.has_enough_insync(min_insync_replicas) or not self.rules.few_in_sync_append_nothing
        if acks == ACKS_ALL and not enough:
            raise PartitionError(ErrorCode.NOT_ENOUGH_REPLICAS)
        try:
            info = self.log.append_as_leader(
                records, self.leader_epoch, now_ms=now_ms, internal=internal, verification=verification
            )
        except InvalidRecords as error:
            for line in refused(self._as("leader"), self.log, records, error.error_code):
                self.state_log.emit(line)
            raise
        self._log_appended("leader", info, acks)
        return info

    def has_enough_insync(self, min_insync_replicas: int) -> bool:
        """Whether the ISR is large enough for acks=all."""
        return len(self.isr) >= required_insync_replicas(min_insync_replicas, len(self.replicas))

    def follower_fetched(self, replica_id: int, fetch_offset: int, now_s: float) -> bool:
        """Record that a follower has everything before `fetch_offset`; return whether its log end moved."""
        return self.followers[replica_id].fetched(fetch_offset, self.log.log_end_offset, now_s)

    def follower_starts_at(self, replica_id: int, log_start_offset: int) -> bool:
        """Record the start of a follower's log; return whether it changed."""
        progress = self.followers[replica_id]
        news = progress.log_start_offset != log_start_offset
        progress.log_start_offset = log_start_offset
        return news

    def advance_high_watermark(self, now_s: float, *, cause: str) -> bool:
        """Raise the leader's high watermark as far as allowed; return whether it moved.

        It waits for proposed members too, which ZooKeeper may have accepted already: Kafka 2.5 holds a lock over that
        write, and later ones count the maximal ISR (KIP-497).
        """
        if not self.has_enough_insync(self.committing_needs(self.key[0])):
            return False
        followers = self.followers if self.rules.high_watermark_waits_for_isr else {}
        lag_s = self.lag_s if self.rules.high_watermark_waits_for_joining else NEVER_S
        members = self.isr + self.proposed_isr + self.unsettled_isr
        new = next_high_watermark(self.high_watermark, self.log.log_end_offset, members, followers, now_s, lag_s)
        return self._set_high_watermark(new, "leader", cause)

    def wants_to_join(self, replica_id: int) -> bool:
        """Whether a follower is outside the ISR and has all committed records."""
        since = self.epoch_start_offset if self.rules.isr_joins_from_epoch_start else NO_OFFSET
        return replica_id not in self.isr and may_join_isr(
            self.followers[replica_id].log_end_offset, self.high_watermark, since
        )

    def out_of_sync(self, now_s: float) -> list[int]:
        """Return the members of the ISR that must leave it."""
        log_end_offset = self.log.log_end_offset
        return out_of_sync(self.isr, self.replicas, self.broker_id, log_end_offset, self.followers, now_s, self.lag_s)

    def ends_of(self, members: Iterable[int]) -> list[int]:
        """Return the known log ends of members of the ISR."""
        return [
            self.log.log_end_offset if member == self.broker_id else self.followers[member].log_end_offset
            for member in members
        ]

    def adopt_isr(self, isr: tuple[int, ...], zk_version: int) -> None:
        """Apply an ISR that ZooKeeper has accepted."""
        self.isr = isr
        self.zk_version = zk_version
        self.unsettled_isr = ()

    def delete_records(self, before: int) -> None:
        """Move the log's start to `before`; its segments are removed by the next retention.

        Raises:
            PartitionError: the topic is one that only compaction cleans.
            OffsetOutOfRange: not all of that is committed.
        """
        if not self.log.settings.deletes:
            raise PartitionError(ErrorCode.POLICY_VIOLATION, "cleanup.policy has no delete")
        if not 0 <= before <= self.high_watermark and self.rules.deletions_past_the_end_are_refused:
            raise OffsetOutOfRange(f"cannot delete before {before}, the high watermark is {self.high_watermark}")
        self._advance_log_start(min(before, self.high_watermark), "delete_records")

    def retain(self, now_ms: int) -> int:
        """Delete the segments that are not needed any more, and return their number; raises OSError."""
        start = self.log.log_start_offset
        deleted = delete_old_segments(self.log, self.high_watermark, now_ms, self.state_log.emit)
        if deleted:
            self._note_log_start(start, "retention")
            self.note_stable_offset()
        return deleted

    def low_watermark(self, is_alive: Callable[[int], bool]) -> int:
        """Return the earliest log start of the leader and its live followers; -1 until each has sent its own."""
        starts = [each.log_start_offset for broker_id, each in self.followers.items() if is_alive(broker_id)]
        return min(self.log.log_start_offset, *starts) if starts else self.log.log_start_offset

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Return the end of a leader epoch in this log; undefined if unknown."""
        return self.log.epochs.end_offset_for(epoch, self.log.log_end_offset)

    # --- follower ---

    def append_as_follower(self, records: bytes) -> None:
        """Append the leader's batches unchanged.

        The leader's log may start within a batch (DeleteRecords); an empty follower then gets all of it, and moves its
        own start when that is committed (`Partition.appendRecordsToFollowerOrFutureReplica`).

        Raises:
            InvalidRecords: it is corrupt; nothing was written.
            OffsetsOutOfOrder: it starts before the log's end; nothing was written.
        """
        try:
            written = self.log.append_as_follower(records)
        except OffsetsOutOfOrder as unexpected:
            start, end = self.log.log_start_offset, self.log.log_end_offset
            if start < end or not unexpected.first_offset < end <= unexpected.last_offset:
                raise
            self.restart_at(unexpected.first_offset)
            written = self.log.append_as_follower(records)
        self._log_appended("follower", written)

    def follow_high_watermark(self, leader_high_watermark: int) -> bool:
        """Apply the leader's high watermark up to the own log's end; return whether it moved."""
        new = follower_high_watermark(leader_high_watermark, self.log.log_start_offset, self.log.log_end_offset)
        return self._set_high_watermark(new, "follower", "fetch")

    def follow_log_start(self, leader_log_start_offset: int) -> None:
        """Move the log's start to the leader's, up to the committed end."""
        if self.log.log_start_offset < leader_log_start_offset <= self.high_watermark:
            self._advance_log_start(leader_log_start_offset, "leader")

    def truncate(self, to: int, cause: TruncationCause) -> None:
        """Drop everything from `to` on; the epoch cache is cleaned even when no record goes (KAFKA-10706)."""
        if to < self.log.log_end_offset:
            self._log_truncation(to, cause)
        start = self.log.log_start_offset
        self.log.truncate_to(to)
        self._note_log_start(start, "truncation")
        self._set_high_watermark(min(self.high_watermark, self.log.log_end_offset), "follower", "truncate")
        self.note_stable_offset()

    def restart_at(self, offset: int) -> None:
        """Drop the whole log and continue at `offset`, where the leader's log or its first batch begins."""
        self._log_truncation(offset, TruncationCause(reason="full"))
        start = self.log.log_start_offset
        self.log.truncate_fully_and_start_at(offset)
        self._note_log_start(start, "truncation")
        self._set_high_watermark(offset, "follower", "truncate")
        self.note_stable_offset()

    # --- state-change log ---

    def _advance_log_start(self, offset: int, cause: str) -> None:
        start = self.log.log_start_offset
        self.log.advance_log_start(offset)
        self._note_log_start(start, cause)
        self.note_stable_offset()

    def _note_log_start(self, old: int, cause: str) -> None:
        """Log the log's start if it was another one."""
        new, (topic, partition) = self.log.log_start_offset, self.key
        if new != old:
            line = LogStart(
                topic=topic, partition=partition, old=old, new=new, high_watermark=self.high_watermark, cause=cause
            )
            self.state_log.emit(line)

    def _set_high_watermark(self, new: int, role: str, cause: str) -> bool:
        old = self.high_watermark
        if new == old:
            return False
        self.high_watermark = new
        topic, partition = self.key
        self.state_log.emit(
            HighWatermark(
                topic=topic,
                partition=partition,
                role=role,
                leader_epoch=self.leader_epoch,
                old=old,
                new=new,
                log_end_offset=self.log.log_end_offset,
                isr=list(self.isr),
                zk_version=self.zk_version,
                cause=cause,
            )
        )
        self.note_stable_offset()
        return True

    def note_stable_offset(self) -> None:
        """Log the last stable offset if it is, or was, below the high watermark."""
        if not (self.held_back or self.log.producer_history.states.has_unstable):
            self.noted_stable_offset = self.high_watermark
            return
        new, old = self.last_stable_offset, self.noted_stable_offset
        was_held_back, self.held_back = self.held_back, new < self.high_watermark
        self.noted_stable_offset = new
        if new == old or not (was_held_back or self.held_back):
            return
        topic, partition = self.key
        unstable = self.log.first_unstable_offset(self.high_watermark)
        self.state_log.emit(
            LastStableOffset(
                topic=topic,
                partition=partition,
                role="leader" if self.is_leader else "follower",
                leader_epoch=self.leader_epoch,
                old=old,
                new=new,
                high_watermark=self.high_watermark,
                first_unstable_offset=NO_OFFSET if unstable is None else unstable,
            )
        )

    def _log_appended(self, role: str, info: AppendInfo, acks: int | None = None) -> None:
        as_what = self._as(role)
        for batch in info.batches:
            self.state_log.emit(appended(as_what, batch, acks))
        for written in info.markers:
            self.state_log.emit(marked(as_what, written))
        self.note_stable_offset()

    def _as(self, role: str) -> Role:
        return Role(self.key, role, self.leader_epoch, len(self.isr))

    def _log_truncation(self, to: int, cause: TruncationCause) -> None:
        topic, partition = self.key
        local_end = self.end_of_epoch(cause.answer_epoch)
        self.state_log.emit(
            Truncate(
                topic=topic,
                partition=partition,
                log_end_offset=self.log.log_end_offset,
                to=to,
                high_watermark=self.high_watermark,
                leader_epoch=self.leader_epoch,
                reason=cause.reason,
                asked_epoch=cause.requested_epoch,
                answer_epoch=cause.answer_epoch,
                answer_end_offset=cause.answer_end_offset,
                latest_epoch=self.log.epochs.latest_epoch,
                local_epoch=local_end.epoch,
                local_end_offset=local_end.end_offset,
            )
        )

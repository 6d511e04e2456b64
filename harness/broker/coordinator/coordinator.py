"""The group coordinator: loads the groups of the partitions of `__consumer_offsets` led here, commits their offsets.

A commit counts once the replicated topic has acknowledged it (acks=all): only then is the cache updated and the client
answered, so every acknowledged commit survives the coordinator (`GroupMetadataManager` in Kafka).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from harness.broker.background import begin, every
from harness.broker.coordinator.effects import TimerKind
from harness.broker.coordinator.expiration import Expiration
from harness.broker.coordinator.loading import read_to_end
from harness.broker.coordinator.members import GroupMembers
from harness.broker.coordinator.placement import partition_of
from harness.broker.coordinator.records import CommittedOffset, OffsetKey, OffsetRecord, encode_batch
from harness.broker.coordinator.replay import GroupReplay
from harness.broker.coordinator.statistics import CoordinatorStatistics, LoadTimes
from harness.broker.coordinator.store import GroupStore, KnownGroup
from harness.broker.coordinator.topic import COMMIT_ERRORS, CoordinatorLog, CoordinatorTopic
from harness.broker.replicas.control_requests import Leadership
from harness.broker.replicas.replicas import now_s
from harness.broker.state_log import StateLog
from harness.broker.wire.error_codes import ErrorCode
from harness.events import NO_OFFSET, CoordinatorLoad, CoordinatorUnload, OffsetCommit, OffsetFetch
from harness.values import OFFSETS_TOPIC, TopicPartition

Errors = dict[TopicPartition, ErrorCode]
Decided = Callable[[Errors, Mapping[TopicPartition, int]], Errors]
"""Logs a commit, given the outcome and log position by partition, and returns the former."""
LATE_UNLOAD_S = 2.0
"""With the planted bug `late-unload`: how far an unloading thread lags behind a loading one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """One OffsetCommit as the coordinator sees it."""

    group: str
    generation: int
    """-1 for a committer that is not a member."""
    member: str
    instance: str | None = None
    offsets: Mapping[TopicPartition, CommittedOffset]
    client: str
    correlation_id: int


@dataclass(slots=True, kw_only=True)
class GroupCoordinator:
    """The group coordinator of this broker."""

    store: GroupStore
    topic: CoordinatorTopic
    members: GroupMembers
    expiration: Expiration
    state_log: StateLog
    wall_ms: Callable[[], int]
    max_metadata_bytes: int
    load_times: LoadTimes = field(default_factory=LoadTimes)
    _loads: set[asyncio.Task[None]] = field(default_factory=set)
    _late_unloads: set[asyncio.Task[None]] = field(default_factory=set)
    _expiry: asyncio.Task[None] | None = None
    _deleted_meanwhile: set[TopicPartition] = field(default_factory=set)
    """Partitions deleted during a load."""

    def start(self, *, expire_every_s: float) -> None:
        """Remove expired offsets periodically."""
        self._expiry = asyncio.create_task(every(expire_every_s, self.expiration.expire, name="expire-offsets"))

    def leadership_changed(self, gained: list[Leadership], lost: list[Leadership]) -> None:
        """Start to load the partitions of `__consumer_offsets` that this broker leads now, and unload the others."""
        for topic, partition, leader_epoch in lost:
            if topic == OFFSETS_TOPIC and self.store.rules.late_unloads_are_ignored:
                self._unload(partition, leader_epoch)
            elif topic == OFFSETS_TOPIC:
                begin(self._late_unloads, self._unload_late(partition, leader_epoch), "unload-group-partition")
        for topic, partition, leader_epoch in gained:
            members = self.store.members_of(partition)
            if topic == OFFSETS_TOPIC and self.store.begin_load(partition, leader_epoch):
                self.members.let_go(members, ErrorCode.NOT_COORDINATOR)
                begin(self._loads, self._load(partition, leader_epoch), "load-group-partition")

    def partitions_deleted(self, deleted: Collection[TopicPartition]) -> None:
        """Remove every position in partitions whose topic is being deleted (`handleDeletedPartitions`).

        No consumer gets it from now on; tombstones, for later coordinators, are written afterwards.
        """
        if self._loads:
            self._deleted_meanwhile.update(deleted)
        self.expiration.withdraw(deleted)

    def statistics(self) -> CoordinatorStatistics:
        """Return the coordinator's gauges."""
        groups = [known for _, known in self.store.groups()]
        timers = self.members.timers()
        return CoordinatorStatistics(
            groups=Counter(known.membership.group.state for known in groups),
            offsets=sum(len(known.offsets) for known in groups),
            delayed_rebalances=timers[TimerKind.JOIN] + timers[TimerKind.SYNC],
            delayed_heartbeats=timers[TimerKind.SESSION],
            loads=self.load_times,
            counters=self.store.counters,
            now_ms=self.wall_ms(),
        )

    async def stop(self) -> None:
        """End all running work."""
        tasks = [*self._loads, *self._late_unloads, *([self._expiry] if self._expiry else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.members.stop()
        await self.expiration.stop()

    async def commit(self, request: CommitRequest) -> dict[TopicPartition, ErrorCode]:
        """Store the offsets and return each outcome; an offset with NONE is never lost."""
        known, refusal = self._committer(request)
        decided = self._decision(request)
        if known is None or refusal is not ErrorCode.NONE:
            return decided(dict.fromkeys(request.offsets, refusal), {})
        errors, accepted = {}, []
        for key, value in request.offsets.items():
            if len(value.metadata) > self.max_metadata_bytes:
                errors[key] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                accepted.append(key)
        if not accepted:
            return decided(errors, {})
        known.under_way.update(accepted)
        try:
            log_offsets, error = await self._append(request, accepted)
        finally:
            known.under_way -= Counter(accepted)
        return decided(errors | dict.fromkeys(accepted, error), log_offsets)

    def fetch(self, group: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return the group's last committed offsets."""
        committed = self.store.get(group, topic, partition)
        offset = committed.offset if committed else NO_OFFSET
        self.state_log.emit(OffsetFetch(group=group, topic=topic, partition=partition, offset=offset, error=0))
        return committed

    def _committer(self, request: CommitRequest) -> tuple[KnownGroup | None, ErrorCode]:
        """Return the group that commits, or why it may not; a client outside any group creates one by committing."""
        error = self.store.coordinator_error(request.group)
        known = self.store.group(request.group)
        if error:
            return None, error
        if known is None:
            if request.generation >= 0:
                return None, ErrorCode.ILLEGAL_GENERATION
            known = self.store.create_group(request.group)
        error, effects = known.membership.commits(request.generation, request.member, request.instance)
        self.members.carry_out(known.membership, effects)
        return known, error

    async def _append(
        self, request: CommitRequest, accepted: list[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], ErrorCode]:
        """Write the offsets as one batch; return the position and outcome of each."""
        shard = partition_of(request.group, self.store.partitions)
        records = [
            (OffsetKey(group=request.group, topic=topic, partition=partition), request.offsets[topic, partition])
            for topic, partition in accepted
        ]
        result = await self.topic.append(
            shard,
            encode_batch(records, self.wall_ms()),
            client=request.client,
            correlation_id=request.correlation_id,
        )
        if result.error is not ErrorCode.NONE:
            return {}, COMMIT_ERRORS.get(result.error, result.error)
        self.store.counters.committed.mark(len(records), self.wall_ms())
        self.store.committed(
            shard,
            [
                OffsetRecord(log_offset=result.base_offset + index, key=key, value=value)
                for index, (key, value) in enumerate(records)
            ],
        )
        return {key: result.base_offset + index for index, key in enumerate(accepted)}, ErrorCode.NONE

    def _decision(self, request: CommitRequest) -> Decided:
        """Return the outcome of a commit, which is decided now: its group may have changed when it has ended."""
        seq, epoch = self.state_log.next_seq, self.store.coordinator_epoch(request.group)

        def log_outcome(errors: Errors, log_offsets: Mapping[TopicPartition, int]) -> Errors:
            for (topic, partition), value in request.offsets.items():
                self.state_log.emit(
                    OffsetCommit(
                        group=request.group,
                        generation=request.generation,
                        member=request.member,
                        instance=request.instance,
                        coordinator_epoch=epoch,
                        decided_seq=seq,
                        topic=topic,
                        partition=partition,
                        offset=value.offset,
                        log_offset=log_offsets.get((topic, partition), -1),
                        error=errors[topic, partition],
                    )
                )
            return errors

        return log_outcome

    def _unload(self, partition: int, leader_epoch: int) -> None:
        """Unload the groups of a partition, unless the request is outdated."""
        members = self.store.members_of(partition)
        if self.store.unload(partition, leader_epoch):
            self.members.let_go(members, ErrorCode.NOT_COORDINATOR)
            self.state_log.emit(CoordinatorUnload(partition=partition, leader_epoch=leader_epoch, groups=len(members)))

    async def _unload_late(self, partition: int, leader_epoch: int) -> None:
        """Do what Kafka does, whose threads may unload after a later load."""
        await asyncio.sleep(LATE_UNLOAD_S)
        self._unload(partition, leader_epoch)

    async def _load(self, partition: int, leader_epoch: int) -> None:
        """Read a partition's log to its end and start to serve its groups."""
        began_s = now_s()
        replay = GroupReplay(self.store.rules)
        find, end = partial(self.topic.log, partition), partial(self._load_end, partition)
        read = await read_to_end(f"{OFFSETS_TOPIC}-{partition}", find, end=end, take=replay.take)
        if self.store.finish_load(partition, leader_epoch, replay.records, replay.held):
            self.load_times.add(now_s() - began_s)
            groups, offsets = self.store.counts(partition)
            self.state_log.emit(
                CoordinatorLoad(
                    partition=partition,
                    leader_epoch=leader_epoch,
                    groups=groups,
                    offsets=offsets,
                    log_end_offset=read.next_offset,
                    disk_error=read.disk_error,
                )
            )
            self.members.take_over(self.store.members_of(partition))
            self.partitions_deleted(self._deleted_meanwhile.copy())
        if len(self._loads) == 1:
            self._deleted_meanwhile.clear()

    def _load_end(self, partition: int, log: CoordinatorLog) -> int:
        """Return the end of the load: all that this leader has, whatever it knows to be committed."""
        rules = self.store.rules
        if not rules.groups_load_to_the_end:
            return (log.log_start_offset + log.log_end_offset) // 2
        return log.log_end_offset if rules.groups_load_past_high_watermark else self.topic.high_watermark(partition)

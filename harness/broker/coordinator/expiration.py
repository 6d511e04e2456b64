"""Removes expired and deleted offsets, and ends empty groups.

First in memory, then in the log, for later coordinators (`GroupMetadataManager.cleanupGroupMetadata` in Kafka).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from harness.broker.background import begin
from harness.broker.coordinator.group import GroupState
from harness.broker.coordinator.members import GroupMembers
from harness.broker.coordinator.placement import partition_of
from harness.broker.coordinator.records import OffsetKey, OffsetRecord, encode_tombstones
from harness.broker.coordinator.store import GroupStore, KnownGroup
from harness.broker.coordinator.subscription import CONSUMER_PROTOCOL
from harness.broker.coordinator.topic import NO_CORRELATION_ID, CoordinatorTopic
from harness.broker.wire.error_codes import ErrorCode
from harness.events import OffsetRetired
from harness.values import TopicPartition

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Expiration:
    """Removes offsets and groups."""

    store: GroupStore
    topic: CoordinatorTopic
    members: GroupMembers
    wall_ms: Callable[[], int]
    retention_ms: int
    """How long an unused offset is kept."""
    under_way: set[asyncio.Task[bool]] = field(default_factory=set)
    """Writes in progress."""

    def withdraw(self, partitions: Collection[TopicPartition]) -> None:
        """Remove every position in these partitions at once; tombstones follow."""
        for shard, keys in self.store.commits_to(set(partitions)).items():
            self.store.forget(shard, keys)
            names = {key.group for key in keys}
            begin(self.under_way, self._remove(shard, keys, names), "withdraw-offsets")

    async def expire(self) -> None:
        """Remove expired offsets (KIP-211), and empty groups."""
        now_ms = self.wall_ms()
        for name, _ in self.store.groups():
            known = self.store.group(name)  # what it is now: others were written about in between
            expired = [each for each in known.offsets if self._is_expired(known, each, now_ms)] if known else []
            if known is not None and (expired or known.is_over):
                removed = await self._remove_stored(name, expired)
                self.store.counters.expired.mark(removed, self.wall_ms())

    async def delete_group(self, name: str) -> ErrorCode:
        """Answer DeleteGroups: only a group without members is removed, with all its offsets.

        It is gone here even if that cannot be stored, so the answer is NONE then too, as in Kafka
        (`GroupMetadataManager.cleanupGroupMetadata` logs the failure and continues); the next coordinator may have it.
        """
        known = self.store.group(name)
        if error := self.store.coordinator_error(name):
            return error
        if known is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if known.membership.group.state is not GroupState.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP
        await self._remove_stored(name, known.offsets)
        return ErrorCode.NONE

    async def delete_offsets(
        self, name: str, partitions: Collection[TopicPartition]
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode]]:
        """Answer OffsetDelete: an error for all, or one each; subscribed topics stay."""
        known = self.store.group(name)
        if error := self.members.coordinator_error(name):
            return error, {}
        if known is None:
            return ErrorCode.GROUP_ID_NOT_FOUND, {}
        group = known.membership.group
        if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER_PROTOCOL:
            return ErrorCode.NON_EMPTY_GROUP, {}
        subscribed = {
            each for each in partitions if group.state is not GroupState.EMPTY and group.subscribes_to(each[0])
        }
        if unused := set(partitions) - subscribed:  # Kafka ends an empty group only with an offset
            removed = await self._remove_stored(name, unused)
            self.store.counters.deleted.mark(removed, self.wall_ms())
        errors = dict.fromkeys(partitions, ErrorCode.NONE)
        return ErrorCode.NONE, errors | dict.fromkeys(subscribed, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)

    async def stop(self) -> None:
        """End the writes in progress."""
        tasks = list(self.under_way)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_expired(self, known: KnownGroup, partition: TopicPartition, now_ms: int) -> bool:
        group, offset = known.membership.group, known.offsets[partition].value
        since_ms = offset.timestamp_ms
        if known.under_way:
            return False
        if group.protocol_type is not None and group.state is GroupState.EMPTY:
            since_ms = offset.timestamp_ms if group.state_since_ms is None else group.state_since_ms
        elif group.protocol_type is not None and (
            group.protocol_type != CONSUMER_PROTOCOL
            or group.state is not GroupState.STABLE
            or group.subscribes_to(partition[0])
        ):
            return False
        if offset.expires_ms is not None and self.store.rules.commits_state_their_retention:
            return now_ms >= offset.expires_ms
        return now_ms - since_ms >= self.retention_ms

    async def _remove_stored(self, name: str, partitions: Iterable[TopicPartition]) -> int:
        """Remove these offsets of a group, and return their number when that is in the log; 0 if it is not."""
        known = self.store.group(name)
        keys = [
            OffsetKey(group=name, topic=topic, partition=partition)
            for topic, partition in sorted(partitions)
            if known is not None and (topic, partition) in known.offsets
        ]
        return len(keys) if await self._remove(partition_of(name, self.store.partitions), keys, {name}) else 0

    async def _remove(self, shard: int, keys: Sequence[OffsetKey], names: Iterable[str]) -> bool:
        """Remove offsets, and groups that are empty then, and return whether it is written.

        The tombstones are in the log before any other request is served: a commit that follows stands behind them.
        """
        self.store.forget(shard, keys)
        self._tell(keys)
        stored = []
        for name in sorted(names):
            known = self.store.group(name)
            if known is not None and known.is_over:
                self.members.let_go([known.membership], ErrorCode.UNKNOWN_MEMBER_ID)
                self.store.remove_group(name)
                if known.membership.group.generation > 0:  # else it has never been stored
                    stored.append(name)
        if not keys and not stored:
            return True
        tombstones = encode_tombstones(keys, stored, self.wall_ms())
        result = await self.topic.append(shard, tombstones, client="", correlation_id=NO_CORRELATION_ID)
        if result.error is not ErrorCode.NONE:
            _log.warning("offsets.withdraw failed shard=%d offsets=%d error=%s", shard, len(keys), result.error.name)
            return False
        self._tell(keys, result.base_offset)
        # A commit that was in flight before them has been acknowledged now, and is removed too.
        self.store.committed(
            shard,
            [
                OffsetRecord(log_offset=result.base_offset + index, key=key, value=None)
                for index, key in enumerate(keys)
            ],
        )
        return True

    def _tell(self, keys: Sequence[OffsetKey], base_offset: int | None = None) -> None:
        """Log the removal of these offsets, or the offset from which it is stored."""
        for index, key in enumerate(keys):
            self.members.state_log.emit(
                OffsetRetired(
                    group=key.group,
                    coordinator_epoch=self.store.coordinator_epoch(key.group),
                    topic=key.topic,
                    partition=key.partition,
                    log_offset=-1 if base_offset is None else base_offset + index,
                )
            )

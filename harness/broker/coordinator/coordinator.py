"""Commits and reads the offsets of the groups whose part of `__consumer_offsets` this broker leads.

A commit counts once the replicated topic has acknowledged it (acks=all): only then is the cache updated and the client
answered, so whatever a client was told is committed survives the coordinator (`GroupMetadataManager` in Kafka).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.broker.coordinator.records import (
    CommittedOffset,
    OffsetKey,
    OffsetRecord,
    decode_chunk,
    encode_batch,
    partition_of,
)
from harness.broker.coordinator.store import OffsetStore
from harness.broker.replicas.control_requests import Leadership
from harness.broker.state_log import StateLog
from harness.broker.wire.error_codes import ErrorCode
from harness.events import NO_OFFSET, CoordinatorLoad, CoordinatorUnload, OffsetCommit, OffsetFetch
from harness.values import OFFSETS_TOPIC, TopicPartition

_log = logging.getLogger(__name__)

LOAD_CHUNK_BYTES = 5 * 1024 * 1024
NO_CORRELATION_ID = -1


_COMMIT_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_FOR_PARTITION: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""The client's error when the append failed; any other one is passed on, a time-out leaves the commit unknown."""


class OffsetsLog(Protocol):
    """The local log of one partition of `__consumer_offsets`."""

    @property
    def log_start_offset(self) -> int:
        """The first offset."""
        ...

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        ...

    def read(self, offset: int, *, max_bytes: int, up_to: int, at_least_one: bool) -> bytes:
        """Return whole batches from `offset` on."""
        ...


class Appended(Protocol):
    """How an append ended."""

    @property
    def error(self) -> ErrorCode:
        """NONE when the record is committed."""
        ...

    @property
    def base_offset(self) -> int:
        """Of the first record."""
        ...


class OffsetsTopic(Protocol):
    """`__consumer_offsets` as this broker holds it."""

    def log(self, partition: int) -> OffsetsLog | None:
        """Return the local log of a partition, or None."""
        ...

    async def append(self, partition: int, records: bytes, *, client: str, correlation_id: int) -> Appended:
        """Append with acks=all and wait for the high watermark."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """One OffsetCommit as the coordinator sees it."""

    group: str
    generation: int
    member: str
    offsets: Mapping[TopicPartition, CommittedOffset]
    client: str
    correlation_id: int


@dataclass(slots=True)
class GroupCoordinator:
    """The group coordinator of this broker; groups have no members yet."""

    store: OffsetStore
    topic: OffsetsTopic
    state_log: StateLog
    wall_ms: Callable[[], int]
    max_metadata_bytes: int
    _loads: set[asyncio.Task[None]] = field(default_factory=set)
    _withdrawals: set[asyncio.Task[None]] = field(default_factory=set)
    _deleted_meanwhile: set[TopicPartition] = field(default_factory=set)
    """What was deleted while something was being loaded."""

    def leadership_changed(self, gained: list[Leadership], lost: list[Leadership]) -> None:
        """Start to load what this broker leads now of `__consumer_offsets`, and forget what it no longer leads."""
        for topic, partition, leader_epoch in lost:
            if topic == OFFSETS_TOPIC and self.store.unload(partition, leader_epoch):
                self.state_log.emit(CoordinatorUnload(partition=partition, leader_epoch=leader_epoch))
        for topic, partition, leader_epoch in gained:
            if topic == OFFSETS_TOPIC and self.store.begin_load(partition, leader_epoch):
                task = asyncio.get_running_loop().create_task(self._load(partition, leader_epoch))
                self._loads.add(task)
                task.add_done_callback(self._loads.discard)

    def partitions_deleted(self, deleted: Collection[TopicPartition]) -> None:
        """Take back every position in partitions whose topic is being deleted (`handleDeletedPartitions`).

        Nobody is told one from now on; that nobody will be told by a later coordinator either is written afterwards.
        """
        if self._loads:
            self._deleted_meanwhile.update(deleted)
        for shard, keys in self.store.commits_to(set(deleted)).items():
            self.store.forget(shard, keys)
            task = asyncio.get_running_loop().create_task(self._withdraw(shard, keys), name="withdraw-offsets")
            self._withdrawals.add(task)
            task.add_done_callback(self._withdrawals.discard)

    async def stop(self) -> None:
        """End loads and withdrawals that are under way."""
        tasks = [*self._loads, *self._withdrawals]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def commit(self, request: CommitRequest) -> dict[TopicPartition, ErrorCode]:
        """Store the offsets and return how each ended; what ended with NONE is never lost."""
        refusal = self._refusal(request)
        if refusal is not ErrorCode.NONE:
            return self._decided(request, dict.fromkeys(request.offsets, refusal), {})
        self.store.create_group(request.group)
        errors, accepted = {}, []
        for key, value in request.offsets.items():
            if len(value.metadata) > self.max_metadata_bytes:
                errors[key] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                accepted.append(key)
        if not accepted:
            return self._decided(request, errors, {})
        log_offsets, error = await self._append(request, accepted)
        return self._decided(request, errors | dict.fromkeys(accepted, error), log_offsets)

    def fetch(self, group: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return what the group committed last."""
        committed = self.store.get(group, topic, partition)
        offset = committed.offset if committed else NO_OFFSET
        self.state_log.emit(OffsetFetch(group=group, topic=topic, partition=partition, offset=offset, error=0))
        return committed

    def _refusal(self, request: CommitRequest) -> ErrorCode:
        gate = self.store.gate(request.group)
        if gate is not ErrorCode.NONE or request.generation < 0:
            return gate
        known = self.store.has_group(request.group)
        return ErrorCode.UNKNOWN_MEMBER_ID if known else ErrorCode.ILLEGAL_GENERATION

    async def _append(
        self, request: CommitRequest, accepted: list[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], ErrorCode]:
        """Write the offsets as one batch; return where each one stands and how it ended."""
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
            return {}, _COMMIT_ERRORS.get(result.error, result.error)
        self.store.committed(
            shard,
            [
                OffsetRecord(log_offset=result.base_offset + index, key=key, value=value)
                for index, (key, value) in enumerate(records)
            ],
        )
        return {key: result.base_offset + index for index, key in enumerate(accepted)}, ErrorCode.NONE

    def _decided(
        self,
        request: CommitRequest,
        errors: dict[TopicPartition, ErrorCode],
        log_offsets: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, ErrorCode]:
        for (topic, partition), value in request.offsets.items():
            self.state_log.emit(
                OffsetCommit(
                    group=request.group,
                    generation=request.generation,
                    member=request.member,
                    topic=topic,
                    partition=partition,
                    offset=value.offset,
                    log_offset=log_offsets.get((topic, partition), -1),
                    error=errors[topic, partition],
                )
            )
        return errors

    async def _withdraw(self, shard: int, keys: Sequence[OffsetKey]) -> None:
        """Write that these positions are no more; a commit that was on its way before them has then come and gone."""
        tombstones = encode_batch([(key, None) for key in keys], self.wall_ms())
        result = await self.topic.append(shard, tombstones, client="", correlation_id=NO_CORRELATION_ID)
        if result.error is not ErrorCode.NONE:
            _log.warning("offsets.withdraw failed shard=%d offsets=%d error=%s", shard, len(keys), result.error.name)
        self.store.forget(shard, keys)

    async def _load(self, partition: int, leader_epoch: int) -> None:
        """Read a partition's log to its end and start to answer for its groups.

        A log that cannot be read ends the load with what was read, as in Kafka: a coordinator that answers for
        nothing would block its groups for good.
        """
        records: list[OffsetRecord] = []
        log = self.topic.log(partition)
        offset = log.log_start_offset if log else 0
        try:
            while log is not None and offset < log.log_end_offset:
                data = log.read(offset, max_bytes=LOAD_CHUNK_BYTES, up_to=log.log_end_offset, at_least_one=True)
                if not data:
                    break
                chunk = decode_chunk(data)
                records += chunk.records
                offset = chunk.next_offset
                await asyncio.sleep(0)
        except Exception:  # noqa: BLE001  logged; whatever it is, see above
            _log.exception("load.failed partition=%d offset=%d", partition, offset)
        if self.store.finish_load(partition, leader_epoch, records):
            groups, offsets = self.store.counts(partition)
            self.state_log.emit(
                CoordinatorLoad(
                    partition=partition,
                    leader_epoch=leader_epoch,
                    groups=groups,
                    offsets=offsets,
                    log_end_offset=offset,
                )
            )
            self.partitions_deleted(self._deleted_meanwhile.copy())
        if len(self._loads) == 1:
            self._deleted_meanwhile.clear()

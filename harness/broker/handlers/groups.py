"""OffsetCommit, TxnOffsetCommit, OffsetFetch: the positions of consumers, kept by their group's coordinator."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.broker.coordinator.coordinator import CommitRequest, GroupCoordinator
from harness.broker.coordinator.records import CommittedOffset
from harness.broker.coordinator.transactional import TransactionalCommit, TransactionalCommits
from harness.broker.metadata_cache import MetadataCache
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from harness.broker.wire.sentinels import NO_EPOCH
from harness.events import NO_OFFSET

_CommitTopic = OffsetCommitResponse.OffsetCommitResponseTopic
_CommitPartition = _CommitTopic.OffsetCommitResponsePartition
_FetchTopic = OffsetFetchResponse.OffsetFetchResponseTopic
_FetchPartition = _FetchTopic.OffsetFetchResponsePartition
_FetchGroup = OffsetFetchResponse.OffsetFetchResponseGroup
_GroupTopic = _FetchGroup.OffsetFetchResponseTopics
_GroupPartition = _GroupTopic.OffsetFetchResponsePartitions
_AskedTopic = (
    OffsetFetchRequest.OffsetFetchRequestTopic | OffsetFetchRequest.OffsetFetchRequestGroup.OffsetFetchRequestTopics
)

_TxnTopic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_TxnPartition = _TxnTopic.TxnOffsetCommitResponsePartition

_FIRST_FETCH_VERSION_WITH_TOP_LEVEL_ERROR = 2
_FIRST_TXN_COMMIT_VERSION_WITH_LOADING = 2
"""Clients of earlier versions fail when a coordinator is loading (KAFKA-7296)."""
_FIRST_TXN_COMMIT_VERSION_WITH_ABORTABLE = 4
_FIRST_FETCH_VERSION_WITH_GROUPS = 8

Topic = TypeVar("Topic", _FetchTopic, _GroupTopic)
Partition = TypeVar("Partition", _FetchPartition, _GroupPartition)


@dataclass(slots=True)
class GroupHandlers:
    """Serves the requests of consumers to their group's coordinator."""

    coordinator: GroupCoordinator
    transactional: TransactionalCommits
    metadata: MetadataCache

    async def commit(self, request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
        """Answer OffsetCommit; unknown partitions are refused one by one."""
        now_ms = self.coordinator.wall_ms()
        errors: dict[tuple[str, int], ErrorCode] = {}
        offsets: dict[tuple[str, int], CommittedOffset] = {}
        for topic in request.topics:
            for partition in topic.partitions:
                key = (topic.name, partition.partition_index)
                if self.metadata.partition(*key) is None:
                    errors[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    continue
                offsets[key] = CommittedOffset(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.committed_metadata or "",
                    timestamp_ms=now_ms,
                    expires_ms=None if request.retention_time_ms < 0 else now_ms + request.retention_time_ms,
                )
        if offsets:
            errors |= await self.coordinator.commit(
                CommitRequest(
                    group=request.group_id,
                    generation=request.generation_id_or_member_epoch,
                    member=request.member_id,
                    instance=request.group_instance_id,
                    offsets=offsets,
                    client=context.client_id,
                    correlation_id=context.correlation_id,
                )
            )
        return OffsetCommitResponse(
            topics=[
                _CommitTopic(
                    name=topic.name,
                    partitions=[
                        _CommitPartition(
                            partition_index=partition.partition_index,
                            error_code=errors[topic.name, partition.partition_index],
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    async def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, context: RequestContext
    ) -> TxnOffsetCommitResponse:
        """Answer TxnOffsetCommit: offsets that count when their producer's transaction commits."""
        now_ms = self.coordinator.wall_ms()
        errors: dict[tuple[str, int], ErrorCode] = {}
        offsets: dict[tuple[str, int], CommittedOffset] = {}
        for topic in request.topics:
            for partition in topic.partitions:
                key = (topic.name, partition.partition_index)
                if self.metadata.partition(*key) is None:
                    errors[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    continue
                offsets[key] = CommittedOffset(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.committed_metadata or "",
                    timestamp_ms=now_ms,
                )
        if offsets:
            errors |= await self.transactional.commit(
                TransactionalCommit(
                    group=request.group_id,
                    transactional_id=request.transactional_id,
                    producer_id=request.producer_id,
                    producer_epoch=request.producer_epoch,
                    generation=request.generation_id,
                    member=request.member_id,
                    instance=request.group_instance_id,
                    offsets=offsets,
                    client=context.client_id,
                    correlation_id=context.correlation_id,
                    knows_abortable=context.api_version >= _FIRST_TXN_COMMIT_VERSION_WITH_ABORTABLE,
                )
            )
        if context.api_version < _FIRST_TXN_COMMIT_VERSION_WITH_LOADING:
            loading, unavailable = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE
            errors = {key: unavailable if error is loading else error for key, error in errors.items()}
        return TxnOffsetCommitResponse(
            topics=[
                _TxnTopic(
                    name=topic.name,
                    partitions=[
                        _TxnPartition(partition_index=number, error_code=errors[topic.name, number])
                        for number in (partition.partition_index for partition in topic.partitions)
                    ],
                )
                for topic in request.topics
            ]
        )

    async def fetch(self, request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
        """Answer OffsetFetch, for one group or several; without topics for all of a group's committed offsets."""
        if context.api_version >= _FIRST_FETCH_VERSION_WITH_GROUPS:
            stable = request.require_stable
            return OffsetFetchResponse(groups=[self._of_group(group, stable=stable) for group in request.groups])
        error = self.coordinator.store.coordinator_error(request.group_id)
        refused = error is not ErrorCode.NONE
        if refused and context.api_version < _FIRST_FETCH_VERSION_WITH_TOP_LEVEL_ERROR:
            return OffsetFetchResponse(
                topics=[
                    _FetchTopic(
                        name=topic.name,
                        partitions=[
                            _fetched(_FetchPartition, number, None, error) for number in topic.partition_indexes
                        ],
                    )
                    for topic in request.topics or ()
                ]
            )
        stable = request.require_stable
        topics = (
            []
            if refused
            else self._fetched(request.group_id, request.topics, _FetchTopic, _FetchPartition, stable=stable)
        )
        return OffsetFetchResponse(error_code=error, topics=topics)

    def _of_group(self, group: OffsetFetchRequest.OffsetFetchRequestGroup, *, stable: bool) -> _FetchGroup:
        error = self.coordinator.store.coordinator_error(group.group_id)
        refused = error is not ErrorCode.NONE
        topics = (
            [] if refused else self._fetched(group.group_id, group.topics, _GroupTopic, _GroupPartition, stable=stable)
        )
        return _FetchGroup(group_id=group.group_id, error_code=error, topics=topics)

    def _fetched(
        self,
        group: str,
        topics: Iterable[_AskedTopic] | None,
        topic_type: type[Topic],
        partition_type: type[Any],
        *,
        stable: bool,
    ) -> list[Topic]:
        """Return a group's committed offsets of these topics, or of all; `stable` leaves out those that may change."""
        store = self.coordinator.store
        if topics is None:
            wanted = {topic: list(offsets) for topic, offsets in store.offsets_of(group).items()}
        else:
            wanted = {topic.name: topic.partition_indexes for topic in topics}
        withheld = stable and store.rules.unstable_offsets_are_withheld

        def fetched(topic: str, number: int) -> Any:
            if withheld and store.is_unstable(group, topic, number):
                return _fetched(partition_type, number, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            return _fetched(partition_type, number, self.coordinator.fetch(group, topic, number))

        return [
            topic_type(name=topic, partitions=[fetched(topic, number) for number in numbers])
            for topic, numbers in wanted.items()
        ]


def _fetched(
    partition_type: type[Partition], number: int, committed: CommittedOffset | None, error: ErrorCode = ErrorCode.NONE
) -> Partition:
    return partition_type(
        partition_index=number,
        committed_offset=committed.offset if committed else NO_OFFSET,
        committed_leader_epoch=committed.leader_epoch if committed else NO_EPOCH,
        metadata=committed.metadata if committed else "",
        error_code=error,
    )

"""OffsetCommit and OffsetFetch: the positions of consumers, asked of the broker that coordinates their group."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.broker.coordinator.coordinator import CommitRequest, GroupCoordinator
from harness.broker.coordinator.records import CommittedOffset
from harness.broker.metadata_cache import MetadataCache
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
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

_FIRST_FETCH_VERSION_WITH_TOP_LEVEL_ERROR = 2
_FIRST_FETCH_VERSION_WITH_GROUPS = 8

Topic = TypeVar("Topic", _FetchTopic, _GroupTopic)
Partition = TypeVar("Partition", _FetchPartition, _GroupPartition)


@dataclass(slots=True)
class GroupHandlers:
    """Serves the requests of consumers to their group's coordinator."""

    coordinator: GroupCoordinator
    metadata: MetadataCache

    async def commit(self, request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
        """Answer OffsetCommit; partitions that this broker does not know are refused one by one."""
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

    async def fetch(self, request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
        """Answer OffsetFetch, for one group or several; without topics for everything that a group has committed."""
        if context.api_version >= _FIRST_FETCH_VERSION_WITH_GROUPS:
            return OffsetFetchResponse(groups=[self._of_group(group) for group in request.groups])
        error = self.coordinator.store.gate(request.group_id)
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
        topics = [] if refused else self._fetched(request.group_id, request.topics, _FetchTopic, _FetchPartition)
        return OffsetFetchResponse(error_code=error, topics=topics)

    def _of_group(self, group: OffsetFetchRequest.OffsetFetchRequestGroup) -> _FetchGroup:
        error = self.coordinator.store.gate(group.group_id)
        refused = error is not ErrorCode.NONE
        topics = [] if refused else self._fetched(group.group_id, group.topics, _GroupTopic, _GroupPartition)
        return _FetchGroup(group_id=group.group_id, error_code=error, topics=topics)

    def _fetched(
        self, group: str, topics: Iterable[_AskedTopic] | None, topic_type: type[Topic], partition_type: type[Any]
    ) -> list[Topic]:
        """Return what a group has committed of these topics, or of all."""
        if topics is None:
            wanted = {topic: list(offsets) for topic, offsets in self.coordinator.store.offsets_of(group).items()}
        else:
            wanted = {topic.name: topic.partition_indexes for topic in topics}
        return [
            topic_type(
                name=topic,
                partitions=[
                    _fetched(partition_type, number, self.coordinator.fetch(group, topic, number)) for number in numbers
                ],
            )
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

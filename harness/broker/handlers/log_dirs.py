"""DeleteRecords and DescribeLogDirs."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from harness.broker.replicas.deleting import Deleter, Deletion, ToDelete
from harness.broker.replicas.partition import Partition
from harness.broker.replicas.replicas import Replicas
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

_Deleted = DeleteRecordsResponse.DeleteRecordsTopicResult
_Directory = DescribeLogDirsResponse.DescribeLogDirsResult
_Described = _Directory.DescribeLogDirsTopic


@dataclass(slots=True)
class LogDirHandlers:
    """Serves requests about the data directory."""

    replicas: Replicas
    deleter: Deleter

    async def delete_records(self, request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
        """Move the starts of logs, and wait until the followers do the same."""
        items = [
            ToDelete((topic.name, partition.partition_index), partition.offset)
            for topic in request.topics
            for partition in topic.partitions
        ]
        ended = await self.deleter.delete(items, request.timeout_ms / 1000)
        return DeleteRecordsResponse(
            throttle_time_ms=0,
            topics=[_Deleted(name=topic, partitions=_deleted(group)) for topic, group in groupby(ended, key=_topic_of)],
        )

    async def describe(self, request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
        """Return the sizes of the replicas here; no topics named means all."""
        chosen = None
        if request.topics is not None:
            chosen = {(topic.topic, number) for topic in request.topics for number in topic.partitions}
        logs = self.replicas.logs
        hosted = [p for p in self.replicas.all() if chosen is None or p.key in chosen]
        return DescribeLogDirsResponse(
            throttle_time_ms=0,
            results=[
                _Directory(
                    error_code=ErrorCode.KAFKA_STORAGE_ERROR if logs.has_failed(name) else ErrorCode.NONE,
                    log_dir=name,
                    topics=[
                        _Described(name=topic, partitions=[_size(partition) for partition in group])
                        for topic, group in groupby(
                            (partition for partition in hosted if logs.directory_of(*partition.key) == name),
                            key=lambda partition: partition.key[0],
                        )
                    ],
                )
                for name in logs.names
            ],
        )


def _topic_of(deletion: Deletion) -> str:
    return deletion.key[0]


def _deleted(deletions: Iterable[Deletion]) -> list[_Deleted.DeleteRecordsPartitionResult]:
    return [
        _Deleted.DeleteRecordsPartitionResult(
            partition_index=each.key[1], low_watermark=each.low_watermark, error_code=each.error
        )
        for each in deletions
    ]


def _size(partition: Partition) -> _Described.DescribeLogDirsPartition:
    """Kafka's lag of a log against its own high watermark, which is never positive."""
    return _Described.DescribeLogDirsPartition(
        partition_index=partition.key[1],
        partition_size=partition.log.size_bytes,
        offset_lag=0,
        is_future_key=False,
    )

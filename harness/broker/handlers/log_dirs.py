"""DeleteRecords, DescribeLogDirs and AlterReplicaLogDirs."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from harness.broker.replicas.deleting import Deleter, Deletion, ToDelete
from harness.broker.replicas.moving import ReplicaMover
from harness.broker.replicas.partition import Partition
from harness.broker.replicas.replicas import Replicas
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

_Deleted = DeleteRecordsResponse.DeleteRecordsTopicResult
_Directory = DescribeLogDirsResponse.DescribeLogDirsResult
_Described = _Directory.DescribeLogDirsTopic
_Altered = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult


@dataclass(slots=True)
class LogDirHandlers:
    """Serves requests about the data directory."""

    replicas: Replicas
    deleter: Deleter
    mover: ReplicaMover

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

    async def alter_replicas(
        self, request: AlterReplicaLogDirsRequest, context: RequestContext
    ) -> AlterReplicaLogDirsResponse:
        """Begin to move replicas into the named directories."""
        results: dict[str, list[_Altered.AlterReplicaLogDirPartitionResult]] = {}
        for directory in request.dirs:
            for topic in directory.topics:
                results.setdefault(topic.name, []).extend(
                    _Altered.AlterReplicaLogDirPartitionResult(
                        partition_index=number, error_code=self.mover.ask((topic.name, number), directory.path)
                    )
                    for number in topic.partitions
                )
        return AlterReplicaLogDirsResponse(
            throttle_time_ms=0,
            results=[_Altered(topic_name=name, partitions=partitions) for name, partitions in results.items()],
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
                        _Described(
                            name=topic, partitions=[each for partition in group for each in self._in(name, partition)]
                        )
                        for topic, group in groupby(
                            (partition for partition in hosted if self._in(name, partition)),
                            key=lambda partition: partition.key[0],
                        )
                    ],
                )
                for name in logs.names
            ],
        )

    def _in(self, directory: str, partition: Partition) -> list[_Described.DescribeLogDirsPartition]:
        """Return what a directory has of a replica: its log, or the copy that a move makes."""
        if self.replicas.logs.directory_of(*partition.key) == directory:
            return [_size(partition)]
        move = self.mover.moves.get(partition.key)
        if move is None or move.directory != directory or move.future is None:
            return []
        return [
            _Described.DescribeLogDirsPartition(
                partition_index=partition.key[1],
                partition_size=move.future.size_bytes,
                offset_lag=max(0, partition.log.log_end_offset - move.future.log_end_offset),
                is_future_key=True,
            )
        ]


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

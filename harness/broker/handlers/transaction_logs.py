"""WriteTxnMarkers and DescribeProducers: a broker's part in transactions with its own logs."""

import asyncio
from dataclasses import dataclass
from itertools import groupby

from harness.broker.log.markers import Marker
from harness.broker.replicas.markers import MarkerWriter, TransactionEnd
from harness.broker.replicas.partition import PartitionError
from harness.broker.replicas.replicas import Replicas
from harness.broker.topics import TopicRefused, check_name
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from harness.broker.wire.sentinels import NO_EPOCH

_Marker = WriteTxnMarkersRequest.WritableTxnMarker
_Written = WriteTxnMarkersResponse.WritableTxnMarkerResult
_WrittenTopic = _Written.WritableTxnMarkerTopicResult
_WrittenPartition = _WrittenTopic.WritableTxnMarkerPartitionResult
_Topic = DescribeProducersResponse.TopicResponse
_Partition = _Topic.PartitionResponse
_Producer = _Partition.ProducerState
_NONE = -1


@dataclass(slots=True)
class TransactionLogHandlers:
    """Serves transaction coordinators, and tools that search for hanging transactions (KIP-664)."""

    replicas: Replicas
    markers: MarkerWriter

    async def write_markers(self, request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse:
        """Append all markers at once, and answer when each is committed, or refused."""
        return WriteTxnMarkersResponse(
            markers=await asyncio.gather(*(self._written(marker, context) for marker in request.markers))
        )

    async def _written(self, marker: _Marker, context: RequestContext) -> _Written:
        end = TransactionEnd(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            marker=Marker(marker.transaction_result, marker.coordinator_epoch),
            partitions=[(topic.name, number) for topic in marker.topics for number in topic.partition_indexes],
        )
        errors = await self.markers.write(end, client=context.client_id, correlation_id=context.correlation_id)
        return _Written(
            producer_id=marker.producer_id,
            topics=[
                _WrittenTopic(
                    name=name,
                    partitions=[_WrittenPartition(partition_index=key[1], error_code=errors[key]) for key in keys],
                )
                for name, keys in groupby(errors, key=lambda key: key[0])
            ],
        )

    async def describe_producers(
        self, request: DescribeProducersRequest, context: RequestContext
    ) -> DescribeProducersResponse:
        """Return the known producers of every partition that is replicated here, led or not."""
        return DescribeProducersResponse(
            throttle_time_ms=0,
            topics=[
                _Topic(
                    name=topic.name, partitions=[self._described(topic.name, each) for each in topic.partition_indexes]
                )
                for topic in request.topics
            ],
        )

    def _described(self, topic: str, number: int) -> _Partition:
        try:
            check_name(topic)
            hosted = self.replicas.followed_or_led(topic, number, NO_EPOCH)
        except TopicRefused as refused:
            return _Partition(
                partition_index=number, error_code=refused.error, error_message=refused.message, active_producers=[]
            )
        except PartitionError as refused:
            return _Partition(partition_index=number, error_code=refused.error, active_producers=[])
        return _Partition(
            partition_index=number,
            error_code=ErrorCode.NONE,
            active_producers=[
                _Producer(
                    producer_id=producer_id,
                    producer_epoch=state.epoch,
                    last_sequence=state.batches[-1].last_sequence if state.batches else _NONE,
                    last_timestamp=state.timestamp_ms,
                    coordinator_epoch=state.coordinator_epoch,
                    current_txn_start_offset=_NONE if state.transaction_start is None else state.transaction_start,
                )
                for producer_id, state in sorted(hosted.log.producers.items())
            ],
        )

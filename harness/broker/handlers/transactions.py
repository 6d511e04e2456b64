"""What transactional producers ask their coordinator, and what administrators ask about transactions."""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from harness.broker.coordinator.placement import partition_of
from harness.broker.metadata_cache import MetadataCache
from harness.broker.topics import INTERNAL_TOPICS
from harness.broker.transactions.coordinator import TransactionCoordinator
from harness.broker.transactions.metadata import TransactionMetadata, TransactionState
from harness.broker.transactions.records import by_topic
from harness.broker.transactions.transaction import Producer
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from harness.values import OFFSETS_TOPIC, TopicPartition

FENCED_SINCE = 2
"""The version of these requests whose clients know PRODUCER_FENCED; older ones get INVALID_PRODUCER_EPOCH."""
BATCHED_SINCE = 4
"""The version of AddPartitionsToTxn that brokers send, about several transactions, and may only ask with (KIP-890)."""

_Asked = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
_TopicResult = _Result.AddPartitionsToTxnTopicResult
_PartitionResult = _TopicResult.AddPartitionsToTxnPartitionResult
_OldTopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_OldPartitionResult = _OldTopicResult.AddPartitionsToTxnPartitionResult
_Described = DescribeTransactionsResponse.TransactionState
_DescribedTopic = _Described.TopicData
_Listed = ListTransactionsResponse.TransactionState

Errors = dict[TopicPartition, ErrorCode]


@dataclass(slots=True)
class TransactionHandlers:
    """Serves transactional producers and administrators."""

    coordinator: TransactionCoordinator
    metadata: MetadataCache
    offsets_partitions: int
    """Of `__consumer_offsets`."""

    async def add_partitions(
        self, request: AddPartitionsToTxnRequest, context: RequestContext
    ) -> AddPartitionsToTxnResponse:
        """Answer AddPartitionsToTxn, for one transaction of a client or several of brokers."""
        if context.api_version >= BATCHED_SINCE:
            return AddPartitionsToTxnResponse(
                error_code=ErrorCode.NONE,
                results_by_transaction=list(await asyncio.gather(*map(self._add, request.transactions))),
            )
        asked = {(topic.name, each) for topic in request.v3_and_below_topics for each in topic.partitions}
        producer = Producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        internal = {each for each in asked if each[0] in INTERNAL_TOPICS}
        unknown = {each for each in asked - internal if self.metadata.partition(*each) is None}
        if internal or unknown:
            errors = dict.fromkeys(asked, ErrorCode.OPERATION_NOT_ATTEMPTED)
            errors |= dict.fromkeys(internal, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            errors |= dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            error = await self.coordinator.add_partitions(
                request.v3_and_below_transactional_id, producer, asked, api="AddPartitionsToTxn"
            )
            errors = dict.fromkeys(asked, _known_to(context, error))
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                _OldTopicResult(
                    name=topic,
                    results_by_partition=[
                        _OldPartitionResult(partition_index=each, partition_error_code=errors[topic, each])
                        for each in numbers
                    ],
                )
                for topic, numbers in by_topic(asked).items()
            ]
        )

    async def _add(self, asked: _Asked) -> _Result:
        partitions = {(topic.name, each) for topic in asked.topics for each in topic.partitions}
        producer = Producer(asked.producer_id, asked.producer_epoch)
        unknown = {each for each in partitions if self.metadata.partition(*each) is None}
        errors: Errors
        if unknown:
            errors = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
            errors |= dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif asked.verify_only and not asked.transactional_id:
            errors = dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
        elif asked.verify_only:
            errors = self.coordinator.verify(asked.transactional_id, producer, partitions)
        else:
            error = await self.coordinator.add_partitions(
                asked.transactional_id, producer, partitions, api="AddPartitionsToTxn"
            )
            errors = dict.fromkeys(partitions, error)
        return _Result(transactional_id=asked.transactional_id, topic_results=_topic_results(partitions, errors))

    async def add_offsets(self, request: AddOffsetsToTxnRequest, context: RequestContext) -> AddOffsetsToTxnResponse:
        """Answer AddOffsetsToTxn: the partition that holds the group's offsets becomes part of the transaction."""
        partition = (OFFSETS_TOPIC, partition_of(request.group_id, self.offsets_partitions))
        producer = Producer(request.producer_id, request.producer_epoch)
        error = await self.coordinator.add_partitions(
            request.transactional_id, producer, {partition}, api="AddOffsetsToTxn"
        )
        return AddOffsetsToTxnResponse(error_code=_known_to(context, error))

    async def end(self, request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
        """Answer EndTxn."""
        producer = Producer(request.producer_id, request.producer_epoch)
        error = await self.coordinator.end(request.transactional_id, producer, commit=request.committed)
        return EndTxnResponse(error_code=_known_to(context, error))

    async def describe(
        self, request: DescribeTransactionsRequest, context: RequestContext
    ) -> DescribeTransactionsResponse:
        """Answer DescribeTransactions."""
        return DescribeTransactionsResponse(
            transaction_states=[
                _described(name, *self.coordinator.describe(name)) for name in request.transactional_ids
            ]
        )

    async def list(self, request: ListTransactionsRequest, context: RequestContext) -> ListTransactionsResponse:
        """Answer ListTransactions; while one partition is being loaded nothing is listed."""
        if self.coordinator.shards.is_loading:
            return ListTransactionsResponse(
                error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, unknown_state_filters=[], transaction_states=[]
            )
        known = {state.value for state in TransactionState}
        now_ms = self.coordinator.wall_ms()
        return ListTransactionsResponse(
            error_code=ErrorCode.NONE,
            unknown_state_filters=[each for each in dict.fromkeys(request.state_filters) if each not in known],
            transaction_states=[
                _Listed(
                    transactional_id=each.transactional_id,
                    producer_id=each.metadata.producer_id,
                    transaction_state=each.metadata.state,
                )
                for each in self.coordinator.transactions()
                if _is_listed(each.metadata, request, now_ms)
            ],
        )


def _known_to(context: RequestContext, error: ErrorCode) -> ErrorCode:
    """Return an error as a client of this version knows it."""
    is_new = error is ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_SINCE
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_new else error


def _topic_results(partitions: Iterable[TopicPartition], errors: Errors) -> list[_TopicResult]:
    return [
        _TopicResult(
            name=topic,
            results_by_partition=[
                _PartitionResult(partition_index=each, partition_error_code=errors[topic, each]) for each in numbers
            ],
        )
        for topic, numbers in by_topic(partitions).items()
    ]


def _described(name: str, error: ErrorCode, known: TransactionMetadata | None) -> _Described:
    if known is None:
        return _Described(
            error_code=error,
            transactional_id=name,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=[],
        )
    return _Described(
        error_code=error,
        transactional_id=name,
        transaction_state=known.state,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.started_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=[
            _DescribedTopic(topic=topic, partitions=numbers) for topic, numbers in by_topic(known.partitions).items()
        ],
    )


def _is_listed(known: TransactionMetadata, request: ListTransactionsRequest, now_ms: int) -> bool:
    states: Collection[str] = request.state_filters
    return (
        (not request.producer_id_filters or known.producer_id in request.producer_id_filters)
        and (not states or known.state in states)
        and not (request.duration_filter >= 0 and now_ms - known.started_ms <= request.duration_filter)
    )

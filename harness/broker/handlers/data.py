"""Produce, Fetch, ListOffsets and OffsetForLeaderEpoch: from messages to the replicas and back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from harness.broker.configs.config import BrokerConfig
from harness.broker.log.batch import BatchHeader, CorruptBatch, first_header, next_batch_size
from harness.broker.log.epoch_cache import UNDEFINED_END
from harness.broker.log.verification import Verification
from harness.broker.replicas.appending import Appender, AppendResult, ProduceParams, ToAppend
from harness.broker.replicas.fetch_sessions import FetchSessionError, FetchSessions
from harness.broker.replicas.fetching import DEBUGGING, FetchLimits, FetchServer, PartitionFetch, Read
from harness.broker.replicas.offset_lookup import NOTHING, check_timestamp, find_offset
from harness.broker.replicas.partition import Partition, PartitionError
from harness.broker.replicas.replicas import Replicas
from harness.broker.replicas.verifying import PartitionVerifier, as_producers_know_it
from harness.broker.state_log import StateLog
from harness.broker.wire.dispatch import CloseConnection, RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
)
from harness.broker.wire.sentinels import CONSUMER, NO_EPOCH
from harness.events import NO_OFFSET, Fenced, OffsetForLeaderEpoch, OffsetListed
from harness.values import TopicPartition

READ_COMMITTED = 1
"""Isolation level; any other one is 0, which reads open transactions too."""
FOLLOWERS_SERVE_CONSUMERS_SINCE = 11
"""The version of Fetch whose consumers may read from any replica (KIP-392)."""
FETCH_KNOWS_ZSTD_SINCE = 10
PRODUCE_KNOWS_ZSTD_SINCE = 7
"""The versions from which on clients know zstd (KIP-110)."""
PRODUCE_NAMES_LEADERS_SINCE = 10
PRODUCE_KNOWS_ABORTABLE_SINCE = 11
"""The version of Produce whose clients know TRANSACTION_ABORTABLE (KIP-890)."""
OFFSET_NOT_AVAILABLE_SINCE = 5
"""The version of ListOffsets that knows this error; older clients retry on LEADER_NOT_AVAILABLE."""

_EPOCH_ERRORS = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH)

_ProducedTopic = ProduceResponse.TopicProduceResponse
_ProducedPartition = _ProducedTopic.PartitionProduceResponse
_Leader = _ProducedPartition.LeaderIdAndEpoch
_Node = ProduceResponse.NodeEndpoint
_FetchedTopic = FetchResponse.FetchableTopicResponse
_FetchedPartition = _FetchedTopic.PartitionData
_Aborted = _FetchedPartition.AbortedTransaction
_OffsetQuery = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
_ListedTopic = ListOffsetsResponse.ListOffsetsTopicResponse
_ListedPartition = _ListedTopic.ListOffsetsPartitionResponse
_EpochQuery = OffsetForLeaderEpochRequest.OffsetForLeaderTopic.OffsetForLeaderPartition
_EpochTopic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
_EpochPartition = _EpochTopic.EpochEndOffset

Result = TypeVar("Result")


@dataclass(slots=True)
class DataHandlers:
    """Serves records and offsets."""

    replicas: Replicas
    appender: Appender
    verifier: PartitionVerifier
    fetch_server: FetchServer
    sessions: FetchSessions
    config: BrokerConfig
    state_log: StateLog

    # --- Produce ---

    async def produce(self, request: ProduceRequest, context: RequestContext) -> ProduceResponse | None:
        """Append and, with acks=all, wait; with acks=0 there is no answer.

        Raises:
            CloseConnection: an error with acks=0, which a producer without answers learns in no other way.
        """
        items = [
            ToAppend((topic.name, partition.index), bytes(partition.records or b""))
            for topic in request.topic_data
            for partition in topic.partition_data
        ]
        results = await self._append(items, request, context)
        answers = list(zip([item.key for item in items], results, strict=True))
        if request.acks == 0:
            failed = [f"{topic}-{number}" for (topic, number), result in answers if result.error is not ErrorCode.NONE]
            if failed:
                raise CloseConnection(f"produce with acks=0 failed for {', '.join(failed)}")
            return None
        response = ProduceResponse(
            responses=[
                _ProducedTopic(name=topic, partition_responses=[_produced(key, result) for key, result in group])
                for topic, group in _by_topic(answers)
            ],
            throttle_time_ms=0,
        )
        if context.api_version >= PRODUCE_NAMES_LEADERS_SINCE:
            self._name_leaders(response, context.listener)
        return response

    def _name_leaders(self, response: ProduceResponse, listener: str) -> None:
        """Name the known leaders of partitions that this broker does not lead, and their addresses (KIP-951)."""
        leaders = set()
        for topic in response.responses:
            for partition in topic.partition_responses:
                key = (topic.name, partition.index)
                known = self.replicas.get(*key) or self.replicas.metadata.partition(*key)
                if partition.error_code == ErrorCode.NOT_LEADER_FOR_PARTITION and known is not None:
                    partition.current_leader = _Leader(leader_id=known.leader, leader_epoch=known.leader_epoch)
                    leaders.add(known.leader)
        response.node_endpoints = [
            _Node(node_id=broker.broker_id, host=host, port=port, rack=broker.rack)
            for broker, (host, port) in self.replicas.metadata.reached_by(listener)
            if broker.broker_id in leaders
        ]

    async def _append(
        self, items: list[ToAppend], request: ProduceRequest, context: RequestContext
    ) -> list[AppendResult]:
        try:
            batches = _transactional(items)
        except CorruptBatch:
            return [AppendResult(error=ErrorCode.CORRUPT_MESSAGE) for _ in items]
        if batches and request.transactional_id is None:
            return [AppendResult(error=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) for _ in items]
        params = ProduceParams(
            acks=request.acks,
            timeout_s=request.timeout_ms / 1000,
            client=context.client_id,
            correlation_id=context.correlation_id,
            knows_zstd=context.api_version >= PRODUCE_KNOWS_ZSTD_SINCE,
        )
        if not batches:
            return await self.appender.append(items, params)
        malformed = {item.key: error for item in items if (error := self.appender.malformed(item, params))}
        batches = {key: header for key, header in batches.items() if key not in malformed}
        producers = {(each.producer_id, each.producer_epoch) for each in batches.values() if each.producer_id >= 0}
        if len(producers) > 1:
            return [AppendResult(error=ErrorCode.INVALID_PRODUCER_ID_MAPPING) for _ in items]
        knows_abortable = context.api_version >= PRODUCE_KNOWS_ABORTABLE_SINCE
        verified = await self.verifier.verify(request.transactional_id or "", batches)
        return await self._append_verified(items, params, malformed | verified, knows_abortable=knows_abortable)

    async def _append_verified(
        self,
        items: list[ToAppend],
        params: ProduceParams,
        verified: Mapping[TopicPartition, Verification | ErrorCode],
        *,
        knows_abortable: bool,
    ) -> list[AppendResult]:
        """Append batches that are not refused, with what the coordinator has verified, and return the result of all."""
        refused = {
            key: AppendResult(error=as_producers_know_it(answer, knows_abortable=knows_abortable))
            for key, answer in verified.items()
            if isinstance(answer, ErrorCode)
        }
        admitted = [item for item in items if item.key not in refused]
        with_word = [
            item._replace(verification=answer) if isinstance(answer := verified.get(item.key), Verification) else item
            for item in admitted
        ]
        appended = iter(await self.appender.append(with_word, params))
        return [refused[item.key] if item.key in refused else next(appended) for item in items]

    # --- Fetch ---

    async def fetch(self, request: FetchRequest, context: RequestContext) -> FetchResponse:
        """Read, waiting for records; within a fetch session only changes are answered (KIP-227)."""
        named = [
            PartitionFetch(
                (topic.topic, partition.partition),
                max(partition.current_leader_epoch, NO_EPOCH),  # any negative one names none (FetchRequest)
                partition.fetch_offset,
                partition.partition_max_bytes,
                partition.log_start_offset,
                partition.last_fetched_epoch,
            )
            for topic in request.topics
            for partition in topic.partitions
        ]
        forgotten = [(topic.topic, number) for topic in request.forgotten_topics_data for number in topic.partitions]
        limits = FetchLimits(
            min_bytes=request.min_bytes,
            max_bytes=min(request.max_bytes, self.config["fetch.max.bytes"]),
            max_wait_s=request.max_wait_ms / 1000,
            room=context.room,
            only_from_leader=context.api_version < FOLLOWERS_SERVE_CONSUMERS_SINCE,
            knows_zstd=context.api_version >= FETCH_KNOWS_ZSTD_SINCE,
            read_committed=request.isolation_level == READ_COMMITTED,
        )
        is_follower = request.replica_id > CONSUMER
        try:
            fetch = self.sessions.begin(
                request.session_id, request.session_epoch, named, forgotten, privileged=is_follower
            )
            reads = await self.fetch_server.fetch(request.replica_id, fetch.partitions, limits)
            for read in reads:
                if read.error is not ErrorCode.NONE:
                    epoch = read.fetch.current_leader_epoch
                    self._log_fenced("Fetch", read.fetch.key, epoch, request.replica_id, read.error)
            # KafkaApis.handleFetchRequest puts unknown partitions last, in the answer and in the session.
            reads = sorted(reads, key=lambda read: read.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            session_id, news = fetch.answer(reads)
        except FetchSessionError as refusal:
            return FetchResponse(
                throttle_time_ms=0, error_code=refusal.error, session_id=refusal.session_id, responses=[]
            )
        return FetchResponse(
            throttle_time_ms=0,
            error_code=ErrorCode.NONE,
            session_id=session_id,
            responses=[
                _FetchedTopic(topic=topic, partitions=[_fetched(read) for _, read in group])
                for topic, group in _by_topic([(read.fetch.key, read) for read in news])
            ],
        )

    # --- ListOffsets ---

    async def list_offsets(self, request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
        """Look up offsets; a partition that is named twice is refused."""
        named = [(topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions]
        duplicates = {key for key in named if named.count(key) > 1}
        return ListOffsetsResponse(
            throttle_time_ms=0,
            topics=[
                _ListedTopic(
                    name=topic.name,
                    partitions=[
                        self._listed(topic.name, query, request, context.api_version)
                        if (topic.name, query.partition_index) not in duplicates
                        else _listed_error(query.partition_index, ErrorCode.INVALID_REQUEST)
                        for query in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )

    def _listed(self, topic: str, query: _OffsetQuery, request: ListOffsetsRequest, version: int) -> _ListedPartition:
        key, replica_id = (topic, query.partition_index), request.replica_id
        try:
            check_timestamp(query.timestamp, version)
            lookup = self.replicas.followed_or_led if replica_id == DEBUGGING else self.replicas.led
            partition, read_committed = (
                lookup(*key, query.current_leader_epoch),
                request.isolation_level == READ_COMMITTED,
            )
            offset = find_offset(
                partition, query.timestamp, whole_log=replica_id != CONSUMER, read_committed=read_committed
            )
        except PartitionError as error:
            self._log_fenced("ListOffsets", key, query.current_leader_epoch, replica_id, error.error)
            code = error.error
            if code is ErrorCode.OFFSET_NOT_AVAILABLE and version < OFFSET_NOT_AVAILABLE_SINCE:
                code = ErrorCode.LEADER_NOT_AVAILABLE
            return _listed_error(query.partition_index, code)
        if replica_id == CONSUMER:
            self.state_log.emit(
                OffsetListed(
                    topic=topic,
                    partition=query.partition_index,
                    leader_epoch=partition.leader_epoch,
                    timestamp=query.timestamp,
                    read_committed=read_committed,
                    offset=offset.offset,
                    record_timestamp=offset.timestamp,
                )
            )
        return _ListedPartition(
            partition_index=query.partition_index,
            error_code=ErrorCode.NONE,
            timestamp=offset.timestamp,
            offset=offset.offset,
            leader_epoch=offset.leader_epoch,
        )

    # --- OffsetForLeaderEpoch ---

    async def offset_for_leader_epoch(
        self, request: OffsetForLeaderEpochRequest, context: RequestContext
    ) -> OffsetForLeaderEpochResponse:
        """Return the ends of leader epochs in the logs led here (KIP-101)."""
        return OffsetForLeaderEpochResponse(
            throttle_time_ms=0,
            topics=[
                _EpochTopic(
                    topic=topic.topic,
                    partitions=[self._epoch_end(topic.topic, query, request.replica_id) for query in topic.partitions],
                )
                for topic in request.topics
            ],
        )

    def _epoch_end(self, topic: str, query: _EpochQuery, replica_id: int) -> _EpochPartition:
        key = (topic, query.partition)
        error, end = ErrorCode.NONE, UNDEFINED_END
        led: Partition | None = None
        try:
            fenced = self.replicas.rules.epoch_questions_are_fenced
            led = self.replicas.led(*key, query.current_leader_epoch if fenced else NO_EPOCH)
            end = led.end_of_epoch(query.leader_epoch)
        except PartitionError as refusal:
            error = refusal.error
            self._log_fenced("OffsetForLeaderEpoch", key, query.current_leader_epoch, replica_id, error)
        self.state_log.emit(
            OffsetForLeaderEpoch(
                topic=topic,
                partition=query.partition,
                sender=replica_id,
                current_leader_epoch=query.current_leader_epoch,
                asked_epoch=query.leader_epoch,
                answer_epoch=end.epoch,
                end_offset=end.end_offset,
                error=error,
                leader_epoch=NO_EPOCH if led is None else led.leader_epoch,
                log_end_offset=NO_OFFSET if led is None else led.log.log_end_offset,
                leader_epochs=[] if led is None else [*led.log.epochs],
            )
        )
        return _EpochPartition(
            error_code=error, partition=query.partition, leader_epoch=end.epoch, end_offset=end.end_offset
        )

    def _log_fenced(self, api: str, key: TopicPartition, got: int, sender: int, error: ErrorCode) -> None:
        hosted = self.replicas.get(*key) if error in _EPOCH_ERRORS else None
        if hosted is not None:
            self.state_log.emit(
                Fenced(
                    what="leader_epoch",
                    api=api,
                    topic=key[0],
                    partition=key[1],
                    got=got,
                    have=hosted.leader_epoch,
                    sender=sender,
                    error=error,
                )
            )


def _by_topic(
    answers: Iterable[tuple[TopicPartition, Result]],
) -> list[tuple[str, list[tuple[TopicPartition, Result]]]]:
    return [(topic, list(group)) for topic, group in groupby(answers, key=lambda answer: answer[0][0])]


def _transactional(items: Iterable[ToAppend]) -> dict[TopicPartition, BatchHeader]:
    """Return the headers of the first batches that belong to a transaction.

    Raises:
        CorruptBatch: records cannot be a batch, and no item before them has a batch of a transaction; Kafka then
            refuses the whole request.
    """
    headers: dict[TopicPartition, BatchHeader] = {}
    for item in items:
        try:
            is_whole = next_batch_size(item.records, 0) is not None
        except CorruptBatch:
            if not headers:
                raise
            continue
        header = first_header(item.records) if is_whole else None
        if header is not None and header.is_transactional:
            headers[item.key] = header
    return headers


def _produced(key: TopicPartition, result: AppendResult) -> _ProducedPartition:
    return _ProducedPartition(
        index=key[1],
        error_code=result.error,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time,
        log_start_offset=result.log_start_offset,
    )


def _fetched(read: Read) -> _FetchedPartition:
    aborted = () if read.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else read.aborted
    partition = _FetchedPartition(
        partition_index=read.fetch.key[1],
        error_code=read.error,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=None
        if aborted is None
        else [_Aborted(producer_id=each.producer_id, first_offset=each.first_offset) for each in aborted],
        records=read.records,
    )
    if read.diverging is not None:
        epoch, end_offset = read.diverging
        partition.diverging_epoch = _FetchedPartition.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return partition


def _listed_error(partition: int, error: ErrorCode) -> _ListedPartition:
    return _ListedPartition(
        partition_index=partition,
        error_code=error,
        timestamp=NOTHING.timestamp,
        offset=NOTHING.offset,
        leader_epoch=NOTHING.leader_epoch,
    )

"""What a transactional producer asks its coordinators, tried again where Kafka's clients do (`TransactionManager`)."""

import asyncio
from collections.abc import Callable, Mapping

from harness.broker.transactions.transaction import Producer
from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from harness.broker.wire.transport import Message, PeerError
from harness.client_rules.outcomes import NOT_THIS_PRODUCER, coordinator_failure
from harness.client_rules.steps import Failure, StepResult
from harness.simulation.clients.coordinator import TRANSACTION, Coordinator
from harness.simulation.clients.metadata import ClusterClient, now_s
from harness.simulation.clients.refusals import Refused
from harness.store.recording import Identity
from harness.values import TopicPartition

INIT_PRODUCER_ID_VERSION = 4
ADD_PARTITIONS_VERSION = ADD_OFFSETS_VERSION = END_VERSION = OFFSET_COMMIT_VERSION = 3
BACK_OFF_S = 0.05
NEW = Producer(-1, -1)
"""The identity of a producer that has none yet."""
_ELSEWHERE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION})
_LATER = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class TransactionError(Exception):
    """A transactional producer cannot go on as it was."""

    def __init__(self, code: int, failure: Failure, *, had_no_effect: bool = False) -> None:
        super().__init__(described(code))
        self.code = code
        self.failure = failure
        self.had_no_effect = had_no_effect

    @property
    def result(self) -> StepResult:
        """The result of the step that failed."""
        return StepResult(error=str(self), failure=self.failure, had_no_effect=self.had_no_effect)


class TransactionalRequests:
    """The requests of one transactional id; each of them raises TransactionError."""

    def __init__(self, transactional_id: str, client: ClusterClient, *, timeout_ms: int, patience_s: float) -> None:
        """Take the time-out of transactions, and how long one request is tried."""
        self.producer = NEW
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._patience_s = patience_s
        self._client = client
        self._coordinator = Coordinator(transactional_id, client, TRANSACTION)

    async def init_producer_id(self) -> None:
        """Become the present producer of the id, or go on with the next epoch (KIP-360)."""
        request = InitProducerIdRequest(
            transactional_id=self._id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
        )
        answer = await self._ask(self._coordinator, request, INIT_PRODUCER_ID_VERSION, lambda each: [each.error_code])
        self.producer = Producer(answer.producer_id, answer.producer_epoch)

    async def add_partition(self, key: TopicPartition) -> None:
        """Make a partition part of the transaction."""
        topic, number = key
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self.producer.producer_id,
            v3_and_below_producer_epoch=self.producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[number])],
        )
        await self._ask(self._coordinator, request, ADD_PARTITIONS_VERSION, _codes_of_added)

    async def add_offsets(self, group: str) -> None:
        """Make a group's offsets part of the transaction."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            group_id=group,
        )
        await self._ask(self._coordinator, request, ADD_OFFSETS_VERSION, lambda each: [each.error_code])

    async def commit_offsets(self, group: str, positions: Mapping[TopicPartition, int], identity: Identity) -> None:
        """Commit offsets within the transaction, as a member of a generation (KIP-447)."""
        of_topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            generation_id=identity.generation,
            member_id=identity.member,
            group_instance_id=identity.instance or None,
            topics=[
                of_topic(
                    name=topic,
                    partitions=[
                        of_topic.TxnOffsetCommitRequestPartition(
                            partition_index=number, committed_offset=offset, committed_metadata=""
                        )
                    ],
                )
                for (topic, number), offset in positions.items()
            ],
        )
        coordinator = Coordinator(group, self._client)
        await self._ask(coordinator, request, OFFSET_COMMIT_VERSION, _codes_of_committed)

    async def end(self, *, commit: bool) -> None:
        """Commit or abort the transaction."""
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            committed=commit,
        )
        await self._ask(self._coordinator, request, END_VERSION, lambda each: [each.error_code])

    async def _ask(
        self, coordinator: Coordinator, request: Message, version: int, codes: Callable[[Message], list[int]]
    ) -> Message:
        deadline_s, tries = now_s() + self._patience_s, 0
        while True:
            tries += 1
            try:
                answer = await coordinator.ask(request, version)
                code = max(codes(answer))
            except Refused as error:
                code = error.code
            except PeerError:
                code = ErrorCode.NETWORK_EXCEPTION
            if code == ErrorCode.NONE:
                return answer
            if code in _ELSEWHERE:
                coordinator.forget()
            elif code not in _LATER:
                had_no_effect = tries == 1 and code in NOT_THIS_PRODUCER
                raise TransactionError(code, coordinator_failure(code), had_no_effect=had_no_effect)
            if now_s() >= deadline_s:
                raise TransactionError(code, Failure.RETRIABLE)
            await asyncio.sleep(BACK_OFF_S)


def _codes_of_added(answer: Message) -> list[int]:
    topics = answer.results_by_topic_v3_and_below
    return [each.partition_error_code for topic in topics for each in topic.results_by_partition]


def _codes_of_committed(answer: Message) -> list[int]:
    return [each.error_code for topic in answer.topics for each in topic.partitions]

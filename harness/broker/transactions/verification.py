"""Asks the coordinator of a transaction whether partitions are part of it, before a leader appends (KIP-890, part 1).

After Kafka's `AddPartitionsToTxnManager`: the questions to one broker go out together, one request at a time.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.broker.background import reported
from harness.broker.coordinator.placement import partition_of
from harness.broker.metadata_cache import MetadataCache
from harness.broker.replicas.replicas import now_s
from harness.broker.replicas.verifying import TransactionQuestion
from harness.broker.transactions.peers import Peers
from harness.broker.transactions.records import by_topic
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from harness.broker.wire.transport import PeerError
from harness.values import TRANSACTIONS_TOPIC, TopicPartition

VERIFY_VERSION = 4

_Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_Topic = _Transaction.AddPartitionsToTxnTopic


@dataclass(slots=True, eq=False)
class _Waiting:
    question: TransactionQuestion
    answer: asyncio.Future[Mapping[TopicPartition, ErrorCode]]

    def fail(self, error: ErrorCode) -> None:
        if not self.answer.done():
            self.answer.set_result(dict.fromkeys(self.question.partitions, error))


@dataclass(slots=True, kw_only=True)
class CoordinatorQuestions:
    """The questions of this broker."""

    peers: Peers
    metadata: MetadataCache
    state_partitions: int
    """Of `__transaction_state`."""
    failures: int = 0
    """Partitions that were not verified (Kafka's `VerificationFailureRate`)."""
    answered: int = 0
    waited_s: float = 0.0
    """Questions that were answered, and how long all of them took (Kafka's `VerificationTimeMs`)."""
    _waiting: dict[int, dict[str, _Waiting]] = field(default_factory=dict)
    _askers: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    async def verify(self, question: TransactionQuestion) -> Mapping[TopicPartition, ErrorCode]:
        """Return what the coordinator says of each partition; NONE of those that are in the transaction.

        NETWORK_EXCEPTION when it does not answer, COORDINATOR_NOT_AVAILABLE when it is not known where it is.
        """
        coordinator = self._coordinator(question.transactional_id)
        if coordinator is None:
            return dict.fromkeys(question.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        began_s = now_s()
        waiting = _Waiting(question, asyncio.get_running_loop().create_future())
        self._put(coordinator, waiting)
        answer = await waiting.answer
        self.answered += 1
        self.waited_s += now_s() - began_s
        self.failures += sum(error is not ErrorCode.NONE for error in answer.values())
        return answer

    async def stop(self) -> None:
        """End every question."""
        tasks = list(self._askers.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for queue in self._waiting.values():
            for waiting in queue.values():
                waiting.fail(ErrorCode.NETWORK_EXCEPTION)
        self.peers.close()

    def _coordinator(self, transactional_id: str) -> int | None:
        info = self.metadata.partition(TRANSACTIONS_TOPIC, partition_of(transactional_id, self.state_partitions))
        if info is None or self.metadata.leader_endpoint(info.leader, self.peers.listener) is None:
            return None
        return info.leader

    def _put(self, coordinator: int, waiting: _Waiting) -> None:
        """Queue a question; of two about one transactional id the later one stays, unless its epoch is older."""
        queue = self._waiting.setdefault(coordinator, {})
        name, epoch = waiting.question.transactional_id, waiting.question.producer_epoch
        earlier = queue.get(name)
        if earlier is not None:
            if epoch < earlier.question.producer_epoch:
                waiting.fail(ErrorCode.INVALID_PRODUCER_EPOCH)
                return
            same = epoch == earlier.question.producer_epoch
            earlier.fail(ErrorCode.NETWORK_EXCEPTION if same else ErrorCode.INVALID_PRODUCER_EPOCH)
        queue[name] = waiting
        asker = self._askers.get(coordinator)
        if asker is None or asker.done():
            work = self._ask(coordinator)
            self._askers[coordinator] = asyncio.get_running_loop().create_task(work, name=f"verify-at-{coordinator}")
            self._askers[coordinator].add_done_callback(reported)

    async def _ask(self, coordinator: int) -> None:
        while queue := self._waiting.pop(coordinator, None):
            request = AddPartitionsToTxnRequest(transactions=[_asked(each.question) for each in queue.values()])
            try:
                answer = await self.peers.request(coordinator, request, VERIFY_VERSION)
                _settle(queue, answer)
            except PeerError:
                pass
            finally:
                for waiting in queue.values():
                    waiting.fail(ErrorCode.NETWORK_EXCEPTION)


def _asked(question: TransactionQuestion) -> _Transaction:
    return _Transaction(
        transactional_id=question.transactional_id,
        producer_id=question.producer_id,
        producer_epoch=question.producer_epoch,
        verify_only=True,
        topics=[_Topic(name=name, partitions=numbers) for name, numbers in by_topic(question.partitions).items()],
    )


def _settle(queue: Mapping[str, _Waiting], answer: AddPartitionsToTxnResponse) -> None:
    """Answer the questions that the coordinator has answered."""
    if answer.error_code:
        for waiting in queue.values():
            waiting.fail(ErrorCode(answer.error_code))
    for result in answer.results_by_transaction:
        known = queue.get(result.transactional_id)
        if known is not None and not known.answer.done():
            known.answer.set_result(
                {
                    (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
                    for topic in result.topic_results
                    for each in topic.results_by_partition
                }
            )

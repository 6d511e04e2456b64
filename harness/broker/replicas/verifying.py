"""Verifies before a transaction begins on a partition that its coordinator has the partition in it (KIP-890, part 1).

Kafka's `ReplicaManager.maybeStartTransactionVerificationForPartitions`. The connection to coordinators is plugged in:
the replicas know nothing of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.broker.log.batch import BatchHeader
from harness.broker.log.verification import Verification
from harness.broker.replicas.partition import PartitionError
from harness.broker.replicas.replicas import Replicas
from harness.broker.state_log import StateLog
from harness.broker.wire.error_codes import ErrorCode
from harness.events import PartitionVerification
from harness.values import TopicPartition, value_class

_TRY_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


@value_class(frozen=True, slots=True, kw_only=True)
class TransactionQuestion:
    """Asks which of these partitions are in the producer's open transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Sequence[TopicPartition]


class TransactionVerifier(Protocol):
    """Asks the coordinator of a transactional id: AddPartitionsToTxn with `verify_only`."""

    async def verify(self, question: TransactionQuestion) -> Mapping[TopicPartition, ErrorCode]:
        """Return the coordinator's error for each partition; NONE for those in the transaction.

        NETWORK_EXCEPTION when it does not answer, COORDINATOR_NOT_AVAILABLE when it is unknown.
        """
        ...


class NoCoordinator:
    """Verifier of a broker without a transaction coordinator."""

    async def verify(self, question: TransactionQuestion) -> Mapping[TopicPartition, ErrorCode]:
        """Return that there is none."""
        return dict.fromkeys(question.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)


@dataclass(slots=True, kw_only=True)
class PartitionVerifier:
    """Gets the verifications for the first batches of transactions."""

    replicas: Replicas
    state_log: StateLog
    wall_ms: Callable[[], int]
    coordinators: TransactionVerifier = field(default_factory=NoCoordinator)

    async def verify(
        self, transactional_id: str, batches: Mapping[TopicPartition, BatchHeader]
    ) -> dict[TopicPartition, Verification | ErrorCode]:
        """Return the verifications for these batches, all of one producer, or why one may not be appended.

        Batches that are left out need none: their transaction is open, or the broker verifies none.
        """
        result: dict[TopicPartition, Verification | ErrorCode] = {}
        for key, header in batches.items():
            try:
                log = self.replicas.led(*key).log
            except PartitionError as refused:
                result[key] = refused.error
                continue
            if log.settings.verify_transactions and not log.producers.has_open_transaction(header.producer_id):
                result[key] = log.producer_history.verifications.begin(header, self.wall_ms())
        partitions = [key for key, each in result.items() if isinstance(each, Verification)]
        if partitions and self.replicas.rules.partitions_are_verified:
            header = batches[partitions[0]]
            question = TransactionQuestion(
                transactional_id=transactional_id,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                partitions=partitions,
            )
            answers = await self.coordinators.verify(question)
            for key in partitions:
                answer = answers.get(key, ErrorCode.INVALID_TXN_STATE)
                self._log_answer(question, key, answer)
                if answer is not ErrorCode.NONE:
                    result[key] = answer
        return result

    def _log_answer(self, question: TransactionQuestion, key: TopicPartition, error: ErrorCode) -> None:
        hosted = self.replicas.get(*key)
        if hosted is not None:
            self.state_log.emit(
                PartitionVerification(
                    topic=key[0],
                    partition=key[1],
                    leader_epoch=hosted.leader_epoch,
                    transactional_id=question.transactional_id,
                    producer_id=question.producer_id,
                    producer_epoch=question.producer_epoch,
                    error=error,
                )
            )


def as_producers_know_it(error: ErrorCode, *, knows_abortable: bool) -> ErrorCode:
    """Return Produce's error for one of a coordinator.

    A temporary one becomes an error on which every producer retries without looking for another leader.
    """
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.NOT_ENOUGH_REPLICAS if error in _TRY_AGAIN else error

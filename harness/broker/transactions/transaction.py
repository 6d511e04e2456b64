"""The transaction coordinator's state machine: what each request and each time-out does to one transaction. Pure.

No socket, no clock, no disk. A request answers an error, or what is to be stored before the request may be answered;
until then `pending` keeps every other transition out (CONCURRENT_TRANSACTIONS). The rules are those of the
`TransactionCoordinator` and the `TransactionMetadata` of Kafka 3.9 with transaction version 1.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from harness.broker.rules import RIGHT, ProtocolRules
from harness.broker.transactions.metadata import (
    LAST_EPOCH,
    NO_PRODUCER_EPOCH,
    NOT_STARTED,
    PREVIOUS,
    TransactionMetadata,
    TransactionState,
)
from harness.broker.wire.error_codes import ErrorCode
from harness.values import TopicPartition


class Producer(NamedTuple):
    """How a producer names itself."""

    producer_id: int
    epoch: int


class Need(Enum):
    """What a decision lacks."""

    PRODUCER_ID = "the epochs of the producer id are used up"


Decision = ErrorCode | TransactionMetadata
"""An answer, or what is to be stored first."""


class ImpossibleTransition(Exception):
    """A transition that no request can cause: a mistake of the coordinator."""

    is_mistake = True


@dataclass(slots=True, eq=False)
class Transaction:
    """One transactional id and what may happen to it."""

    transactional_id: str
    metadata: TransactionMetadata
    rules: ProtocolRules = RIGHT
    pending: TransactionState | None = None
    """The state that is being stored."""
    fence_failed: bool = False
    """Whether a raised epoch could not be stored; it was told to no client, so it is not raised once more."""

    # --- InitProducerId ---

    def init_producer_id(
        self, timeout_ms: int, expected: Producer | None, now_ms: int, new_producer_id: int | None = None
    ) -> Decision | Need:
        """Begin a session of a producer: the next epoch, or with all epochs used the first one of a new producer id.

        `expected` is how the producer knows itself when it goes on (KIP-360). A transaction that is open is aborted
        first: what is to be stored then is `PREPARE_EPOCH_FENCE`, to be followed by `end`.
        """
        known = self.metadata
        if self._is_busy():
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if expected is not None and not self._may_go_on(expected):
            return ErrorCode.PRODUCER_FENCED
        if known.state.is_prepared:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if known.state is TransactionState.ONGOING:
            return self.fence()
        if known.is_epoch_exhausted:
            if expected is not None and expected.epoch != known.producer_epoch:
                return ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka fails here: no epoch is left to give
            if new_producer_id is None:
                return Need.PRODUCER_ID
            last = NO_PRODUCER_EPOCH if expected is None else known.producer_epoch
            return self._begin_session(Producer(new_producer_id, 0), last, timeout_ms, now_ms)
        next_epoch, last = known.producer_epoch + 1, NO_PRODUCER_EPOCH
        if expected is not None and known.producer_epoch not in (NO_PRODUCER_EPOCH, expected.epoch):
            if expected.epoch != known.last_producer_epoch:
                return ErrorCode.PRODUCER_FENCED
            next_epoch, last = known.producer_epoch, known.last_producer_epoch  # a retry of what was answered
        elif expected is not None:
            last = known.producer_epoch
        return self._begin_session(Producer(known.producer_id, next_epoch), last, timeout_ms, now_ms)

    def _may_go_on(self, expected: Producer) -> bool:
        known = self.metadata
        return (
            known.producer_epoch == NO_PRODUCER_EPOCH
            or expected.producer_id == known.producer_id
            or (expected.producer_id == known.last_producer_id and expected.epoch >= LAST_EPOCH)
        )

    def _begin_session(self, producer: Producer, last_epoch: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
        return self._prepare(
            TransactionState.EMPTY,
            producer_id=producer.producer_id,
            last_producer_id=self.metadata.producer_id,
            producer_epoch=producer.epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            started_ms=NOT_STARTED,
            updated_ms=now_ms,
        )

    # --- AddPartitionsToTxn, AddOffsetsToTxn ---

    def add_partitions(self, producer: Producer, partitions: Collection[TopicPartition], now_ms: int) -> Decision:
        """Make partitions part of the transaction; the first ones begin it."""
        known = self.metadata
        error = self._not_its_producer(producer)
        if error:
            return error
        if self._is_busy() or known.state.is_prepared:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if known.state is TransactionState.ONGOING and known.partitions.issuperset(partitions):
            return ErrorCode.NONE
        return self._prepare(
            TransactionState.ONGOING,
            partitions=known.partitions | frozenset(partitions),
            started_ms=now_ms if known.state.is_idle else known.started_ms,
            updated_ms=now_ms,
        )

    def verify(self, producer: Producer, partitions: Collection[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
        """Say of partitions whether they are part of the transaction that is open (KIP-890)."""
        error = self._not_its_producer(producer)
        if not error and self.metadata.state.is_prepared:
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if error:
            return dict.fromkeys(partitions, error)
        missing = ErrorCode.TRANSACTION_ABORTABLE
        return {each: ErrorCode.NONE if each in self.metadata.partitions else missing for each in partitions}

    # --- EndTxn, time-outs ---

    def end(self, producer: Producer, *, commit: bool, from_client: bool = True, now_ms: int) -> Decision:
        """Decide how the transaction ends; `from_client` is false for the abort that follows a fence."""
        known = self.metadata
        error = self._not_its_producer(producer) if from_client else self._is_older(producer)
        if error:
            return error
        fences = self.pending is TransactionState.PREPARE_EPOCH_FENCE
        if self._is_busy() and not fences:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if known.state is not TransactionState.ONGOING:
            return self._ended_before(commit=commit)
        if fences:
            self.pending = None
            self.metadata = replace(known, producer_epoch=producer.epoch, last_producer_epoch=NO_PRODUCER_EPOCH)
        decided = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
        return self._prepare(decided, updated_ms=now_ms)

    def _ended_before(self, *, commit: bool) -> ErrorCode:
        """Return the answer to EndTxn without an open transaction: the same end is fine, the other one is not."""
        prepared, completed = (
            (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
            if commit
            else (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)
        )
        state = self.metadata.state
        if state is prepared:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if state is completed or not (state is TransactionState.EMPTY or self.rules.ended_transactions_stay_ended):
            return ErrorCode.NONE
        return ErrorCode.INVALID_TXN_STATE

    def fence(self) -> TransactionMetadata:
        """Raise the epoch of an open transaction, so that its producer is refused from then on (KIP-588)."""
        known = self.metadata
        stays = self.fence_failed or not self.rules.fences_raise_the_epoch
        raised = known.producer_epoch if stays else known.producer_epoch + 1
        return self._prepare(
            TransactionState.PREPARE_EPOCH_FENCE, producer_epoch=raised, last_producer_epoch=NO_PRODUCER_EPOCH
        )

    def has_timed_out(self, now_ms: int) -> bool:
        """Whether the transaction has been open for longer than its producer allows."""
        known = self.metadata
        is_open = known.state is TransactionState.ONGOING and self.pending is None
        return is_open and known.started_ms + known.timeout_ms < now_ms

    # --- markers, expiry ---

    def marked(self, partitions: Collection[TopicPartition]) -> None:
        """Note that markers are in these partitions, or are not needed there any more."""
        if not self.metadata.state.is_prepared:
            raise ImpossibleTransition(f"{self.transactional_id} is {self.metadata.state} and has markers")
        self.metadata = replace(self.metadata, partitions=self.metadata.partitions - frozenset(partitions))

    def complete(self, now_ms: int) -> TransactionMetadata:
        """Return what is to be stored when all markers are written."""
        commits = self.metadata.state is TransactionState.PREPARE_COMMIT
        completed = TransactionState.COMPLETE_COMMIT if commits else TransactionState.COMPLETE_ABORT
        self.fence_failed = False
        return self._prepare(completed, partitions=frozenset(), updated_ms=now_ms)

    def expire(self, now_ms: int, *, after_ms: int) -> TransactionMetadata | None:
        """Return the last state of a transactional id that nothing has used for so long, or None."""
        known = self.metadata
        if self.pending is not None or not known.state.is_idle or known.updated_ms > now_ms - after_ms:
            return None
        return self._prepare(TransactionState.DEAD, partitions=frozenset())

    # --- how it was stored ---

    def stored(self, target: TransactionMetadata) -> None:
        """What was to be stored is: from now on it counts."""
        if self._is_busy() and self.pending is not target.state:
            raise ImpossibleTransition(f"{self.transactional_id} becomes {self.pending}, but {target} was stored")
        self.pending = None
        is_session = target.state is TransactionState.EMPTY  # Kafka stores no start, and shows the last one
        self.metadata = replace(target, started_ms=self.metadata.started_ms) if is_session else target

    def not_stored(self, *, fenced: bool) -> None:
        """What was to be stored is not, and does not count; `fenced` says that it was a raised epoch."""
        self.pending = None
        if fenced:
            self.fence_failed = True

    def _prepare(self, state: TransactionState, **changes: object) -> TransactionMetadata:
        """Return the next state of the transaction, which is pending from now on."""
        known = self.metadata
        if self._is_busy():
            raise ImpossibleTransition(f"{self.transactional_id} becomes {self.pending}, and was to become {state}")
        if known.state not in PREVIOUS[state]:
            raise ImpossibleTransition(f"{self.transactional_id} is {known.state} and cannot become {state}")
        self.pending = state
        return replace(known, state=state, **changes)  # type: ignore[arg-type]

    def _is_busy(self) -> bool:
        return self.pending is not None and self.rules.transitions_exclude_each_other

    def _not_its_producer(self, producer: Producer) -> ErrorCode:
        known = self.metadata
        if producer.producer_id != known.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if producer.epoch != known.producer_epoch and self.rules.transactional_producers_are_fenced:
            return ErrorCode.PRODUCER_FENCED
        return ErrorCode.NONE

    def _is_older(self, producer: Producer) -> ErrorCode:
        known = self.metadata
        if producer.producer_id != known.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return ErrorCode.PRODUCER_FENCED if producer.epoch < known.producer_epoch else ErrorCode.NONE

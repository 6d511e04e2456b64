"""What a coordinator knows of one transactional id: the state of its transaction, its producer, its partitions.

The states and their ids are those of Kafka's `TransactionState`; what is stored of a transaction is its
`TransactionMetadata`.
"""

from enum import StrEnum

from harness.values import TopicPartition, value_class

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NOT_STARTED = -1
"""As the start of a transaction: none has begun."""
LAST_EPOCH = 32_766
"""The largest epoch that a producer gets; the one after it is left for fencing (`isEpochExhausted`)."""


class TransactionState(StrEnum):
    """The states, by Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    """The transactional id has expired and its tombstone is being written."""
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """The epoch is being raised to fence the producer; it is never stored."""

    @property
    def state_id(self) -> int:
        """The state in a stored record."""
        return _IDS[self]

    @classmethod
    def of_id(cls, state_id: int) -> "TransactionState":
        """Return the state of a stored record.

        Raises:
            ValueError: no state has this id.
        """
        for state, known in _IDS.items():
            if known == state_id:
                return state
        raise ValueError(f"no transaction state has the id {state_id}")

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided, and markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open: the next one may begin, and the transactional id may expire."""
        return self in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


_IDS = {state: number for number, state in enumerate(TransactionState)}
PREVIOUS: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: frozenset(
        {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}
    ),
    TransactionState.ONGOING: frozenset(
        {
            TransactionState.ONGOING,
            TransactionState.EMPTY,
            TransactionState.COMPLETE_COMMIT,
            TransactionState.COMPLETE_ABORT,
        }
    ),
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: frozenset({TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE}),
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: frozenset(
        {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}
    ),
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
}
"""The states that each state may follow."""


@value_class(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """What counts for one transactional id, or what is to count once it is stored."""

    producer_id: int
    last_producer_id: int = NO_PRODUCER_ID
    """The one before a rotation; not stored."""
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The one before the last InitProducerId of the same producer; not stored."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    """What the transaction has written to, without those whose marker is written."""
    started_ms: int = NOT_STARTED
    updated_ms: int

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the next InitProducerId needs a new producer id."""
        return self.producer_epoch >= LAST_EPOCH

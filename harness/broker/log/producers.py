"""What one log remembers of idempotent producers: which batches it holds already, and which one must come next.

The rules are those of Kafka's `ProducerStateManager` and `ProducerAppendInfo` (KIP-98, since 2.5 with KIP-360: of a
producer that is not known, any sequence number is taken). Nothing is written beside the log: the state is what the
headers of its batches say, read again after a restart or a truncation. A snapshot would be one more file that can be
wrong after a power loss, and would save reading 61 bytes a batch, once, when such a producer next comes.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from harness.broker.log.batch import BatchHeader
from harness.broker.log.validation import InvalidRecords
from harness.broker.wire.error_codes import ErrorCode

NO_PRODUCER_EPOCH = -1
REMEMBERED_BATCHES = 5
"""As many as a producer may have in flight (`ProducerStateEntry.NUM_BATCHES_TO_RETAIN`)."""
_SEQUENCES = 2**31


class RememberedBatch(NamedTuple):
    """A batch that a producer has written."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int


@dataclass(slots=True)
class ProducerState:
    """One producer: its epoch, and its last batches in that epoch."""

    epoch: int
    batches: deque[RememberedBatch]


class ProducerStates:
    """All producers with an id that wrote to one log."""

    __slots__ = ("_by_id", "_remembered")

    def __init__(self, written: Iterable[BatchHeader] = (), remembered: int = REMEMBERED_BATCHES) -> None:
        self._remembered = remembered
        self._by_id: dict[int, ProducerState] = {}
        for header in written:
            self.note(header)

    def __len__(self) -> int:
        """How many producers are remembered."""
        return len(self._by_id)

    def __contains__(self, producer_id: int) -> bool:
        """Whether a producer is remembered."""
        return producer_id in self._by_id

    def __getitem__(self, producer_id: int) -> ProducerState:
        """Return what is known of one producer."""
        return self._by_id[producer_id]

    def remembered(self) -> set[int]:
        """Return the base offsets of the batches by which a retry or a gap is recognised."""
        return {batch.base_offset for state in self._by_id.values() for batch in state.batches}

    def find_duplicate(self, header: BatchHeader) -> RememberedBatch | None:
        """Return the remembered batch that has the same producer, epoch and sequence numbers."""
        state = self._by_id.get(header.producer_id)
        if state is None or state.epoch != header.producer_epoch:
            return None
        sequences = (header.base_sequence, last_sequence(header))
        return next((batch for batch in state.batches if batch[:2] == sequences), None)

    def check(self, header: BatchHeader) -> None:
        """Return when a producer may write this batch now.

        Raises:
            InvalidRecords: its epoch is over, or the batch does not follow the last one.
        """
        state = self._by_id.get(header.producer_id)
        if state is None or state.epoch == NO_PRODUCER_EPOCH:
            return
        if header.producer_epoch < state.epoch:
            raise InvalidRecords(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has epoch {state.epoch}, the batch {header.producer_epoch}",
            )
        same_epoch = header.producer_epoch == state.epoch
        expected = (state.batches[-1].last_sequence + 1) % _SEQUENCES if same_epoch else 0
        if header.base_sequence != expected:
            raise InvalidRecords(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} must go on with sequence {expected}, not {header.base_sequence}",
            )

    def note(self, header: BatchHeader) -> None:
        """Remember a batch that is in the log; one without a producer id tells nothing."""
        if header.producer_id < 0:
            return
        state = self._by_id.get(header.producer_id)
        if state is None or state.epoch != header.producer_epoch:
            state = self._by_id[header.producer_id] = ProducerState(
                header.producer_epoch, deque(maxlen=self._remembered)
            )
        state.batches.append(
            RememberedBatch(
                header.base_sequence,
                last_sequence(header),
                header.base_offset,
                header.last_offset,
                header.max_timestamp,
            )
        )

    def reaches(self, offset: int) -> bool:
        """Whether a batch with `offset` or a later one is remembered."""
        return any(state.batches[-1].last_offset >= offset for state in self._by_id.values())

    def expire(self, before_ms: int) -> int:
        """Forget the producers whose last batch is of `before_ms` or older; return how many."""
        old = [key for key, state in self._by_id.items() if state.batches[-1].timestamp_ms <= before_ms]
        for producer_id in old:
            del self._by_id[producer_id]
        return len(old)


def last_sequence(header: BatchHeader) -> int:
    """Return the sequence number of a batch's last record; after the largest comes 0."""
    return (header.base_sequence + header.last_offset_delta) % _SEQUENCES

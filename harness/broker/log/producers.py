"""A log's producers with an id: their last batches, the next expected sequence, and their open transactions.

The rules are those of Kafka's `ProducerStateManager` and `ProducerAppendInfo` (KIP-98, since 2.5 with KIP-360: of a
producer that is not known, any sequence number is taken). The state is what the batches of the log say, read again
after a restart or a truncation from the latest snapshot on (`producer_history`).
"""

from collections import deque
from collections.abc import ItemsView, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from harness.broker.log.batch import BatchHeader
from harness.broker.log.markers import Marker
from harness.broker.log.transaction_index import AbortedTransaction
from harness.broker.log.validation import InvalidRecords
from harness.broker.rules import RIGHT, ProtocolRules
from harness.broker.wire.error_codes import ErrorCode

NO_PRODUCER_EPOCH = -1
NO_COORDINATOR_EPOCH = -1
NEVER_MS = -1
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


class WrittenMarker(NamedTuple):
    """A marker in the log, and the transaction that it ended."""

    header: BatchHeader
    marker: Marker
    first_offset: int | None
    """Start of the transaction; None when the producer had none open here."""
    stable_offset: int
    """Start of the first transaction that is still open; after the marker when none is."""

    def aborted(self) -> AbortedTransaction | None:
        """Return the entry of the transaction index; None when nothing was aborted."""
        if self.first_offset is None or self.marker.commits:
            return None
        offset = self.header.base_offset
        return AbortedTransaction(self.header.producer_id, self.first_offset, offset, self.stable_offset)


@dataclass(slots=True)
class ProducerState:
    """One producer: its epoch, its last batches in that epoch, and its open transaction."""

    epoch: int
    batches: deque[RememberedBatch]
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    """Of the coordinator of the last marker."""
    timestamp_ms: int = NEVER_MS
    """The largest timestamp of the last batch or marker."""
    transaction_start: int | None = None
    """The first offset of the open transaction."""


class ProducerStates:
    """All producers with an id that wrote to one log."""

    __slots__ = ("_by_id", "_end", "_open", "_remembered", "_rules", "_undecided")

    def __init__(
        self,
        written: Iterable[BatchHeader] = (),
        remembered: int = REMEMBERED_BATCHES,
        rules: ProtocolRules = RIGHT,
    ) -> None:
        self._remembered = remembered
        self._rules = rules
        self._by_id: dict[int, ProducerState] = {}
        self._open: dict[int, int] = {}
        """First offsets of open transactions, ascending, with their producers."""
        self._undecided: dict[int, int] = {}
        """First offsets of ended transactions, with those of their markers, which may not be committed yet."""
        self._end = 0
        """After the last batch of a producer."""
        for header in written:
            self.note(header)

    def __len__(self) -> int:
        """How many producers are remembered."""
        return len(self._by_id)

    def __contains__(self, producer_id: int) -> bool:
        """Whether a producer is remembered."""
        return producer_id in self._by_id

    def __getitem__(self, producer_id: int) -> ProducerState:
        """Return the state of one producer."""
        return self._by_id[producer_id]

    def get(self, producer_id: int) -> ProducerState | None:
        """Return the state of one producer, if known."""
        return self._by_id.get(producer_id)

    def items(self) -> ItemsView[int, ProducerState]:
        """Return all producers with their ids."""
        return self._by_id.items()

    @property
    def open_transactions(self) -> Mapping[int, int]:
        """The first offsets of open transactions, ascending, with their producers."""
        return self._open

    def restore(self, states: Mapping[int, ProducerState], end_offset: int) -> None:
        """Set the state from a snapshot of everything before an offset."""
        self._by_id = {
            producer_id: replace(state, batches=deque(state.batches, maxlen=self._remembered))
            for producer_id, state in states.items()
        }
        starts = {state.transaction_start: key for key, state in states.items() if state.transaction_start is not None}
        self._open = dict(sorted(starts.items())) if self._rules.snapshots_keep_open_transactions else {}
        self._end = end_offset

    def in_snapshot(self, state: ProducerState) -> RememberedBatch | None:
        """Return the batch of a producer that a snapshot has: the last one, if there is any."""
        if not state.batches:
            return None
        return state.batches[-1 if self._rules.snapshots_have_last_batches else 0]

    def remembered(self) -> set[int]:
        """Return the base offsets of the batches that show a retry or a gap."""
        return {batch.base_offset for state in self._by_id.values() for batch in state.batches}

    def without_batches(self) -> set[tuple[int, int]]:
        """Return id and epoch of the producers known only by a marker."""
        return {(producer_id, state.epoch) for producer_id, state in self._by_id.items() if not state.batches}

    def has_open_transaction(self, producer_id: int) -> bool:
        """Whether a producer has written in a transaction that no marker has ended."""
        state = self._by_id.get(producer_id)
        return state is not None and state.transaction_start is not None

    def oldest_open_ms(self) -> int | None:
        """Return the last write of the producer of the first open transaction; None when none is open."""
        producer_id = next(iter(self._open.values()), None)
        state = None if producer_id is None else self._by_id.get(producer_id)
        return None if state is None else state.timestamp_ms

    @property
    def has_unstable(self) -> bool:
        """Whether a transaction is open, or its marker is not known to be committed."""
        return bool(self._open or self._undecided)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the start of the first transaction that is open, or whose marker is not committed; None without any.

        A committed marker is dropped: its transaction is stable from then on (`firstUnstableOffset`).
        """
        if not self.has_unstable:
            return None
        waits = self._rules.ended_transactions_wait_for_replicas
        self._undecided = {first: last for first, last in self._undecided.items() if waits and last >= high_watermark}
        firsts = [*self._undecided, *self._first_open()]
        return min(firsts) if firsts else None

    def find_duplicate(self, header: BatchHeader) -> RememberedBatch | None:
        """Return the remembered batch with the same producer, epoch and sequence numbers."""
        state = self._by_id.get(header.producer_id)
        if state is None or state.epoch != header.producer_epoch:
            return None
        sequences = (header.base_sequence, last_sequence(header))
        return next((batch for batch in state.batches if batch[:2] == sequences), None)

    def check(self, header: BatchHeader, *, numbered: bool = True) -> None:
        """Return when a producer may write this batch now; without `numbered` its sequence is not checked.

        Raises:
            InvalidRecords: its epoch is fenced, the batch does not follow the last one, or is not in its transaction.
        """
        state = self._by_id.get(header.producer_id)
        if state is None or state.epoch == NO_PRODUCER_EPOCH:
            return
        self._check_epoch(header, state)
        if numbered:
            _check_sequence(header, state)
        if state.transaction_start is not None and not header.is_transactional:
            raise InvalidRecords(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has had a transaction open since offset {state.transaction_start}",
            )

    def check_marker(self, header: BatchHeader, marker: Marker) -> None:
        """Return when a marker may be written now.

        Raises:
            InvalidRecords: the producer's epoch is fenced, or a newer coordinator has written a marker.
        """
        state = self._by_id.get(header.producer_id)
        if state is None:
            return
        self._check_epoch(header, state)
        if marker.coordinator_epoch < state.coordinator_epoch and self._rules.markers_are_fenced:
            raise InvalidRecords(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"producer {header.producer_id} has a marker of coordinator epoch {state.coordinator_epoch},"
                f" this one is of {marker.coordinator_epoch}",
            )

    def note(self, header: BatchHeader, marker: Marker | None = None) -> WrittenMarker | None:
        """Remember a batch that is in the log; one without a producer id is ignored.

        Of a control batch `marker` is its content; return the ended transaction.
        """
        if header.producer_id < 0 or (header.is_control and marker is None):
            return None
        state = self._by_id.get(header.producer_id)
        if state is None:
            state = self._by_id[header.producer_id] = ProducerState(
                header.producer_epoch, deque(maxlen=self._remembered)
            )
        elif state.epoch != header.producer_epoch:
            state.epoch = header.producer_epoch
            state.batches.clear()
        state.timestamp_ms = header.max_timestamp
        self._end = header.last_offset + 1
        if marker is not None:
            return self._ended(state, header, marker)
        state.batches.append(
            RememberedBatch(
                header.base_sequence,
                last_sequence(header),
                header.base_offset,
                header.last_offset,
                header.max_timestamp,
            )
        )
        if state.transaction_start is None and header.is_transactional:
            state.transaction_start = header.base_offset
            self._open[header.base_offset] = header.producer_id
        return None

    def reaches(self, offset: int) -> bool:
        """Whether a batch with `offset` or a later one was added."""
        return self._end > offset

    def expire(self, before_ms: int) -> list[int]:
        """Drop producers without a write after `before_ms` and without an open transaction; return their ids."""
        spared = self._rules.open_transactions_do_not_expire
        old = [
            producer_id
            for producer_id, state in self._by_id.items()
            if self._written_ms(state) <= before_ms and not (spared and state.transaction_start is not None)
        ]
        for producer_id in old:
            del self._by_id[producer_id]
        return old

    def _written_ms(self, state: ProducerState) -> int:
        """Return when a producer was written for last."""
        if self._rules.markers_keep_producers:
            return state.timestamp_ms
        return state.batches[-1].timestamp_ms if state.batches else NEVER_MS

    def _ended(self, state: ProducerState, header: BatchHeader, marker: Marker) -> WrittenMarker:
        first = state.transaction_start
        if first is not None:
            self._open.pop(first, None)
            self._undecided[first] = header.base_offset
            state.transaction_start = None
        state.coordinator_epoch = marker.coordinator_epoch
        return WrittenMarker(header, marker, first, next(self._first_open(), header.base_offset + 1))

    def _first_open(self) -> Iterator[int]:
        return islice(self._open, 1)

    def _check_epoch(self, header: BatchHeader, state: ProducerState) -> None:
        if header.producer_epoch < state.epoch and self._rules.old_producer_epochs_are_refused:
            raise InvalidRecords(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has epoch {state.epoch}, the batch {header.producer_epoch}",
            )


def _check_sequence(header: BatchHeader, state: ProducerState) -> None:
    follows = header.producer_epoch == state.epoch and state.batches
    expected = (state.batches[-1].last_sequence + 1) % _SEQUENCES if follows else 0
    if header.base_sequence != expected:
        raise InvalidRecords(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} must continue with sequence {expected}, not {header.base_sequence}",
        )


def last_sequence(header: BatchHeader) -> int:
    """Return the sequence number of a batch's last record; after the largest comes 0."""
    return (header.base_sequence + header.last_offset_delta) % _SEQUENCES

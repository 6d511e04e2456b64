"""A log's knowledge of its producers over its whole life: updated by batches, kept in snapshots, read again if needed.

After a start or a truncation the state is that of the latest snapshot, without the producers that have expired
(`ProducerStateManager.loadFromSnapshot`), and of the batches after it. A snapshot has one
batch of each producer; the four before it, by which a late retry is recognised, are read from the log when a batch
would be refused without them.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from harness.broker.log.batch import BatchHeader, Buffer
from harness.broker.log.markers import Marker, read_marker
from harness.broker.log.producer_snapshots import ProducerSnapshots
from harness.broker.log.producers import REMEMBERED_BATCHES, ProducerStates, RememberedBatch, WrittenMarker
from harness.broker.log.segment import Segment
from harness.broker.log.storage import Storage
from harness.broker.log.validation import InvalidRecords
from harness.broker.log.verification import Verification, Verifications
from harness.broker.rules import ProtocolRules
from harness.broker.wire.error_codes import ErrorCode

_LAST = 1 << 63
_BATCHES_A_STEP = 1000


class ProducerHistory:
    """The producers of one log."""

    __slots__ = ("_expired_ms", "_incomplete", "_remembered", "_rules", "_snapshots", "states", "verifications")

    def __init__(self, storage: Storage, folder: str, rules: ProtocolRules, expired_ms: Callable[[], int]) -> None:
        self._rules = rules
        self._expired_ms = expired_ms
        self._remembered = REMEMBERED_BATCHES if rules.producer_batches_are_remembered else 1
        self._snapshots = ProducerSnapshots(storage, folder)
        self.states = ProducerStates((), self._remembered, rules)
        self.verifications = Verifications()
        self._incomplete = False
        """Whether the log may hold batches before the last one of each producer that are not loaded."""

    # --- appending ---

    def admit(
        self,
        sent: BatchHeader,
        marker: Marker | None,
        verification: Verification | None,
        segments: Sequence[Segment],
        *,
        internal: bool,
        verified_only: bool,
    ) -> RememberedBatch | None:
        """Return the place of a duplicate of a client's batch; None when the batch may be written.

        An `internal` batch comes from a coordinator and has no sequence. With `verified_only` a transaction begins only
        with a pending `verification` (`transaction.partition.verification.enable`).

        Raises:
            InvalidRecords: it may not.
        """
        if marker is not None:
            self.states.check_marker(sent, marker)
            return None
        duplicate = None if internal else self.states.find_duplicate(sent)
        if duplicate is not None:
            return duplicate
        if verified_only and sent.is_transactional:
            self._check_verified(sent, verification)
        try:
            if not internal:
                self._check_lowest(sent)
            self.states.check(sent, numbered=not internal)
        except InvalidRecords as refused:
            if refused.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._incomplete:
                deque(self.recall(segments), 0)
                duplicate = self.states.find_duplicate(sent)
                if duplicate is not None:
                    return duplicate
            raise
        return None

    def written(self, data: Buffer, headers: Sequence[BatchHeader], segment: Segment) -> list[WrittenMarker]:
        """Add batches at the end of a segment; return the markers among them.

        Raises:
            OSError: the transaction index could not be written.
        """
        markers: list[WrittenMarker] = []
        view, position = memoryview(data), 0
        for header in headers:
            end = position + header.size
            if header.producer_id >= 0:
                marker = read_marker(view[position:end], header) if header.is_control else None
                ended = self.states.note(header, marker)
                if header.is_transactional:
                    self.verifications.end(header.producer_id)
                if ended is not None:
                    markers.append(ended)
                    self._index(ended, segment)
            position = end
        return markers

    def rolled(self, base_offset: int) -> None:
        """Write a snapshot: a segment begins at `base_offset`; raises OSError."""
        self._snapshots.take(base_offset, self.states)

    def closing(self, end_offset: int) -> None:
        """Write a snapshot of everything, as at a clean stop; raises OSError."""
        self._snapshots.take(end_offset, self.states, durably=True)

    def recall(self, segments: Sequence[Segment]) -> Iterator[None]:
        """Load, in small steps and while batches are appended, the batches that the snapshot lacks."""
        if not self._incomplete:
            return
        held = ProducerStates((), self._remembered)
        for segment in segments:
            for number, (header, marker) in enumerate(segment.written(segment.base_offset)):
                held.note(header, marker)
                if number % _BATCHES_A_STEP == 0:
                    yield
        for producer_id, state in self.states.items():
            if producer_id in held and held[producer_id].epoch == state.epoch:
                first = state.batches[0].base_offset if state.batches else _LAST
                earlier = [batch for batch in held[producer_id].batches if batch.base_offset < first]
                state.batches = deque([*earlier, *state.batches], self._remembered)
        self._incomplete = False

    # --- starting, truncating, deleting ---

    def load(self, segments: Sequence[Segment], index_from: int) -> list[int]:
        """Load the state of an open log; rebuild the index of segments from `index_from` on.

        Return the ids of producers in the snapshot that have expired.

        Raises:
            OSError: the disk refused.
        """
        first, believed = segments[0].base_offset, min(index_from, segments[-1].next_offset)
        self._snapshots.remove(believed + 1, _LAST)
        self._snapshots.remove(0, first - 1)
        self._snapshots.keep_only({segment.base_offset for segment in segments})
        self.states = ProducerStates((), self._remembered, self._rules)
        self._incomplete = False
        rebuilt = [segment for segment in segments if segment.base_offset >= index_from]
        for segment in rebuilt:
            segment.aborted.reset()
        expired: list[int] = []
        if not self._rules.producer_state_outlives_restart:
            return expired
        position = first
        snapshot = self._snapshots.load_latest(believed, self.states)
        if snapshot is not None:
            position = snapshot
            expired = self.states.expire(self._expired_ms())
            self._incomplete = position > first and len(self.states) > 0
        for segment in segments:
            if segment.next_offset <= position or (snapshot is not None and not self._rules.snapshots_are_continued):
                continue
            for header, marker in segment.written(position):
                ended = self.states.note(header, marker)
                if ended is not None and segment in rebuilt and self._rules.transaction_index_is_rebuilt:
                    self._index(ended, segment)
        return expired

    def truncating(self, offset: int) -> bool:
        """Drop the snapshots after an offset, before the log is truncated there; return whether to load the state."""
        self._snapshots.remove(offset + 1, _LAST)
        return self._incomplete or self.states.reaches(offset)

    def starting_over(self) -> None:
        """Drop everything: the log starts again."""
        self._snapshots.remove(0, _LAST)
        self.states = ProducerStates((), self._remembered, self._rules)
        self._incomplete = False

    def segments_deleted(self, base_offsets: Sequence[int]) -> None:
        """Remove the snapshots of removed segments."""
        for offset in base_offsets:
            self._snapshots.remove(offset, offset)

    def expire(self, before_ms: int) -> list[int]:
        """Drop producers without a write since, and verifications as old; return the ids of these producers."""
        self.verifications.expire(before_ms)
        return self.states.expire(before_ms)

    def _index(self, ended: WrittenMarker, segment: Segment) -> None:
        entry = ended.aborted()
        if entry is not None:
            segment.aborted.append(entry)

    def _check_verified(self, sent: BatchHeader, verification: Verification | None) -> None:
        known = self.verifications.get(sent.producer_id)
        is_this_one = verification is not None and known is verification
        late = verification is not None and not self._rules.late_verifications_count_for_nothing
        if not (self.states.has_open_transaction(sent.producer_id) or is_this_one or late):
            raise InvalidRecords(
                ErrorCode.INVALID_TXN_STATE,
                f"the coordinator has not said that a transaction of producer {sent.producer_id} has this partition",
            )

    def _check_lowest(self, sent: BatchHeader) -> None:
        known = self.verifications.get(sent.producer_id)
        if known is not None and sent.base_sequence > known.lowest_sequence:
            raise InvalidRecords(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {sent.producer_id} has sent sequence {known.lowest_sequence} before {sent.base_sequence}",
            )

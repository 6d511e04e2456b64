"""Which transactions does a cleaning come past, and when may a marker go (Kafka's `CleanedTransactionMetadata`)?

Records of aborted transactions go. A marker stays while a batch of its transaction does, since it says how that ended;
after that it is kept for `delete.retention.ms` as tombstones are (KIP-534).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from harness.broker.log.batch import BatchHeader
from harness.broker.log.markers import Marker
from harness.broker.log.transaction_index import AbortedTransaction, TransactionIndex
from harness.broker.rules import RIGHT, ProtocolRules


@dataclass(slots=True)
class _Aborted:
    """An aborted transaction whose marker is still to come."""

    entry: AbortedTransaction
    has_batches: bool = False


@dataclass(slots=True, kw_only=True)
class CleanedTransactions:
    """The transactions at the place where a cleaning is; batches come in the order of the log."""

    rules: ProtocolRules = RIGHT
    index: TransactionIndex | None = None
    """Of the segment that is being made: what is still aborted there."""
    _expected: list[tuple[int, AbortedTransaction]] = field(default_factory=list)
    _aborted: dict[int, _Aborted] = field(default_factory=dict)
    _committed: set[int] = field(default_factory=set)
    """Producers with batches of a transaction that is not known to be aborted."""

    def expect(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Take note of aborted transactions of the part of the log that comes next."""
        for entry in aborted:
            heappush(self._expected, (entry.first_offset, entry))

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch is part of an aborted transaction."""
        self._reach(header.last_offset)
        if not header.is_transactional:
            return False
        transaction = self._aborted.get(header.producer_id)
        if transaction is None:
            self._committed.add(header.producer_id)
            return False
        transaction.has_batches = True
        return True

    def ends_nothing(self, header: BatchHeader, marker: Marker | None) -> bool:
        """Whether no batch is left of the transaction that a control batch ends; of one that stays the index tells."""
        self._reach(header.last_offset)
        if marker is None:  # emptied by an earlier cleaning
            return True
        if marker.commits:
            had_batches = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
        else:
            transaction = self._aborted.pop(header.producer_id, None)
            had_batches = transaction is not None and transaction.has_batches
            if transaction is not None and had_batches and self.index is not None:
                self.index.append(transaction.entry)
        return not (had_batches and self.rules.markers_outlive_their_records)

    def _reach(self, offset: int) -> None:
        while self._expected and self._expected[0][0] <= offset:
            _, entry = heappop(self._expected)
            self._aborted.setdefault(entry.producer_id, _Aborted(entry))

"""What the log of a partition of `__transaction_state` says of its transactional ids."""

import logging
from dataclasses import dataclass, field

from harness.broker.transactions.metadata import TransactionMetadata
from harness.broker.transactions.records import decode_chunk

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class TransactionReplay:
    """The last record of each transactional id."""

    partition: int
    latest: dict[str, TransactionMetadata] = field(default_factory=dict)
    """Without those whose last record is a tombstone."""

    def take(self, data: bytes) -> int:
        """Read the next batches of the log; return the offset after them.

        Raises:
            ValueError, struct.error: a batch is not what a coordinator writes.
        """
        chunk = decode_chunk(data)
        for offset, why in chunk.unreadable:
            _log.error("load.unreadable partition=%d offset=%d why=%s", self.partition, offset, why)
        for record in chunk.records:
            self.latest.pop(record.transactional_id, None)
            if record.value is not None:
                self.latest[record.transactional_id] = record.value
        return chunk.next_offset

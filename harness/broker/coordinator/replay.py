"""What the log of a partition of `__consumer_offsets` says of its groups. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.broker.coordinator.records import (
    NO_PRODUCER_ID,
    GroupRecord,
    OffsetKey,
    OffsetRecord,
    TransactionOutcome,
    decode_chunk,
)
from harness.broker.rules import RIGHT, ProtocolRules


@dataclass(slots=True)
class GroupReplay:
    """The last record of each key, and the offsets of open transactions."""

    rules: ProtocolRules = RIGHT
    _latest: dict[OffsetKey | str, OffsetRecord | GroupRecord] = field(default_factory=dict)
    """Not all records: a log holds far more than groups do."""
    _held: dict[int, dict[OffsetKey, OffsetRecord]] = field(default_factory=dict)
    """By producer id."""

    def take(self, data: bytes) -> int:
        """Read the next batches of the log; return the offset after them.

        Raises:
            ValueError, struct.error: a batch or record is not what a coordinator writes.
        """
        chunk = decode_chunk(data)
        for record in chunk.records:
            if isinstance(record, GroupRecord):
                self._latest[record.group] = record
            elif isinstance(record, TransactionOutcome):
                self._decide(record)
            elif record.producer_id != NO_PRODUCER_ID:
                self._held.setdefault(record.producer_id, {})[record.key] = record
            elif self.rules.loads_keep_the_last_position or record.key not in self._latest:
                self._latest[record.key] = record
        return chunk.next_offset

    @property
    def records(self) -> Iterable[OffsetRecord | GroupRecord]:
        """What counts."""
        return self._latest.values()

    @property
    def held(self) -> list[OffsetRecord]:
        """The offsets that wait for the end of their transactions."""
        return [record for offsets in self._held.values() for record in offsets.values() if record.value is not None]

    def _decide(self, outcome: TransactionOutcome) -> None:
        """End a transaction: its offsets count, unless a later record has replaced them."""
        ended = self._held.pop(outcome.producer_id, {})
        for key, record in ended.items() if outcome.commits else ():
            known = self._latest.get(key)
            if not isinstance(known, OffsetRecord) or known.log_offset < record.log_offset:
                self._latest[key] = record

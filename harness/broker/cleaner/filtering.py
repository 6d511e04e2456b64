"""Filters one batch, and builds its new bytes (Kafka's `MemoryRecords.filterTo`, `Cleaner`)."""

from collections.abc import Container
from dataclasses import dataclass, field

from harness.broker.cleaner.offset_map import OffsetMap
from harness.broker.cleaner.raw_records import RawRecord, raw_records, with_base_timestamp
from harness.broker.cleaner.transactions import CleanedTransactions
from harness.broker.log.batch import DELETE_HORIZON, BatchHeader, batch_with, records_section
from harness.broker.log.compression import NO_COMPRESSION, compress
from harness.broker.log.markers import read_marker
from harness.broker.rules import RIGHT, ProtocolRules
from harness.broker.wire.sentinels import NO_TIMESTAMP

_CODEC = 0x07


@dataclass(slots=True, kw_only=True)
class Filter:
    """Decides for one cleaning of one log; counts what it has read."""

    offsets: OffsetMap
    needed: Container[int]
    """Base offsets of the batches with the state of producers; such a batch stays, even if empty."""
    needed_markers: Container[tuple[int, int]] = ()
    """Ids and epochs of producers whose state is in markers alone; these stay, even if empty."""
    transactions: CleanedTransactions = field(default_factory=CleanedTransactions)
    now_ms: int
    delete_retention_ms: int
    rules: ProtocolRules = RIGHT
    records_read: int = 0
    records_written: int = 0
    without_key: int = 0

    def apply(self, batch: memoryview, header: BatchHeader) -> bytes | memoryview | None:
        """Return the new batch; None when nothing of it stays.

        Its offsets, epochs and producer stay the same. A batch with a tombstone gets the time at which it may be
        removed. So does a marker without remaining records; records of aborted transactions are removed at once.

        Raises:
            MalformedRecords: the records cannot be decompressed, or are inconsistent.
        """
        if header.is_control:
            return self._control(batch, header)
        if self.transactions.is_aborted(header):
            self.records_read += header.records_count
            return self._without_records(header)
        if self.offsets.none_is_last(header.base_offset, header.last_offset):
            self.records_read += header.records_count
            return self._without_records(header)
        payload = records_section(batch, header)
        records = raw_records(payload, header.records_count)
        retained = [record for record in records if self._keeps(record, header)]
        self.records_read += len(records)
        self.records_written += len(retained)
        if not retained:
            return self._without_records(header)
        horizon_ms = self._horizon_ms(header)
        if horizon_ms is None and not all(record.has_value for record in retained):
            horizon_ms = self.now_ms + self.delete_retention_ms
        elif len(retained) == len(records):
            return batch
        own_times = self.rules.cleaned_batches_have_own_times
        return _rewritten(header, payload, retained, horizon_ms, own_times=own_times)

    def _control(self, batch: memoryview, header: BatchHeader) -> bytes | memoryview | None:
        self.records_read += header.records_count
        ends_nothing = self.transactions.ends_nothing(header, read_marker(batch, header))
        horizon_ms = header.delete_horizon_ms
        is_over = ends_nothing and horizon_ms is not None and horizon_ms <= self.now_ms
        if is_over or not header.records_count:
            return _emptied(header) if (header.producer_id, header.producer_epoch) in self.needed_markers else None
        self.records_written += header.records_count
        if not ends_nothing or horizon_ms is not None:
            return batch
        payload = records_section(batch, header)
        records = raw_records(payload, header.records_count)
        return _rewritten(header, payload, records, self.now_ms + self.delete_retention_ms)

    def _without_records(self, header: BatchHeader) -> bytes | None:
        is_needed = header.base_offset in self.needed and self.rules.cleaning_keeps_producers
        return _emptied(header) if is_needed else None

    def _horizon_ms(self, header: BatchHeader) -> int | None:
        """Return when the tombstones of a batch may go; None for a batch that no cleaning has come past."""
        return header.delete_horizon_ms if self.rules.tombstones_have_one_horizon else None

    def _keeps(self, record: RawRecord, header: BatchHeader) -> bool:
        offset = header.base_offset + record.offset_delta
        if offset > self.offsets.latest:
            return True
        if record.key is None:
            self.without_key += offset < self.offsets.first  # the map has counted the others
            return False
        if offset < self.offsets.get(record.key):
            return False
        if record.has_value or not self.rules.tombstones_wait:
            return record.has_value
        horizon_ms = self._horizon_ms(header)
        return horizon_ms is None or self.now_ms < horizon_ms


def _emptied(header: BatchHeader) -> bytes:
    attributes = header.attributes & ~_CODEC & ~DELETE_HORIZON | NO_COMPRESSION
    return batch_with(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, records_count=0), b"")


def _rewritten(
    header: BatchHeader, payload: bytes, retained: list[RawRecord], horizon_ms: int | None, *, own_times: bool = True
) -> bytes:
    """Return the batch with these records only; its timestamps count from the horizon, if there is one."""
    attributes = header.attributes & ~DELETE_HORIZON
    first_ms, max_ms = header.base_timestamp + retained[0].timestamp_delta, header.max_timestamp
    if own_times and not header.is_log_append_time:
        max_ms = header.base_timestamp + max(record.timestamp_delta for record in retained)
    if horizon_ms is not None:
        attributes |= DELETE_HORIZON
        first_ms = horizon_ms
    section = with_base_timestamp(payload, retained, header.base_timestamp - first_ms)
    return batch_with(
        header._replace(
            attributes=attributes, base_timestamp=first_ms, max_timestamp=max_ms, records_count=len(retained)
        ),
        compress(section, header.codec),
    )

"""When does a new segment begin? By size, by time, when its index is full, or offsets get too far (`shouldRoll`)."""

from collections.abc import Sequence
from zlib import crc32

from harness.broker.log.batch import BatchHeader
from harness.broker.log.offset_index import TIME_ENTRY
from harness.broker.log.segment import Segment
from harness.broker.log.settings import LogSettings

_MAX_RELATIVE_OFFSET = 2**31 - 1
"""Kafka's indexes write offsets as the distance from their segment's start."""


def must_roll(
    active: Segment, settings: LogSettings, pending: Sequence[BatchHeader], pending_bytes: int, header: BatchHeader
) -> bool:
    """Whether a batch begins a new segment; `pending` batches are about to enter the active one.

    By time it does when it is much younger than the segment's first batch, independent of the clock.
    """
    size = active.size + pending_bytes
    if not size:
        return False
    first_ms = active.first_timestamp if active.size else pending[0].max_timestamp
    return (
        size + header.size > settings.segment_bytes
        or (first_ms >= 0 and header.max_timestamp - first_ms > settings.segment_ms - _jitter_ms(active, settings))
        or active.index_entries >= settings.index_bytes // TIME_ENTRY.size
        or header.last_offset - active.base_offset > _MAX_RELATIVE_OFFSET
    )


def _jitter_ms(active: Segment, settings: LogSettings) -> int:
    """Return by how much earlier the active segment rolls: pseudo-random, and the same at every start."""
    most = min(settings.segment_jitter_ms, settings.segment_ms)
    return crc32(active.path.encode()) % most if most else 0

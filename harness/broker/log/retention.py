"""Which segments of a log have had their time: by where the log starts, by its size, by the age of its records.

The rules are those of Kafka's `UnifiedLog.deleteOldSegments`: only whole segments from the front, only what is below
the high watermark; also the active segment, when all of its records are too old, after a new one was begun.
"""

from collections.abc import Callable

from harness.broker.log.log import Log
from harness.broker.log.segment import Segment

_Rule = Callable[[Segment, Segment | None], bool]


def delete_old_segments(log: Log, high_watermark: int, now_ms: int) -> int:
    """Delete the segments that are not needed any more, and return their number.

    Raises:
        OSError: the disk refused.
    """
    deleted = _delete_while(log, high_watermark, lambda _, following: _starts_too_late(log, following))
    if not log.settings.deletes:
        return deleted
    deleted += _delete_while(log, high_watermark, _TooMuch(log))
    return deleted + _delete_while(log, high_watermark, lambda segment, _: _is_too_old(log, segment, now_ms))


def _starts_too_late(log: Log, following: Segment | None) -> bool:
    return following is not None and following.base_offset <= log.log_start_offset


def _is_too_old(log: Log, segment: Segment, now_ms: int) -> bool:
    """Records without timestamps never are, as their age is unknown; a segment without any always is."""
    retention_ms, youngest_ms = log.settings.retention_ms, segment.max_timestamp
    if not segment.size:
        return retention_ms >= 0
    return retention_ms >= 0 and youngest_ms >= 0 and now_ms - youngest_ms > retention_ms


class _TooMuch:
    """Whether the log exceeds `retention.bytes` even without the segment."""

    def __init__(self, log: Log) -> None:
        limit = log.settings.retention_bytes
        self._excess = log.size_bytes - limit if limit >= 0 else -1

    def __call__(self, segment: Segment, following: Segment | None) -> bool:
        if self._excess < segment.size:
            return False
        self._excess -= segment.size
        return True


def _delete_while(log: Log, high_watermark: int, rule: _Rule) -> int:
    """Delete segments from the front while they are committed, not an empty last one, and the rule agrees."""
    count = 0
    for index, segment in enumerate(log.segments):
        following = log.segments[index + 1] if index + 1 < len(log.segments) else None
        committed = high_watermark >= segment.next_offset
        if not committed or (following is None and not segment.size) or not rule(segment, following):
            break
        count += 1
    if count:
        log.delete_oldest(count)
    return count

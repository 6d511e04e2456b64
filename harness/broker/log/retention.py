"""Which segments of a log have had their time: by where the log starts, by its size, by the age of its records.

The rules are those of Kafka's `UnifiedLog.deleteOldSegments`: only whole segments from the front, only what is below
the high watermark; also the active segment, when all of its records are too old, after a new one was begun.
"""

from collections.abc import Callable
from dataclasses import dataclass

from harness.broker.log.log import Log
from harness.broker.log.segment import Segment
from harness.events import SegmentDelete

_Rule = Callable[[Segment, Segment | None], bool]
Listener = Callable[[SegmentDelete], None]
"""Called with each segment before it is deleted."""


def _ignored(_line: SegmentDelete) -> None:
    """Drop the call: there is no listener."""


def delete_old_segments(log: Log, high_watermark: int, now_ms: int, deleting: Listener = _ignored) -> int:
    """Delete the segments that are not needed any more, and return their number.

    Raises:
        OSError: the disk refused.
    """
    retention = _Retention(log, high_watermark, now_ms, deleting)
    deleted = retention.delete_while("start", lambda _, following: _starts_too_late(log, following))
    if not log.settings.deletes:
        return deleted
    deleted += retention.delete_while("size", _TooMuch(log))
    return deleted + retention.delete_while("age", lambda segment, _: _is_too_old(log, segment, now_ms))


def _starts_too_late(log: Log, following: Segment | None) -> bool:
    return following is not None and following.base_offset <= log.log_start_offset


def _is_too_old(log: Log, segment: Segment, now_ms: int) -> bool:
    """Records without timestamps never are, as their age is unknown; a segment without any always is."""
    retention_ms = log.settings.retention_ms
    if not segment.size:
        return retention_ms >= 0
    youngest_ms = segment.max_timestamp if log.rules.retention_asks_the_youngest else segment.first_timestamp
    return retention_ms >= 0 and youngest_ms >= 0 and now_ms - youngest_ms > retention_ms


class _TooMuch:
    """Whether the log exceeds `retention.bytes` even without the segment."""

    def __init__(self, log: Log) -> None:
        limit = log.settings.retention_bytes
        self._excess = log.size_bytes - limit if limit >= 0 else -1
        self._leaves_enough = log.rules.retention_leaves_enough

    def __call__(self, segment: Segment, following: Segment | None) -> bool:
        if self._excess < (segment.size if self._leaves_enough else 1):
            return False
        self._excess -= segment.size
        return True


@dataclass(frozen=True, slots=True)
class _Retention:
    """One look at one log."""

    log: Log
    high_watermark: int
    now_ms: int
    deleting: Listener

    def delete_while(self, reason: str, rule: _Rule) -> int:
        """Delete segments from the front while they are committed, not an empty last one, and the rule agrees."""
        log, count, log_bytes = self.log, 0, self.log.size_bytes
        for index, segment in enumerate(log.segments):
            following = log.segments[index + 1] if index + 1 < len(log.segments) else None
            committed = self.high_watermark >= segment.next_offset or not log.rules.retention_spares_uncommitted
            spared = following is None and not (segment.size and log.rules.retention_deletes_last_segments)
            if not committed or spared or not rule(segment, following):
                break
            self.deleting(self._line(segment, reason, log_bytes))
            log_bytes -= segment.size
            count += 1
        if count:
            log.delete_oldest(count)
        return count

    def _line(self, segment: Segment, reason: str, log_bytes: int) -> SegmentDelete:
        settings = self.log.settings
        return SegmentDelete(
            topic=self.log.topic,
            partition=self.log.partition,
            base_offset=segment.base_offset,
            end_offset=segment.next_offset,
            reason=reason,
            log_start_offset=self.log.log_start_offset,
            high_watermark=self.high_watermark,
            segment_bytes=segment.size,
            log_bytes=log_bytes,
            retention_bytes=settings.retention_bytes,
            youngest_ms=segment.max_timestamp,
            now_ms=self.now_ms,
            retention_ms=settings.retention_ms,
        )

"""Chooses the logs to clean, and their ranges (Kafka's `LogCleanerManager`). Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.broker.log.log import Log
from harness.broker.log.segment import Segment

_MAX_RELATIVE_OFFSET = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanable:
    """A compacted log, and how much of it can be cleaned now."""

    log: Log
    first_dirty_offset: int
    end_offset: int
    """Everything before this may be cleaned: the start of the first segment that may not."""
    clean_bytes: int
    dirty_bytes: int
    delay_ms: int
    """How long it has been due by `max.compaction.lag.ms`."""

    @property
    def ratio(self) -> float:
        """Its dirty share."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is dirty enough, or has been dirty for too long."""
        return (self.delay_ms > 0 and self.dirty_bytes > 0) or self.ratio > self.log.settings.min_cleanable_ratio


def cleanable(log: Log, stable_offset: int, now_ms: int) -> Cleanable:
    """Return the cleanable part of a log.

    Excluded are the last segment, the first segment that is not all before `stable_offset` or has a record younger than
    `min.compaction.lag.ms`, and all after it.
    """
    first_dirty = _first_dirty_offset(log)
    last = log.segments[-1].base_offset
    dirty = between(log, first_dirty, last)
    limit = min(stable_offset, last)
    lag_ms = log.settings.min_compaction_lag_ms
    young = (each.base_offset for each in dirty if lag_ms > 0 and each.max_timestamp > now_ms - lag_ms)
    limit = max(first_dirty, min(limit, next(young, limit)))
    end = next((each.base_offset for each in between(log, limit, last)), last)
    return Cleanable(
        log=log,
        first_dirty_offset=first_dirty,
        end_offset=end,
        clean_bytes=_size(between(log, 0, first_dirty)),
        dirty_bytes=_size(between(log, first_dirty, end)),
        delay_ms=_delay_ms(log, dirty, now_ms),
    )


def dirtiest(logs: Iterable[Cleanable]) -> Cleanable | None:
    """Return the log to clean first; None when none is due."""
    return max((each for each in logs if each.is_due), key=lambda each: each.ratio, default=None)


def between(log: Log, start: int, end: int) -> list[Segment]:
    """Return the segments that begin before `end`, from the one with `start` on."""
    if start >= end:
        return []
    first = bisect_right(log.segments, start, key=lambda segment: segment.base_offset) - 1
    return [each for each in log.segments[max(first, 0) :] if each.base_offset < end]


def groups(segments: Sequence[Segment], log: Log, end_offset: int) -> list[list[Segment]]:
    """Return neighbours to merge into a segment each, as large as the log's settings allow (`groupSegmentsBySize`)."""
    result: list[list[Segment]] = []
    size = offsets = times = 0
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else end_offset
        of_offsets, of_times = segment.index_bytes
        fits = (
            size + segment.size <= log.settings.segment_bytes
            and offsets + of_offsets <= log.settings.index_bytes
            and times + of_times <= log.settings.index_bytes
        )
        if result and fits and (not segment.size or following - 1 - result[-1][0].base_offset <= _MAX_RELATIVE_OFFSET):
            result[-1].append(segment)
            size, offsets, times = size + segment.size, offsets + of_offsets, times + of_times
        else:
            result.append([segment])
            size, offsets, times = segment.size, of_offsets, of_times
    return result


def _first_dirty_offset(log: Log) -> int:
    """Return the end of the last cleaning; a log that lies elsewhere is all dirty (`cleanableOffsets`)."""
    cleaned_to = log.log_start_offset if log.cleaned_to is None else log.cleaned_to
    return cleaned_to if log.log_start_offset <= cleaned_to <= log.log_end_offset else log.log_start_offset


def _size(segments: Iterable[Segment]) -> int:
    return sum(segment.size for segment in segments)


def _delay_ms(log: Log, dirty: Iterable[Segment], now_ms: int) -> int:
    firsts = (each.first_timestamp for each in dirty if each.size)
    earliest_ms = min((first for first in firsts if first > 0), default=None)
    due_ms = now_ms - log.settings.max_compaction_lag_ms
    return due_ms - earliest_ms if earliest_ms is not None and earliest_ms < due_ms else 0

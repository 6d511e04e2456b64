"""Small compacted logs: what is in them is told by keys and values."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from harness.broker.cleaner.choosing import Cleanable, cleanable
from harness.broker.cleaner.cleaning import Cleaned, Cleaning
from harness.broker.cleaner.pace import STEP_BYTES, Pace
from harness.broker.log.batch import UNNUMBERED, Numbering, build_batch, iter_batches, parse_header, recompressed
from harness.broker.log.batch import parse_records as records_of
from harness.broker.log.compression import NO_COMPRESSION
from harness.broker.log.log import Log, LogSettings
from harness.broker.log.records import Record
from harness.broker.log.storage import Storage
from harness.simulation.disk import MemoryStorage
from tests.broker.log.logs import Heard, opened

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
COMPACTED = LogSettings(segment_bytes=400, index_interval_bytes=150, compacts=True, deletes=False)
"""Segments of a few batches each."""

Pair = tuple[str | None, str | None]
"""A key and a value; a value of None is a tombstone."""


def batch(
    *pairs: Pair,
    timestamp_ms: int = NOW_MS,
    codec: int = NO_COMPRESSION,
    numbering: Numbering = UNNUMBERED,
    attributes: int = 0,
) -> bytes:
    """A batch of these records, each a millisecond later than the one before."""
    records = [
        Record(key=_encoded(key), value=_encoded(value), timestamp_ms=timestamp_ms + number)
        for number, (key, value) in enumerate(pairs)
    ]
    plain = build_batch(records, attributes=attributes, numbering=numbering)
    return plain if codec == NO_COMPRESSION else bytes(recompressed(plain, parse_header(plain), codec))


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def text_of(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def compacted_log(storage: Storage | None = None, **settings: Any) -> Log:
    """An empty log of a compacted topic."""
    return reopened(storage or MemoryStorage(), **settings)


def reopened(
    storage: Storage, *, clean: bool = False, recovery_point: int = 0, cleaned_to: int | None = None, **settings: Any
) -> Log:
    """The log as a broker finds it at its start."""
    return opened(
        storage,
        clean=clean,
        recovery_point=recovery_point,
        cleaned_to=cleaned_to,
        settings=replace(COMPACTED, **settings),
        heard=Heard(),
    )[0]


def rolled(log: Log) -> Log:
    """Begin a new segment, so that all others may be cleaned."""
    if log.segments[-1].size:
        log.segments.append(log._new_segment(log.log_end_offset))
    return log


def contents(log: Log) -> list[tuple[int, str | None, str | None]]:
    """Offset, key and value of every record."""
    data = log.read(log.log_start_offset, max_bytes=1 << 30, up_to=log.log_end_offset, at_least_one=True)
    return [
        (record.offset, text_of(record.key), text_of(record.value))
        for _, each in iter_batches(data)
        for record in records_of(each)
    ]


def chosen(log: Log, *, high_watermark: int | None = None, now_ms: int = NOW_MS) -> Cleanable:
    """What can be cleaned of a log; all of it is committed unless something else is said."""
    end = log.log_end_offset if high_watermark is None else high_watermark
    unstable = log.first_unstable_offset(end)
    return cleanable(log, end if unstable is None else min(unstable, end), now_ms)


def nothing(_log: Log, _from_offset: int, _to_offset: int) -> None:
    """Drop the call."""


async def clean(
    log: Log,
    *,
    now_ms: int = NOW_MS,
    high_watermark: int | None = None,
    capacity: int = 1000,
    replacing: Callable[[Log, int, int], None] = nothing,
) -> Cleaned:
    """Clean a log as a cleaner does, and remember how far that came."""
    cleaning = Cleaning(
        chosen=chosen(log, high_watermark=high_watermark, now_ms=now_ms),
        capacity=capacity,
        read_bytes=STEP_BYTES,
        now_ms=now_ms,
        pace=Pace(bytes_per_second=float("inf")),
        replacing=replacing,
    )
    cleaned = await cleaning.run()
    log.cleaned_to = cleaned.end_offset
    return cleaned


def bases(log: Log) -> Sequence[int]:
    """Where segments begin."""
    return [segment.base_offset for segment in log.segments]

"""Which logs are due, and how far they may be cleaned."""

from typing import Any

import pytest

from harness.broker.cleaner.choosing import between, dirtiest, groups
from harness.broker.log.batch import assign
from harness.broker.log.log import Log
from tests.broker.cleaner.compacted import HOUR_MS, NOW_MS, bases, batch, chosen, compacted_log

SIZE = len(batch(("k", "v")))


def with_segments(count: int, *, ages_ms: list[int] | None = None, **settings: Any) -> Log:
    """A log of one batch of one record a segment."""
    log = compacted_log(segment_bytes=SIZE, **settings)
    for number in range(count):
        age_ms = ages_ms[number] if ages_ms else 0
        log.append_as_leader(batch(("k", "v"), timestamp_ms=NOW_MS - age_ms), 0)
    assert bases(log) == list(range(count))
    return log


@pytest.mark.parametrize(
    ("settings", "cleaned_to", "high_watermark", "expected"),
    [
        pytest.param({}, None, 5, (0, 4, 0, 4), id="all but the last segment"),
        pytest.param({}, 2, 5, (2, 4, 2, 2), id="from where the last cleaning ended"),
        pytest.param({}, 4, 5, (4, 4, 4, 0), id="nothing since then"),
        pytest.param({}, 5, 5, (5, 4, 5, 0), id="a cleaner that came to the very end"),
        pytest.param({}, None, 2, (0, 2, 0, 2), id="nothing at or above the high watermark"),
        pytest.param({}, 3, 2, (3, 3, 3, 0), id="a high watermark below what is clean"),
        pytest.param({}, None, 0, (0, 0, 0, 0), id="nothing is committed"),
        pytest.param({}, 9, 5, (0, 4, 0, 4), id="a checkpoint past the end: all is dirty"),
        pytest.param(
            {"min_compaction_lag_ms": 30}, None, 5, (0, 2, 0, 2), id="nothing from the first young segment on"
        ),
        pytest.param({"min_compaction_lag_ms": 29}, None, 5, (0, 4, 0, 4), id="as old as it must be is not young"),
        pytest.param({"min_compaction_lag_ms": 99}, None, 5, (0, 0, 0, 0), id="all is young"),
    ],
)
def test_how_far_a_log_may_be_cleaned(
    settings: dict[str, int], cleaned_to: int | None, high_watermark: int, expected: tuple[int, ...]
) -> None:
    log = with_segments(5, ages_ms=[90, 60, 29, 60, 0], **settings)
    log.cleaned_to = cleaned_to
    choice = chosen(log, high_watermark=high_watermark)
    first, end, clean, dirty = expected
    assert (choice.first_dirty_offset, choice.end_offset) == (first, end)
    assert (choice.clean_bytes, choice.dirty_bytes) == (clean * SIZE, dirty * SIZE)


def test_a_high_watermark_within_a_segment_keeps_all_of_it() -> None:
    log = compacted_log(segment_bytes=2 * SIZE)
    for _ in range(5):
        log.append_as_leader(batch(("k", "v")), 0)
    assert bases(log) == [0, 2, 4]
    assert chosen(log, high_watermark=3).end_offset == 2


def test_a_checkpoint_before_the_start_of_the_log_begins_there() -> None:
    log = with_segments(5)
    log.cleaned_to = 1
    log.delete_oldest(2)
    assert chosen(log).first_dirty_offset == 2


@pytest.mark.parametrize(
    ("settings", "cleaned_to", "due"),
    [
        pytest.param({"min_cleanable_ratio": 0.5}, 2, False, id="just as dirty as the limit is not dirty enough"),
        pytest.param({"min_cleanable_ratio": 0.49}, 2, True, id="dirtier"),
        pytest.param({"min_cleanable_ratio": 0.0}, 4, False, id="nothing is dirty"),
        pytest.param({"min_cleanable_ratio": 1.0}, None, False, id="a limit that nothing exceeds"),
        pytest.param({"min_cleanable_ratio": 1.0, "max_compaction_lag_ms": HOUR_MS}, 3, True, id="dirty for too long"),
        pytest.param({"min_cleanable_ratio": 1.0, "max_compaction_lag_ms": 2 * HOUR_MS}, 3, False, id="not yet"),
        pytest.param({"min_cleanable_ratio": 1.0, "max_compaction_lag_ms": HOUR_MS}, 4, False, id="old but clean"),
    ],
)
def test_when_a_log_is_due(settings: dict[str, Any], cleaned_to: int | None, due: bool) -> None:
    log = with_segments(5, ages_ms=[HOUR_MS + 1] * 4 + [0], **settings)
    log.cleaned_to = cleaned_to
    assert chosen(log).is_due == due


def test_what_is_too_young_is_not_cleaned_however_long_it_waits() -> None:
    log = with_segments(3, ages_ms=[HOUR_MS] * 3, max_compaction_lag_ms=10, min_compaction_lag_ms=2 * HOUR_MS)
    assert not chosen(log).is_due


def test_the_dirtiest_log_comes_first_and_only_one_that_is_due() -> None:
    logs = [with_segments(5, min_cleanable_ratio=ratio) for ratio in (0.1, 0.1, 0.9)]
    for log, cleaned_to in zip(logs, (3, 2, 1), strict=True):
        log.cleaned_to = cleaned_to
    first = dirtiest(map(chosen, logs))
    assert first is not None
    assert first.log is logs[1]
    assert dirtiest([chosen(logs[2])]) is None


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({"segment_bytes": 2 * SIZE}, [[0, 1], [2, 3]], id="no more bytes than a segment may have"),
        pytest.param({"segment_bytes": 3 * SIZE}, [[0, 1, 2], [3]], id="the last group may be smaller"),
        pytest.param({"segment_bytes": 9 * SIZE}, [[0, 1, 2, 3]], id="all in one"),
        pytest.param({"segment_bytes": SIZE // 2}, [[0], [1], [2], [3]], id="each alone when it is too large already"),
        pytest.param({"segment_bytes": 9 * SIZE, "index_bytes": 24}, [[0, 1], [2, 3]], id="small indexes"),
    ],
)
def test_neighbours_become_one_segment(settings: dict[str, Any], expected: list[list[int]]) -> None:
    log = with_segments(5)
    log.settings = compacted_log(**settings).settings
    segments = groups(between(log, 0, 4), log, 4)
    assert [[segment.base_offset for segment in group] for group in segments] == expected


def test_no_segment_spans_more_offsets_than_an_index_can_say() -> None:
    log = compacted_log(segment_bytes=SIZE)
    for base_offset in (0, 2**31 - 1, 2**31, 2**31 + 5):
        copied = bytearray(batch(("k", "v")))
        assign(copied, base_offset, 0)
        log.append_as_follower(bytes(copied))
    log.settings = compacted_log().settings
    segments = groups(between(log, 0, 2**31 + 5), log, 2**31 + 5)
    assert [[segment.base_offset for segment in group] for group in segments] == [[0, 2**31 - 1], [2**31]]

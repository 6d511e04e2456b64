"""When a segment is full or old enough for the next one to begin, and when it goes."""

from dataclasses import replace
from typing import Any

import pytest

from harness.broker.log.log import Log
from harness.broker.log.retention import delete_old_segments
from harness.broker.rules import rules_with
from harness.events import SegmentDelete
from harness.simulation.disk import MemoryStorage
from tests.broker.log.logs import SMALL, batch, everything, new_log, opened, spans

HOUR_MS = 3_600_000


def with_segments(timestamps: list[int], **settings: Any) -> Log:
    """A log with one batch of one record a segment, each of the given timestamp."""
    log = new_log(settings=replace(SMALL, segment_bytes=len(batch()), **settings))
    for timestamp_ms in timestamps:
        log.append_as_leader(batch(timestamp_ms=timestamp_ms), 0)
    return log


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


@pytest.mark.parametrize(
    ("timestamps", "segments"),
    [
        pytest.param([0, HOUR_MS], [0], id="not later than segment.ms after the first batch"),
        pytest.param([0, HOUR_MS + 1], [0, 1], id="later"),
        pytest.param([0, HOUR_MS + 1, HOUR_MS + 2, 2 * HOUR_MS + 2], [0, 1, 3], id="the new segment counts anew"),
        pytest.param([2 * HOUR_MS, 0], [0], id="an older batch never"),
        pytest.param([-1, 9 * HOUR_MS], [0], id="no timestamp proves nothing"),
    ],
)
@pytest.mark.parametrize("reopened", [False, True])
def test_a_segment_ends_when_a_batch_is_much_younger_than_its_first(
    timestamps: list[int], segments: list[int], reopened: bool
) -> None:
    storage, settings = MemoryStorage(), replace(SMALL, segment_bytes=10_000, segment_ms=HOUR_MS)
    log = new_log(storage, settings)
    for timestamp_ms in timestamps:
        log.append_as_leader(batch(timestamp_ms=timestamp_ms), 0)
        if reopened:
            log, _ = opened(storage, settings=settings)
    assert bases(log) == segments


def test_a_follower_rolls_where_its_leader_did_though_it_gets_all_at_once() -> None:
    settings = replace(SMALL, segment_bytes=10_000, segment_ms=HOUR_MS)
    leader, follower = new_log(settings=settings), new_log(settings=settings)
    for timestamp_ms in (0, 5, HOUR_MS + 1, HOUR_MS + 2, 5 * HOUR_MS):
        leader.append_as_leader(batch(timestamp_ms=timestamp_ms), 0)
    follower.append_as_follower(everything(leader))
    assert bases(follower) == bases(leader) == [0, 2, 4]


def test_a_segment_that_was_emptied_takes_the_time_of_its_next_first_batch() -> None:
    log = new_log(settings=replace(SMALL, segment_bytes=10_000, segment_ms=HOUR_MS))
    log.append_as_leader(batch(timestamp_ms=0), 0)
    log.truncate_to(0)
    log.append_as_leader(batch(timestamp_ms=9 * HOUR_MS), 0)
    log.append_as_leader(batch(timestamp_ms=9 * HOUR_MS + 1), 0)
    assert bases(log) == [0]


@pytest.mark.parametrize(
    ("settings", "high_watermark", "now_ms", "left"),
    [
        pytest.param({"retention_ms": 10}, 4, 110, [0, 1, 2, 3], id="records as old as allowed stay"),
        pytest.param({"retention_ms": 10}, 4, 122, [2, 3], id="older ones go"),
        pytest.param({"retention_ms": 10}, 1, 122, [1, 2, 3], id="but only what is committed"),
        pytest.param({"retention_ms": 10}, 0, 999, [0, 1, 2, 3], id="nothing is committed"),
        pytest.param({"retention_ms": 10}, 4, 999, [4], id="all of it, the active segment too"),
        pytest.param({"retention_ms": -1}, 4, 10**15, [0, 1, 2, 3], id="for ever"),
        pytest.param({"retention_ms": 10, "deletes": False}, 4, 999, [0, 1, 2, 3], id="only compaction cleans"),
        pytest.param({"retention_bytes": 2 * len(batch())}, 4, 0, [2, 3], id="as much as allowed stays"),
        pytest.param({"retention_bytes": 2 * len(batch()) + 1}, 4, 0, [1, 2, 3], id="no less than allowed stays"),
        pytest.param({"retention_bytes": 2 * len(batch())}, 1, 0, [1, 2, 3], id="too much, but not committed"),
        pytest.param({"retention_bytes": 0}, 4, 0, [4], id="no byte may stay"),
        pytest.param({"retention_bytes": -1}, 4, 0, [0, 1, 2, 3], id="any size"),
    ],
)
def test_segments_go_by_age_and_size(
    settings: dict[str, int], high_watermark: int, now_ms: int, left: list[int]
) -> None:
    log = with_segments([100, 111, 112, 113], **settings)
    before = len(log.segments)
    assert delete_old_segments(log, high_watermark, now_ms) == before - len([base for base in left if base < 4])
    assert bases(log) == left
    assert (log.log_start_offset, log.log_end_offset) == (left[0], 4)
    assert spans(everything(log)) == [(base, base) for base in left if base < 4]


def test_an_old_segment_behind_a_young_one_stays() -> None:
    log = with_segments([100, 900, 100], retention_ms=10)
    delete_old_segments(log, 3, 500)
    assert bases(log) == [1, 2]


@pytest.mark.parametrize("deletes", [True, False])
def test_what_is_before_the_log_start_goes_whatever_the_policy(deletes: bool) -> None:
    log = with_segments([1, 2, 3], deletes=deletes)
    log.advance_log_start(2)
    assert delete_old_segments(log, 3, 0) == 2
    assert bases(log) == [2]


def test_an_empty_log_is_left_alone() -> None:
    log = new_log(settings=replace(SMALL, retention_ms=0, retention_bytes=0))
    assert delete_old_segments(log, 0, 10**15) == 0


def test_deleted_segments_leave_the_disk_and_the_epochs(storage: MemoryStorage) -> None:
    log = new_log(storage, replace(SMALL, segment_bytes=len(batch()), retention_ms=10))
    for epoch, timestamp_ms in ((0, 1), (3, 2), (5, 900)):
        log.append_as_leader(batch(timestamp_ms=timestamp_ms), epoch)
    delete_old_segments(log, 3, 905)
    assert [name for name in storage.list("t-0") if name.endswith(".log")] == [f"{2:020d}.log"]
    assert list(log.epochs) == [(5, 2)]
    again, loaded = opened(storage, recovery_point=log.recovery_point)
    assert (again.log_start_offset, again.log_end_offset, loaded.truncated_bytes) == (2, 3, 0)


def test_producers_are_remembered_beyond_their_records_until_a_restart() -> None:
    """As in Kafka since KIP-360, but for the restart."""
    log = with_segments([1, 2], retention_ms=10)
    assert len(log.producers) == 0
    delete_old_segments(log, 2, 900)
    assert log.log_start_offset == log.log_end_offset == 2


@pytest.mark.parametrize(("bugs", "left"), [([], [0]), (["retention-by-first-record"], [2])])
def test_a_segment_whose_youngest_record_is_young_stays(bugs: list[str], left: list[int]) -> None:
    log, _ = opened(
        MemoryStorage(),
        settings=replace(SMALL, segment_bytes=2 * len(batch()), retention_ms=100),
        rules=rules_with(bugs),
    )
    for timestamp_ms in (0, 100, 200):
        log.append_as_leader(batch(timestamp_ms=timestamp_ms), 0)
    delete_old_segments(log, 3, 150)
    assert bases(log)[:1] == left


@pytest.mark.parametrize(("bugs", "left"), [([], 1), (["retention-past-high-watermark"], 3)])
def test_what_is_not_committed_stays(bugs: list[str], left: int) -> None:
    log, _ = opened(
        MemoryStorage(), settings=replace(SMALL, segment_bytes=len(batch()), retention_ms=100), rules=rules_with(bugs)
    )
    for timestamp_ms in (0, 1, 2):
        log.append_as_leader(batch(timestamp_ms=timestamp_ms), 0)
    delete_old_segments(log, 1, 10_000)
    assert bases(log)[0] == left


def test_what_is_deleted_is_said_before() -> None:
    log = with_segments([100, 111, 900], retention_ms=10, retention_bytes=-1)
    said: list[SegmentDelete] = []
    delete_old_segments(log, 2, 905, said.append)
    assert [(line.base_offset, line.end_offset, line.reason, line.youngest_ms) for line in said] == [
        (0, 1, "age", 100),
        (1, 2, "age", 111),
    ]
    assert [line.log_bytes - line.segment_bytes for line in said] == [2 * len(batch()), len(batch())]

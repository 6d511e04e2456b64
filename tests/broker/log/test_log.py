import gzip
from typing import Any

import pytest

from harness.broker.log.batch import HEADER_BYTES, build_batch, crc_matches, iter_batches, seal
from harness.broker.log.checkpoint import read_epochs
from harness.broker.log.log import InvalidRecords, Log, LogClosed, LogSettings, OffsetOutOfRange, OffsetsOutOfOrder
from harness.broker.log.records import Record
from harness.broker.wire.error_codes import ErrorCode
from harness.simulation.disk import MemoryStorage
from tests.broker.log.logs import SMALL, Heard, batch, everything, headers, new_log, opened, spans

EPOCHS = "t-0/leader-epoch-checkpoint"
BATCH = len(batch())


def filled(count: int = 10, epoch: int = 1, **kwargs: Any) -> Log:
    """A log of `count` batches of two records each, in several segments."""
    log = new_log(**kwargs)
    for _ in range(count):
        log.append_as_leader(batch(2), epoch)
    return log


def test_a_leader_stamps_offset_and_epoch() -> None:
    log = new_log()
    first = log.append_as_leader(batch(3), 5)
    second = log.append_as_leader(batch(2), 6)
    assert (first.base_offset, first.last_offset) == (0, 2)
    assert (second.base_offset, second.last_offset) == (3, 4)
    stored = list(iter_batches(everything(log)))
    assert [(h.base_offset, h.leader_epoch) for h, _ in stored] == [(0, 5), (3, 6)]
    assert all(crc_matches(data, header) for header, data in stored)
    assert [*first.batches, *second.batches] == [header for header, _ in stored]
    assert log.log_end_offset == 5


def test_bytes_after_the_batch_are_not_stored() -> None:
    log = new_log()
    log.append_as_leader(batch() + b"trailing", 1)
    assert len(everything(log)) == BATCH


def test_a_refused_batch_changes_nothing() -> None:
    heard = Heard()
    log = new_log(heard=heard)
    with pytest.raises(InvalidRecords):
        log.append_as_leader(batch(base_offset=7), 1)
    assert (log.log_end_offset, len(log.epochs), heard.epochs) == (0, 0, [])


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    with pytest.raises(InvalidRecords) as refused:
        new_log(settings=LogSettings(segment_bytes=BATCH - 1)).append_as_leader(batch(), 1)
    assert refused.value.error_code == ErrorCode.RECORD_LIST_TOO_LARGE


def test_segments_are_named_by_their_first_offset_and_never_larger_than_allowed(storage: MemoryStorage) -> None:
    filled(storage=storage)
    segments = [name for name in storage.list("t-0") if name.endswith(".log")]
    assert segments == [f"{offset:020d}.log" for offset in (0, 8, 16)]
    assert all(len(storage.read(f"t-0/{name}")) <= SMALL.segment_bytes for name in segments)


def test_a_follower_stores_what_the_leader_sent_byte_for_byte() -> None:
    leader, follower = filled(), new_log()
    sent = everything(leader)
    assert follower.append_as_follower(sent).batches == headers(sent)
    assert everything(follower) == sent
    assert list(follower.epochs) == list(leader.epochs) == [(1, 0)]
    assert [s.base_offset for s in follower.segments] == [0, 8, 16]


def test_a_follower_notes_every_epoch_it_is_sent() -> None:
    heard = Heard()
    follower = new_log(heard=heard)
    follower.append_as_follower(
        batch(epoch=0) + batch(base_offset=1, epoch=0) + batch(base_offset=2, epoch=4) + batch(base_offset=3, epoch=-1)
    )
    assert list(follower.epochs) == [(0, 0), (4, 2)]
    assert heard.epochs == [("t", 0, 0, 0), ("t", 0, 4, 2)]


def test_a_follower_leaves_out_a_batch_that_is_cut_short() -> None:
    follower = new_log()
    assert len(follower.append_as_follower(batch() + batch(base_offset=1)[:-1]).batches) == 1
    assert follower.append_as_follower(b"").batches == []
    assert follower.log_end_offset == 1


def test_a_follower_takes_a_batch_larger_than_its_segments_and_gives_it_one_of_its_own() -> None:
    sent = [batch(30, epoch=1), batch(base_offset=30, epoch=1), batch(30, base_offset=31, epoch=1)]
    follower = new_log()
    follower.append_as_follower(b"".join(sent))
    assert [segment.size for segment in follower.segments] == [len(data) for data in sent]
    assert everything(follower) == b"".join(sent)


def test_a_follower_keeps_the_gaps_of_its_leader() -> None:
    follower = new_log()
    follower.append_as_follower(batch(base_offset=3, epoch=1) + batch(base_offset=9, epoch=1))
    assert spans(everything(follower)) == [(3, 3), (9, 9)]
    assert spans(follower.read(5, max_bytes=1000, up_to=10, at_least_one=True)) == [(9, 9)]


@pytest.mark.parametrize("second", [0, 1])
def test_a_follower_refuses_offsets_that_do_not_come_after_its_log_end(second: int) -> None:
    follower = new_log()
    follower.append_as_follower(batch(2, epoch=1))
    with pytest.raises(OffsetsOutOfOrder, match="expected 2"):
        follower.append_as_follower(batch(base_offset=second, epoch=2))
    with pytest.raises(OffsetsOutOfOrder, match="expected 5"):
        follower.append_as_follower(batch(3, base_offset=2, epoch=2) + batch(base_offset=4, epoch=2))
    assert (spans(everything(follower)), list(follower.epochs)) == ([(0, 1)], [(1, 0)])


@pytest.mark.parametrize("position", [16, 17, 23, 70])
def test_a_follower_refuses_a_corrupt_batch_and_the_good_ones_with_it(position: int) -> None:
    bad = bytearray(batch(base_offset=1, epoch=1))
    bad[position] ^= 0x81
    follower = new_log()
    with pytest.raises(InvalidRecords) as refused:
        follower.append_as_follower(batch(epoch=1) + bytes(bad))
    assert refused.value.error_code == ErrorCode.CORRUPT_MESSAGE
    assert (follower.log_end_offset, len(follower.epochs)) == (0, 0)


@pytest.mark.parametrize("offset", range(20))
def test_a_read_starts_with_the_batch_that_holds_the_offset(offset: int) -> None:
    read_spans = spans(filled().read(offset, max_bytes=1 << 20, up_to=20, at_least_one=False))
    assert read_spans == [(base, base + 1) for base in range(offset // 2 * 2, 20, 2)]


@pytest.mark.parametrize("up_to", range(21))
def test_no_batch_reaches_past_the_limit(up_to: int) -> None:
    read_spans = spans(filled().read(0, max_bytes=1 << 20, up_to=up_to, at_least_one=True))
    assert read_spans == [(base, base + 1) for base in range(0, up_to - 1, 2)]


@pytest.mark.parametrize("at_least_one", [True, False])
@pytest.mark.parametrize("offset", [0, 3, 8, 19])
def test_a_read_holds_as_many_whole_batches_as_fit(offset: int, at_least_one: bool) -> None:
    log = filled()
    size = len(everything(log)) // 10
    left = 10 - offset // 2
    for max_bytes in range(0, 11 * size, 7):
        wanted = min(max_bytes // size, left)
        if at_least_one:
            wanted = max(wanted, 1)
        data = log.read(offset, max_bytes=max_bytes, up_to=20, at_least_one=at_least_one)
        assert spans(data) == [(b, b + 1) for b in range(offset // 2 * 2, 20, 2)][:wanted]


def test_a_batch_too_large_for_a_read_leaves_no_hole_behind_it() -> None:
    log = new_log()
    for count in (1, 20, 1):
        log.append_as_leader(batch(count), 1)
    assert spans(log.read(0, max_bytes=2 * BATCH, up_to=22, at_least_one=True)) == [(0, 0)]


@pytest.mark.parametrize("offset", [-1, 4, 21])
def test_an_offset_out_of_range_is_refused(offset: int) -> None:
    log = filled()
    log.advance_log_start(5)
    with pytest.raises(OffsetOutOfRange, match="5 to 20"):
        log.read(offset, max_bytes=1, up_to=20, at_least_one=True)
    assert log.read(20, max_bytes=1, up_to=20, at_least_one=True) == b""


def test_the_epoch_history_is_on_disk_before_anybody_hears_of_it() -> None:
    storage, heard = MemoryStorage(), Heard()
    log = new_log(storage, heard=heard)
    on_disk = []
    log.epoch_assigned = lambda *_: on_disk.append(read_epochs(storage, EPOCHS))
    log.assign_epoch(3, 0)
    log.append_as_leader(batch(), 3)
    log.append_as_leader(batch(), 4)
    assert on_disk == [[(3, 0)], [(3, 0), (4, 1)]]


@pytest.mark.parametrize("offset", range(21))
def test_truncation_drops_whole_batches(storage: MemoryStorage, offset: int) -> None:
    log = filled(storage=storage)
    log.truncate_to(offset)
    assert log.log_end_offset == offset // 2 * 2
    assert spans(everything(log)) == [(base, base + 1) for base in range(0, log.log_end_offset, 2)]
    again = opened(storage)[0]
    assert (everything(again), again.log_end_offset) == (everything(log), log.log_end_offset)
    assert log.append_as_leader(batch(), 2).base_offset == offset // 2 * 2
    assert log.offset_for_timestamp(2) is None


def test_truncation_drops_the_epochs_that_it_leaves_without_records(storage: MemoryStorage) -> None:
    log = new_log(storage)
    for epoch in (1, 2, 3):
        log.append_as_leader(batch(2), epoch)
    log.truncate_to(3)
    assert list(log.epochs) == read_epochs(storage, EPOCHS) == [(1, 0)]


@pytest.mark.parametrize("offset", [2, 5])
def test_truncation_at_or_past_the_end_still_cleans_the_epochs(storage: MemoryStorage, offset: int) -> None:
    log = new_log(storage)
    log.append_as_leader(batch(2), 1)
    log.epochs.assign(2, offset)
    log.truncate_to(offset)
    assert list(log.epochs) == read_epochs(storage, EPOCHS) == [(1, 0)]
    assert log.log_end_offset == 2


def test_truncation_below_the_recovery_point_says_so_before_the_files_change() -> None:
    heard = Heard()
    log = filled(heard=heard)
    log.flush()
    seen = []
    log.checkpoints_changed = lambda: seen.append((log.recovery_point, log.log_end_offset))
    log.truncate_to(20)
    log.truncate_to(12)
    log.truncate_to(4)
    assert seen == [(12, 20), (4, 12)]
    assert log.recovery_point == 4


def test_starting_over_drops_everything(storage: MemoryStorage) -> None:
    log = filled(storage=storage)
    log.truncate_fully_and_start_at(500)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point, list(log.epochs)) == (500, 500, 500, [])
    assert read_epochs(storage, EPOCHS) == []
    assert log.append_as_leader(batch(), 9).base_offset == 500
    assert [name for name in storage.list("t-0") if name.endswith(".log")] == [f"{500:020d}.log"]


def test_truncation_before_the_first_segment_starts_over_there() -> None:
    log = new_log()
    log.truncate_fully_and_start_at(500)
    log.append_as_leader(batch(), 1)
    log.truncate_to(400)
    assert (log.log_start_offset, log.log_end_offset) == (400, 400)


def test_the_log_start_moves_forward_only_and_takes_the_epochs_along(storage: MemoryStorage) -> None:
    log = new_log(storage)
    for epoch in (1, 2, 3):
        log.append_as_leader(batch(2), epoch)
    log.advance_log_start(3)
    log.advance_log_start(1)
    assert log.log_start_offset == 3
    assert list(log.epochs) == read_epochs(storage, EPOCHS) == [(2, 3), (3, 4)]
    with pytest.raises(OffsetOutOfRange, match="ends at 6"):
        log.advance_log_start(7)
    log.truncate_to(1)
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)


def test_the_first_record_of_a_time_is_found() -> None:
    log = new_log()
    for start in range(0, 100, 10):
        log.append_as_leader(batch(5, timestamp_ms=start), 1)
    assert len(log.segments) > 3
    for index in range(50):
        assert log.offset_for_timestamp(index // 5 * 10 + index % 5) == (index, index // 5 * 10 + index % 5)
    assert log.offset_for_timestamp(-5) == (0, 0)
    assert log.offset_for_timestamp(34) == (19, 34)
    assert log.offset_for_timestamp(35) == (20, 40)
    assert log.offset_for_timestamp(94) == (49, 94)
    assert log.offset_for_timestamp(95) is None
    log.advance_log_start(12)
    assert log.offset_for_timestamp(0) == (12, 22)


def test_the_first_record_of_a_time_is_found_though_times_go_back() -> None:
    log = new_log()
    for start in (50, 10, 90, 20, 70, 95, 30):
        log.append_as_leader(batch(timestamp_ms=start), 1)
    assert [log.offset_for_timestamp(t) for t in (11, 51, 91, 96)] == [(0, 50), (2, 90), (5, 95), None]


def test_a_time_that_was_truncated_away_is_forgotten() -> None:
    log = new_log()
    for start in (10, 20, 90, 30):
        log.append_as_leader(batch(timestamp_ms=start), 1)
    log.truncate_to(2)
    assert [segment.max_timestamp for segment in log.segments] == [20]


def test_a_time_in_a_batch_that_cannot_be_looked_into_is_its_first_offset() -> None:
    records = [Record(value=b"v", timestamp_ms=t) for t in (10, 20)]
    log = new_log()
    for base_offset in (0, 2):  # from a leader that took what this broker would not
        log.append_as_follower(build_batch(records, base_offset=base_offset, leader_epoch=1, attributes=4))
    assert log.offset_for_timestamp(15) == (0, 20)
    log.advance_log_start(1)
    assert log.offset_for_timestamp(15) == (1, 20)
    log.advance_log_start(2)
    assert log.offset_for_timestamp(15) == (2, 20)


def test_a_time_is_found_inside_gzip() -> None:
    plain = build_batch([Record(value=b"v", timestamp_ms=t) for t in (10, 20, 30)], attributes=1)
    squeezed = bytearray(plain[:HEADER_BYTES] + gzip.compress(plain[HEADER_BYTES:]))
    squeezed[8:12] = (len(squeezed) - 12).to_bytes(4, "big")
    seal(squeezed)
    log = new_log()
    log.append_as_leader(bytes(squeezed), 1)
    assert log.offset_for_timestamp(15) == (1, 20)


@pytest.mark.parametrize("space", [0, BATCH - 1])
def test_a_full_disk_leaves_a_leaders_log_as_it_was(storage: MemoryStorage, space: int) -> None:
    log = filled(3, storage=storage)
    before = everything(log)
    storage.space_left = space
    with pytest.raises(OSError, match="No space"):
        log.append_as_leader(batch(), 1)
    assert (log.log_end_offset, everything(log)) == (6, before)
    storage.space_left = None
    assert log.append_as_leader(batch(), 1).base_offset == 6


def test_a_disk_that_fills_between_two_segments_leaves_a_followers_log_as_it_was() -> None:
    sent = everything(filled())
    more = b"".join(batch(base_offset=20 + i, epoch=5 + i) for i in range(8))
    storage = MemoryStorage()
    follower = new_log(storage)
    follower.append_as_follower(sent)
    storage.space_left = 5 * BATCH
    with pytest.raises(OSError, match="No space"):
        follower.append_as_follower(more)
    assert (follower.log_end_offset, everything(follower)) == (20, sent)
    assert list(follower.epochs) == read_epochs(storage, EPOCHS) == [(1, 0), (5, 20)]
    storage.space_left = None
    follower.append_as_follower(more)
    assert everything(follower) == sent + more


async def test_a_read_that_waited_while_its_log_was_closed_touches_no_file() -> None:
    log = filled()
    log.close()
    with pytest.raises(LogClosed):
        await log.read_off_loop(0, max_bytes=100, up_to=10, at_least_one=True)


async def test_flushing_what_has_been_rolled_leaves_the_last_segment_to_the_kernel(storage: MemoryStorage) -> None:
    log = filled(storage=storage)
    await log.flush_rolled()
    assert log.recovery_point == 16
    storage.lose_power()
    assert len(storage.read(f"t-0/{8:020d}.log")) > 0
    assert storage.read(f"t-0/{16:020d}.log") == b""


def test_flushing_makes_everything_survive(storage: MemoryStorage) -> None:
    log = filled(storage=storage)
    before = everything(log)
    log.flush()
    storage.lose_power()
    assert (log.recovery_point, everything(log)) == (20, before)

"""What stays of a whole log, whatever happens while it is cleaned."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.broker.cleaner.cleaning import Abandoned
from harness.broker.log.batch import CorruptBatch, Numbering, parse_header, seal
from harness.broker.log.compression import CODEC_NAMES
from harness.broker.log.log import Log
from harness.broker.log.records import MalformedRecords
from harness.broker.log.retention import delete_old_segments
from harness.broker.log.validation import InvalidRecords
from harness.broker.wire.error_codes import ErrorCode
from harness.simulation.disk import MemoryStorage
from harness.simulation.loop import run
from tests.broker.cleaner.compacted import (
    HOUR_MS,
    NOW_MS,
    Pair,
    bases,
    batch,
    chosen,
    clean,
    compacted_log,
    contents,
    reopened,
    rolled,
)
from tests.broker.log.logs import everything, headers, spans

A_DAY_MS = 24 * HOUR_MS


def filled(log: Log, keys: str, **fields: Any) -> Log:
    """A batch a key, the value says which record it is; then a new segment."""
    for key in keys:
        log.append_as_leader(batch((key, f"{key}-{log.log_end_offset}"), **fields), 0)
    return rolled(log)


def keys_of(log: Log) -> str:
    return "".join(key or "?" for _, key, _ in contents(log))


@pytest.mark.parametrize("codec", CODEC_NAMES, ids=CODEC_NAMES.values())
async def test_of_each_key_the_last_record_stays_where_it_was(codec: int) -> None:
    log = filled(compacted_log(), "abcabcaab", codec=codec)
    await clean(log)
    assert contents(log) == [(5, "c", "c-5"), (7, "a", "a-7"), (8, "b", "b-8")]
    assert (log.log_start_offset, log.log_end_offset) == (0, 9)


async def test_the_last_segment_is_not_touched_and_does_not_count() -> None:
    log = filled(compacted_log(), "ab")
    filled(log, "ab")
    log.append_as_leader(batch(("a", "new")), 0)
    await clean(log)
    assert [offset for offset, _, _ in contents(log)] == [2, 3, 4]


async def test_what_is_not_committed_is_not_touched_and_does_not_count() -> None:
    log = filled(compacted_log(segment_bytes=160), "abababab")
    assert bases(log) == [0, 2, 4, 6, 8]
    await clean(log, high_watermark=5)
    assert [offset for offset, _, _ in contents(log)] == [2, 3, 4, 5, 6, 7]


async def test_what_is_clean_is_compared_with_what_is_dirty_only() -> None:
    log = filled(compacted_log(), "abc")
    first = await clean(log)
    filled(log, "b")
    second = await clean(log)
    assert keys_of(log) == "acb"
    assert (first.end_offset, second.end_offset) == (3, 4)
    assert chosen(log).dirty_bytes == 0


async def test_small_neighbours_become_one_segment() -> None:
    log = filled(compacted_log(segment_bytes=160), "abcdabcdabcd")
    assert bases(log) == [0, 2, 4, 6, 8, 10, 12]
    log.settings = compacted_log(segment_bytes=500).settings
    await clean(log)
    assert bases(log) == [0, 6, 12]
    assert keys_of(log) == "abcd"
    assert [segment.next_offset for segment in log.segments] == [6, 12, 12]


async def test_a_map_that_is_full_leaves_the_rest_to_the_next_cleanings() -> None:
    log = filled(compacted_log(), "abcdeabcdeabcde")
    ends: list[int] = []
    while chosen(log).dirty_bytes and len(ends) < 10:
        ends.append((await clean(log, capacity=2)).end_offset)
    assert ends == [2, 4, 6, 8, 10, 12, 14, 15]
    assert contents(log)[-1][0] == 14
    log.cleaned_to = 0
    await clean(log)
    assert keys_of(log) == "abcde"


async def test_records_are_read_by_offset_across_what_is_gone() -> None:
    log = filled(compacted_log(), "abcabcabc")
    log.append_as_leader(batch(("d", "d")), 0)
    await clean(log)
    for offset in range(10):
        (first, *_) = headers(log.read(offset, max_bytes=1, up_to=10, at_least_one=True))
        assert first.base_offset == max(offset, 6)


@pytest.mark.parametrize("delete_retention_ms", [1000, A_DAY_MS])
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_tombstone_goes_when_it_was_kept_long_enough(restarted: bool, delete_retention_ms: int) -> None:
    storage = MemoryStorage()
    log = filled(compacted_log(storage, delete_retention_ms=delete_retention_ms), "ab")
    log.append_as_leader(batch(("a", None)), 0)
    rolled(log)
    await clean(log)
    assert contents(log) == [(1, "b", "b-1"), (2, "a", None)]
    if restarted:
        log = reopened(storage, cleaned_to=log.cleaned_to, delete_retention_ms=delete_retention_ms)
        rolled(log)
    filled(log, "c")
    await clean(log, now_ms=NOW_MS + delete_retention_ms - 1)
    assert contents(log)[1] == (2, "a", None)
    filled(log, "d")
    await clean(log, now_ms=NOW_MS + delete_retention_ms)
    assert keys_of(log) == "bcd"


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_producers_wrote_is_still_known(restarted: bool) -> None:
    storage = MemoryStorage()
    log = compacted_log(storage, segment_bytes=1000)
    for sequence in range(8):
        log.append_as_leader(batch(("a", f"{sequence}"), numbering=Numbering(7, 0, sequence)), 0)
    log.append_as_leader(batch(("a", "last")), 0)
    rolled(log)
    await clean(log)
    assert contents(log) == [(8, "a", "last")]
    assert spans(everything(log)) == [(offset, offset) for offset in range(3, 9)]
    if restarted:
        log = reopened(storage, cleaned_to=log.cleaned_to)
    for sequence in range(3, 8):
        again = log.append_as_leader(batch(("a", f"{sequence}"), numbering=Numbering(7, 0, sequence)), 0)
        assert (again.base_offset, again.batches) == (sequence, [])
    with pytest.raises(InvalidRecords) as refused:
        log.append_as_leader(batch(("a", "x"), numbering=Numbering(7, 0, 9)), 0)
    assert refused.value.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append_as_leader(batch(("a", "x"), numbering=Numbering(7, 0, 8)), 0).base_offset == 9


@pytest.mark.parametrize("restarted", [True, False])
async def test_a_producer_that_is_forgotten_leaves_nothing_behind(restarted: bool) -> None:
    storage = MemoryStorage()
    log = compacted_log(storage)
    log.append_as_leader(batch(("a", "1"), numbering=Numbering(7, 0, 0), timestamp_ms=NOW_MS - A_DAY_MS - 1), 0)
    log.append_as_leader(batch(("a", "2"), numbering=Numbering(8, 0, 0), timestamp_ms=NOW_MS - A_DAY_MS + 1), 0)
    filled(log, "a")
    if restarted:
        log = rolled(reopened(storage))
    log.producer_history.expire(NOW_MS - A_DAY_MS)
    await clean(log)
    assert spans(everything(log)) == [(1, 1), (2, 2)]


async def test_epochs_stay_as_they_are() -> None:
    log = compacted_log()
    for epoch, key in ((1, "a"), (2, "a"), (3, "a")):
        log.append_as_leader(batch((key, "v")), epoch)
    rolled(log)
    await clean(log)
    assert list(log.epochs) == [(1, 0), (2, 1), (3, 2)]
    assert [header.leader_epoch for header in headers(everything(log))] == [3]


async def test_with_delete_too_old_segments_go_whatever_keys_they_have() -> None:
    log = filled(compacted_log(deletes=True, retention_ms=HOUR_MS), "ab", timestamp_ms=NOW_MS - 2 * HOUR_MS)
    filled(log, "cc")
    await clean(log)
    assert keys_of(log) == "abc"
    filled(log, "d")
    delete_old_segments(log, log.log_end_offset, NOW_MS)
    assert keys_of(log) == "abcd"
    delete_old_segments(log, log.log_end_offset, NOW_MS + 2 * HOUR_MS)
    assert keys_of(log) == ""


async def test_a_segment_of_which_nothing_is_left_holds_up_no_retention() -> None:
    log = filled(compacted_log(deletes=True, retention_ms=HOUR_MS, segment_bytes=160), "aabbcc", timestamp_ms=NOW_MS)
    filled(log, "aa")
    log.settings = compacted_log(deletes=True, retention_ms=HOUR_MS, segment_bytes=80).settings
    await clean(log)
    assert log.segments[0].size == 0
    delete_old_segments(log, log.log_end_offset, NOW_MS)
    assert bases(log)[0] == 2


# --- what happens meanwhile ---


def appended(log: Log) -> None:
    log.append_as_leader(batch(("a", "meanwhile")), 0)


def cut(log: Log) -> None:
    log.truncate_to(4)


def emptied(log: Log) -> None:
    log.truncate_fully_and_start_at(100)


def shortened(log: Log) -> None:
    log.delete_oldest(1)


def closed(log: Log) -> None:
    log.close()


def kept_by_time(log: Log) -> None:
    log.settings = compacted_log(compacts=False).settings


STEPS = range(1, 9)
"""Of the cleaning below, from its first turn to the one in which it ends."""


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("meanwhile", [appended, cut, emptied, shortened, kept_by_time])
async def test_a_log_that_changes_is_cleaned_rightly_or_not_at_all(meanwhile: Callable[[Log], None], step: int) -> None:
    storage = MemoryStorage()
    log, twin = (filled(compacted_log(disk, segment_bytes=160), "ababcb") for disk in (storage, MemoryStorage()))
    work = asyncio.create_task(clean(log))
    for _ in range(step):
        await asyncio.sleep(0)
    assert not work.done()
    meanwhile(log)
    meanwhile(twin)
    (result,) = await asyncio.gather(work, return_exceptions=True)
    assert meanwhile is appended or isinstance(result, Abandoned)
    last = {key: (offset, value) for offset, key, value in contents(twin)}
    assert {key: (offset, value) for offset, key, value in contents(log)} == last
    assert set(contents(log)) <= set(contents(twin))
    assert log.log_end_offset == twin.log_end_offset
    assert not [name for name in storage.list("t-0") if name.endswith((".cleaned", ".swap"))]
    everywhere = contents(log)
    assert contents(reopened(storage, cleaned_to=0, recovery_point=log.log_start_offset)) == everywhere


@pytest.mark.parametrize("step", STEPS)
async def test_a_log_that_is_closed_is_let_go(step: int) -> None:
    storage = MemoryStorage()
    log = filled(compacted_log(storage, segment_bytes=160), "ababcb")
    work = asyncio.create_task(clean(log))
    for _ in range(step):
        await asyncio.sleep(0)
    closed(log)
    await asyncio.gather(work, return_exceptions=True)
    assert {key for _, key, _ in contents(reopened(storage, cleaned_to=0))} == set("abc")
    assert not [name for name in storage.list("t-0") if name.endswith((".cleaned", ".swap"))]


async def test_others_have_the_loop_while_a_log_is_cleaned() -> None:
    log = filled(compacted_log(segment_bytes=160), "ab" * 100)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await clean(log)
    beside.cancel()
    assert turns >= 200


# --- damage ---


def flipped(log: Log) -> None:
    """A bit of a record, which its CRC tells."""
    log.segments[1]._file.data[-1] ^= 1  # type: ignore[attr-defined]


def torn(log: Log) -> None:
    """The last batch of a segment is cut short."""
    del log.segments[1]._file.data[-1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("damage", [flipped, torn])
async def test_a_log_with_a_broken_batch_is_left_as_it_is(damage: Callable[[Log], None]) -> None:
    storage = MemoryStorage()
    log = filled(compacted_log(storage, segment_bytes=160), "ababab")
    damage(log)
    before = {name: storage.read(f"t-0/{name}") for name in storage.list("t-0")}
    with pytest.raises(CorruptBatch):
        await clean(log)
    assert {name: storage.read(f"t-0/{name}") for name in storage.list("t-0")} == before


async def test_a_batch_that_cannot_be_decompressed_is_kept() -> None:
    log = filled(compacted_log(segment_bytes=160), "aa", codec=1)
    data = log.segments[0]._file.data  # type: ignore[attr-defined]
    broken = bytearray(data)
    broken[61] ^= 0xFF
    log.segments[0]._file.data[:] = resealed(broken, parse_header(data).size)  # type: ignore[attr-defined]
    with pytest.raises(MalformedRecords):
        await clean(log)
    assert len(headers(everything(log))) == 2


def resealed(data: bytearray, size: int) -> bytearray:
    """The same bytes, with the CRC of the first batch made to fit them."""
    first = data[:size]
    seal(first)
    return first + data[size:]


# --- any log ---

VALUES = st.one_of(st.none(), st.text("xyz", max_size=3))
BATCHES = st.lists(st.tuples(st.sampled_from("abcdef"), VALUES), min_size=1, max_size=4)


@given(
    rounds=st.lists(st.lists(st.tuples(BATCHES, st.integers(0, 4)), min_size=1, max_size=8), min_size=1, max_size=3),
    capacity=st.integers(1, 6),
    segment_bytes=st.sampled_from([120, 250, 600]),
)
def test_any_log_keeps_what_its_readers_need(
    rounds: list[list[tuple[list[Pair], int]]], capacity: int, segment_bytes: int
) -> None:
    """A reader of the whole log gets the value of each key; nothing moves; the end stays; a restart finds the same."""
    storage = MemoryStorage()
    log = compacted_log(storage, segment_bytes=max(segment_bytes, 200))
    written: dict[int, Pair] = {}
    now_ms = NOW_MS
    for number, batches in enumerate(rounds):
        for pairs, codec in batches:
            first = log.append_as_leader(batch(*pairs, codec=codec), number).base_offset
            written |= {first + index: pair for index, pair in enumerate(pairs)}
        rolled(log)
        while chosen(log).dirty_bytes:
            run(clean(log, capacity=capacity, now_ms=now_ms))
        now_ms += A_DAY_MS
        final = {key: value for _, (key, value) in sorted(written.items())}
        held = contents(log)
        assert all(written[offset] == (key, value) for offset, key, value in held)
        seen = {key: value for _, key, value in held}
        assert {key: value for key, value in seen.items() if value is not None} == {
            key: value for key, value in final.items() if value is not None
        }
        assert log.log_end_offset == len(written)
        again = reopened(storage, cleaned_to=log.cleaned_to, recovery_point=0)
        assert contents(again) == held
        assert again.log_end_offset == log.log_end_offset


async def test_who_hears_of_a_replacement_hears_how_far_the_records_lie_that_replace() -> None:
    log = compacted_log(segment_bytes=200)
    for keys in ("abab", "abab", "abab"):
        filled(log, keys)
    heard: list[tuple[int, int, str]] = []

    def replacing(each: Log, from_offset: int, until_offset: int) -> None:
        heard.append((from_offset, until_offset, keys_of(each)))

    await clean(log, replacing=replacing)
    assert len(heard) > 1, "segments were replaced one after the other"
    assert {until for _, until, _ in heard} == {12}, "records of an earlier segment go that a later one replaces"
    assert keys_of(log) == "ab"

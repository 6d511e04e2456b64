"""What stays of a batch, and what its header says then."""

from typing import Any

import pytest

from harness.broker.cleaner.filtering import Filter
from harness.broker.cleaner.offset_map import OffsetMap
from harness.broker.log.batch import Numbering, assign, crc_matches, parse_header, parse_records
from harness.broker.log.compression import CODEC_NAMES
from harness.broker.log.records import MalformedRecords, has_incremental_offsets
from tests.broker.cleaner.compacted import HOUR_MS, NOW_MS, Pair, batch, text_of

BASE, EPOCH = 50, 7
LOG_APPEND_TIME = 0x08


def at_50(*pairs: Pair, **fields: Any) -> bytearray:
    """A batch as it stands in a log from offset 50 on, written in epoch 7."""
    stamped = bytearray(batch(*pairs, **fields))
    assign(stamped, BASE, EPOCH)
    return stamped


def rules(later: dict[str, int], *, latest: int = 100, needed: bool = False, now_ms: int = NOW_MS) -> Filter:
    """What is decided with these last offsets, known up to `latest`."""
    offsets = OffsetMap(100, first=BASE + 10)
    for key, offset in later.items():
        offsets.put(key.encode(), offset)
    offsets.latest = latest
    return Filter(offsets=offsets, needed={BASE} if needed else set(), now_ms=now_ms, delete_retention_ms=HOUR_MS)


def filtered(held: bytes | bytearray, decide: Filter) -> bytes | None:
    rest = decide.apply(memoryview(held), parse_header(held))
    return None if rest is None else bytes(rest)


def left(data: bytes | None) -> list[tuple[int, str | None, str | None, int]]:
    """Offset, key, value and time, the latter since the first record was written."""
    return [
        (record.offset, text_of(record.key), text_of(record.value), record.timestamp_ms - NOW_MS)
        for record in (parse_records(data) if data else [])
    ]


@pytest.mark.parametrize("codec", CODEC_NAMES, ids=CODEC_NAMES.values())
@pytest.mark.parametrize(
    ("later", "latest", "stays"),
    [
        pytest.param({}, 100, [50, 51, 52], id="keys without a later record stay"),
        pytest.param({"b": 51, "c": 52}, 100, [50, 51, 52], id="the last record of a key stays"),
        pytest.param({"a": 60, "c": 61}, 100, [51], id="records with a later one of their key go"),
        pytest.param({"a": 60, "b": 60, "c": 60}, 100, [], id="all of them"),
        pytest.param({"a": 60, "b": 60, "c": 60}, 50, [51, 52], id="what the map does not know yet stays"),
    ],
)
def test_the_last_record_of_each_key_stays(codec: int, later: dict[str, int], latest: int, stays: list[int]) -> None:
    held = at_50(("a", "1"), ("b", "2"), ("c", "3"), codec=codec, numbering=Numbering(9, 2, 40))
    rest = filtered(held, rules(later, latest=latest))
    expected = [(50, "a", "1", 0), (51, "b", "2", 1), (52, "c", "3", 2)]
    assert left(rest) == [each for each in expected if each[0] in stays]
    if rest is not None:
        header, before = parse_header(rest), parse_header(held)
        assert crc_matches(rest, header)
        assert header.size == len(rest)
        assert header.codec == codec
        same = ("base_offset", "last_offset", "leader_epoch", "producer_id", "producer_epoch", "base_sequence")
        assert [getattr(header, name) for name in same] == [getattr(before, name) for name in same]
        assert (header.records_count, header.max_timestamp) == (len(stays), NOW_MS + stays[-1] - BASE)


@pytest.mark.parametrize("needed", [False, True], ids=["it goes", "it has a producer's state, and is emptied"])
def test_a_batch_in_which_no_key_has_its_last_record_is_not_even_read(needed: bool) -> None:
    held = at_50(("a", "1"), ("b", "2"), numbering=Numbering(9, 2, 40))
    held[-1] ^= 0xFF  # not to be decompressed, and no records either
    offsets = OffsetMap(100, first=BASE)
    for number in range(100, 116):
        offsets.put(b"%d" % number, number)
    list(offsets.find_stretches())
    decide = Filter(offsets=offsets, needed={BASE} if needed else set(), now_ms=NOW_MS, delete_retention_ms=HOUR_MS)
    rest = filtered(held, decide)
    assert (rest is not None) is needed
    assert left(rest) == []
    assert (decide.records_read, decide.records_written) == (2, 0)


def test_a_batch_of_which_all_stays_is_not_touched() -> None:
    held = at_50(("a", "1"), ("b", "2"))
    assert filtered(held, rules({"a": 50})) == bytes(held)


def test_a_record_without_a_key_goes_and_is_counted() -> None:
    decide = rules({})
    assert left(filtered(at_50((None, "1"), ("b", "2")), decide)) == [(51, "b", "2", 1)]
    assert (decide.without_key, decide.records_read, decide.records_written) == (1, 2, 1)


def test_an_emptied_batch_that_tells_where_its_producer_is_stays_as_a_header() -> None:
    held = at_50(("a", "1"), ("b", "2"), numbering=Numbering(9, 2, 40), codec=4)
    rest = filtered(held, rules({"a": 60, "b": 61}, needed=True))
    assert rest is not None
    header = parse_header(rest)
    assert crc_matches(rest, header)
    assert (len(rest), header.records_count, header.codec, header.base_timestamp) == (61, 0, 0, -1)
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (50, 51, EPOCH)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 40)
    assert header.max_timestamp == NOW_MS + 1
    assert filtered(rest, rules({"a": 60}, needed=True)) == rest
    assert filtered(rest, rules({"a": 60})) is None


@pytest.mark.parametrize("codec", CODEC_NAMES, ids=CODEC_NAMES.values())
def test_a_tombstone_stays_until_its_retention_after_the_first_cleaning_is_over(codec: int) -> None:
    held = at_50(("a", None), ("b", "2"), codec=codec)
    first = filtered(held, rules({"a": 50}))
    assert first is not None
    assert parse_header(first).delete_horizon_ms == NOW_MS + HOUR_MS
    assert left(first) == [(50, "a", None, 0), (51, "b", "2", 1)]
    assert filtered(first, rules({"a": 50}, now_ms=NOW_MS + HOUR_MS - 1)) == first
    last = filtered(first, rules({"a": 50}, now_ms=NOW_MS + HOUR_MS))
    assert left(last) == [(51, "b", "2", 1)]


def test_a_horizon_is_not_moved_by_later_cleanings() -> None:
    first = filtered(at_50(("a", None), ("b", None), ("c", "3")), rules({}))
    assert first is not None
    second = filtered(first, rules({"b": 60}, now_ms=NOW_MS + 5))
    assert second is not None
    assert parse_header(second).delete_horizon_ms == NOW_MS + HOUR_MS
    assert left(second) == [(50, "a", None, 0), (52, "c", "3", 2)]


def test_a_tombstone_with_a_later_record_goes_at_once() -> None:
    assert filtered(at_50(("a", None)), rules({"a": 60})) is None


def test_the_time_that_the_broker_gave_stays() -> None:
    held = at_50(("a", "1"), ("b", "2"), attributes=LOG_APPEND_TIME)
    rest = filtered(held, rules({"b": 60}))
    assert rest is not None
    header = parse_header(rest)
    assert (header.is_log_append_time, header.max_timestamp) == (True, NOW_MS + 1)


def test_records_keep_the_numbers_that_they_have_in_their_batch() -> None:
    rest = filtered(at_50(("a", "1"), ("b", "2"), ("c", "3")), rules({"a": 60}))
    assert rest is not None
    assert not has_incremental_offsets(rest[61:])


def test_what_cannot_be_decompressed_is_refused() -> None:
    held = at_50(("a", "1"), ("b", "2"), codec=1)
    held[-6] ^= 0xFF
    with pytest.raises(MalformedRecords):
        filtered(held, rules({}))

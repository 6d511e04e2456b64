from collections.abc import Iterable
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.broker.cleaner.offset_map import ENTRY_BYTES, OffsetMap, capacity_of


def test_the_last_offset_of_each_key_is_known() -> None:
    offsets = OffsetMap(10)
    for offset, key in enumerate((b"a", b"b", b"a", b"", b"x" * 500)):
        assert offsets.put(key, offset)
    assert [offsets.get(key) for key in (b"a", b"b", b"", b"x" * 500, b"c")] == [2, 1, 3, 4, -1]
    assert (offsets.size, offsets.latest) == (4, 4)


def test_a_full_map_takes_nothing_more_not_even_what_it_knows() -> None:
    offsets = OffsetMap(2)
    assert [offsets.put(key, offset) for offset, key in enumerate((b"a", b"b", b"c", b"a"))] == [
        True,
        True,
        False,
        False,
    ]
    assert (offsets.size, offsets.latest, offsets.get(b"a")) == (2, 1, 0)


STRETCHES = [
    pytest.param(range(100, 108), range(100, 108), [], id="keys that are written once are last ones"),
    pytest.param([100, *range(1000, 1064)], range(100, 1064), [range(200, 890), range(300, 310)], id="a gap has none"),
    pytest.param(range(1000, 1064), range(100, 2000), [range(100, 760), range(1300, 1900)], id="nor what is older"),
    pytest.param([], range(100, 200), [range(100, 200)], id="nor records without a key"),
]


@pytest.mark.parametrize(("last", "read", "empty"), STRETCHES)
def test_where_no_last_record_stands(last: Iterable[int], read: range, empty: list[range]) -> None:
    offsets = OffsetMap(1000, first=100)
    for offset in last:
        offsets.put(b"%d" % offset, offset)
    offsets.latest = read[-1]
    assert not any(offsets.none_is_last(each[0], each[-1]) for each in empty)  # it was not looked for yet
    list(offsets.find_stretches())
    assert all(offsets.none_is_last(each[0], each[-1]) for each in empty)
    assert not any(offsets.none_is_last(offset, offset) for offset in last)
    unknown = [range(90, 95), range(99, 101), range(read[-1], read[-1] + 2), range(100, 1 << 40)]
    assert not any(offsets.none_is_last(each[0], each[-1]) for each in unknown)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 300)), min_size=1, max_size=300), st.integers(1, 10))
def test_a_last_record_is_never_taken_for_none(records: list[tuple[int, int]], capacity: int) -> None:
    """Keys, and how many offsets lie between a record and the one before."""
    offsets = OffsetMap(capacity, first=7)
    stand: dict[int, int] = {}
    offset = 6
    for key, gap in records:
        offset += gap
        if not offsets.put(b"%d" % key, offset):
            break
        stand[key] = offset
    list(offsets.find_stretches())
    for last in stand.values():
        assert not any(offsets.none_is_last(last - below, last + above) for below in (0, 1, 50) for above in (0, 1, 50))


@pytest.mark.parametrize("size", [16, 31, 32])
def test_a_key_is_not_taken_for_a_long_one_by_whose_digest_it_is(size: int) -> None:
    long = b"k" * 100
    offsets = OffsetMap(10)
    offsets.put(long, 7)
    assert offsets.get(blake2b(long, digest_size=size).digest()) == -1


@pytest.mark.parametrize(
    ("buffer_bytes", "load_factor", "capacity"),
    [
        pytest.param(128 << 20, 0.9, 603_979, id="Kafka's defaults"),
        pytest.param(2 << 20, 0.5, 5_242, id="half of it"),
        pytest.param(ENTRY_BYTES, 1.0, 1, id="room for one"),
    ],
)
def test_memory_bounds_the_number_of_keys(buffer_bytes: int, load_factor: float, capacity: int) -> None:
    """`log.cleaner.dedupe.buffer.size` and `log.cleaner.io.buffer.load.factor` say how many keys a cleaner knows."""
    assert capacity_of(buffer_bytes, load_factor) == capacity


def test_an_entry_takes_no_more_memory_than_is_counted() -> None:
    import tracemalloc

    for count in (3_000, 20_000, 90_000):
        tracemalloc.start()
        offsets = OffsetMap(count)
        for number in range(count):
            offsets.put(b"key-%060d" % number, 10**9 + number)
        list(offsets.find_stretches())
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert used / count < ENTRY_BYTES

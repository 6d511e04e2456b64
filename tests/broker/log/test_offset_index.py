import pytest

from harness.broker.log.offset_index import OffsetIndex

# Batches of 100 bytes and 10 offsets; every second one gets an entry: positions 0, 200, 400 of last offsets 9, 29, 49.
TIMES = [5, 30, 10, 40, 20, 60]


def index() -> OffsetIndex:
    built = OffsetIndex(interval_bytes=150)
    for number, time in enumerate(TIMES):
        built.add(number * 10 + 9, number * 100, time)
    return built


@pytest.mark.parametrize(
    ("offset", "position"), [(0, 0), (28, 0), (29, 200), (39, 200), (48, 200), (49, 400), (1000, 400)]
)
def test_before_an_offset(offset: int, position: int) -> None:
    assert index().before_offset(offset) == position


@pytest.mark.parametrize(
    ("timestamp", "position"),
    [
        pytest.param(0, 0, id="before every time"),
        pytest.param(30, 0, id="a time reached just before an entry"),
        pytest.param(31, 200, id="a time first reached after an entry"),
        pytest.param(40, 200, id="a time reached just before the last entry"),
        pytest.param(41, 400, id="a time first reached after the last entry"),
        pytest.param(99, 400, id="after every time"),
    ],
)
def test_before_a_timestamp(timestamp: int, position: int) -> None:
    assert index().before_timestamp(timestamp) == position


@pytest.mark.parametrize(
    ("limits", "position"), [((599, 1000), 400), ((399, 1000), 200), ((599, 48), 200), ((199, 49), 0), ((400, 49), 400)]
)
def test_before_limits(limits: tuple[int, int], position: int) -> None:
    assert index().before_limits(*limits) == position


@pytest.mark.parametrize(("cut", "start"), [(600, 400), (401, 400), (400, 200), (300, 200), (200, 0), (100, 0), (0, 0)])
def test_rewinding_forgets_an_entry_before_the_cut_and_all_after_it(cut: int, start: int) -> None:
    rewound = index()
    assert rewound.rewind(cut) == start
    assert rewound.before_offset(1000) == max(start - 200, 0)
    assert rewound.newest[0] == max(TIMES[: start // 100], default=-1)


def test_an_empty_index_knows_the_start_of_the_file() -> None:
    empty = OffsetIndex(interval_bytes=150)
    assert (empty.before_offset(5), empty.before_timestamp(5), empty.rewind(0), empty.newest) == (0, 0, 0, (-1, -1))


def test_what_was_encoded_lacks_only_what_came_after_the_last_entry() -> None:
    offsets, times = index().encoded(0)
    again = OffsetIndex.decoded(offsets, times, 0, 150)
    assert [again.before_offset(offset) for offset in range(60)] == [index().before_offset(o) for o in range(60)]
    assert [again.before_timestamp(time) for time in range(70)] == [index().before_timestamp(t) for t in range(70)]
    assert again.rewind(1000) == 400
    for number in (4, 5):
        again.add(number * 10 + 9, number * 100, TIMES[number])
    assert again.encoded(0) == (offsets, times)


@pytest.mark.parametrize(
    ("offsets", "times"),
    [
        pytest.param(bytes(7), b"", id="half an entry by offset"),
        pytest.param(bytes(8), bytes(11), id="half an entry by time"),
        pytest.param(bytes(16), b"", id="offsets that do not increase"),
        pytest.param(bytes(8), bytes(24), id="times that do not increase"),
    ],
)
def test_what_is_no_index_is_refused(offsets: bytes, times: bytes) -> None:
    with pytest.raises(ValueError, match=r"entries|come after"):
        OffsetIndex.decoded(offsets, times, 0, 150)

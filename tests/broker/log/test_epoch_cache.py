import pytest

from harness.broker.log.epoch_cache import LeaderEpochCache

ENTRIES = [(1, 0), (3, 10), (5, 20)]
LOG_END = 30


def cache(entries: list[tuple[int, int]]) -> LeaderEpochCache:
    return LeaderEpochCache(entries)


@pytest.mark.parametrize(
    ("epoch", "start", "expected", "changed"),
    [
        pytest.param(6, 30, [*ENTRIES, (6, 30)], True, id="a new epoch comes last"),
        pytest.param(5, 20, ENTRIES, False, id="the newest epoch again is no change"),
        pytest.param(5, 25, ENTRIES, False, id="the newest epoch at a later offset is no change"),
        pytest.param(5, 15, [(1, 0), (3, 10), (5, 15)], True, id="the newest epoch turns out to start earlier"),
        pytest.param(5, 10, [(1, 0), (5, 10)], True, id="the newest epoch takes the start of the one before"),
        pytest.param(
            6, 20, [(1, 0), (3, 10), (6, 20)], True, id="a new epoch at the same start replaces the empty one"
        ),
        pytest.param(6, 5, [(1, 0), (6, 5)], True, id="a new epoch at an early offset drops all that start later"),
        pytest.param(4, 25, [(1, 0), (3, 10), (4, 25)], True, id="an older epoch drops every newer one"),
        pytest.param(3, 40, [(1, 0), (3, 40)], True, id="a known older epoch replaces itself and what follows"),
        pytest.param(0, 0, [(0, 0)], True, id="epoch 0 at offset 0 drops everything"),
    ],
)
def test_assign(epoch: int, start: int, expected: list[tuple[int, int]], changed: bool) -> None:
    epochs = cache(ENTRIES)
    assert epochs.assign(epoch, start) is changed
    assert list(epochs) == expected


def test_assign_to_an_empty_cache() -> None:
    epochs = cache([])
    assert epochs.assign(0, 0)
    assert (list(epochs), epochs.latest_epoch, len(epochs)) == ([(0, 0)], 0, 1)


@pytest.mark.parametrize(("epoch", "start"), [(-1, 0), (0, -1)])
def test_an_epoch_or_offset_below_zero_is_refused(epoch: int, start: int) -> None:
    with pytest.raises(ValueError, match="cannot start"):
        cache([]).assign(epoch, start)


@pytest.mark.parametrize(
    ("entries", "epoch", "expected"),
    [
        pytest.param([], 0, (-1, -1), id="nothing is known"),
        pytest.param([], -1, (-1, -1), id="the undefined epoch of an empty cache"),
        pytest.param(ENTRIES, -1, (-1, -1), id="the undefined epoch"),
        pytest.param(ENTRIES, 5, (5, LOG_END), id="the newest epoch ends at the log end"),
        pytest.param(ENTRIES, 6, (-1, -1), id="an epoch not seen yet is undefined"),
        pytest.param(ENTRIES, 0, (0, 0), id="an epoch before the first ends where the first starts"),
        pytest.param([(2, 7)], 1, (1, 7), id="an epoch before the only one ends where that starts"),
        pytest.param(ENTRIES, 1, (1, 10), id="a known epoch ends where the next starts"),
        pytest.param(ENTRIES, 3, (3, 20), id="the one before the newest ends where the newest starts"),
        pytest.param(ENTRIES, 2, (1, 10), id="a skipped epoch answers with the largest below it"),
        pytest.param(ENTRIES, 4, (3, 20), id="the last skipped epoch answers with the largest below it"),
    ],
)
def test_end_offset_for(entries: list[tuple[int, int]], epoch: int, expected: tuple[int, int]) -> None:
    assert cache(entries).end_offset_for(epoch, LOG_END) == expected


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        pytest.param(21, ENTRIES, id="after every start keeps all"),
        pytest.param(20, ENTRIES[:2], id="at a start drops that epoch"),
        pytest.param(11, ENTRIES[:2], id="within an epoch keeps it"),
        pytest.param(0, [], id="at zero drops all"),
    ],
)
def test_truncate_from_end(end: int, expected: list[tuple[int, int]]) -> None:
    epochs = cache(ENTRIES)
    assert epochs.truncate_from_end(end) is (expected != ENTRIES)
    assert list(epochs) == expected


@pytest.mark.parametrize(
    ("entries", "start", "expected"),
    [
        pytest.param(ENTRIES, 0, ENTRIES, id="at the first start changes nothing"),
        pytest.param(ENTRIES, 5, [(1, 5), (3, 10), (5, 20)], id="within the first epoch moves its start"),
        pytest.param(ENTRIES, 10, [(3, 10), (5, 20)], id="at a later start drops what ended there"),
        pytest.param(ENTRIES, 15, [(3, 15), (5, 20)], id="within a later epoch drops and moves"),
        pytest.param(ENTRIES, 99, [(5, 99)], id="past all keeps the newest"),
        pytest.param([(4, 50)], 10, [(4, 50)], id="before the first start changes nothing"),
        pytest.param([], 10, [], id="an empty cache stays empty"),
    ],
)
def test_truncate_from_start(entries: list[tuple[int, int]], start: int, expected: list[tuple[int, int]]) -> None:
    epochs = cache(entries)
    assert epochs.truncate_from_start(start) is (expected != entries)
    assert list(epochs) == expected


@pytest.mark.parametrize(("offset", "epoch"), [(0, 1), (9, 1), (10, 3), (19, 3), (20, 5), (1000, 5)])
def test_epoch_at(offset: int, epoch: int) -> None:
    assert cache(ENTRIES).epoch_at(offset) == epoch


def test_no_epoch_wrote_what_lies_before_the_first_entry() -> None:
    assert cache([(4, 50)]).epoch_at(49) == -1


def test_clear() -> None:
    epochs = cache(ENTRIES)
    assert (epochs.clear(), epochs.clear(), list(epochs), epochs.latest_epoch) == (True, False, [], -1)

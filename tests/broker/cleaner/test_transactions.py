"""Compaction of transactions: aborted records go, markers stay as long as what they decide, nothing open is cleaned."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.broker.log.batch import Numbering, iter_batches
from harness.broker.log.log import Log
from harness.broker.log.markers import TRANSACTIONAL, Marker, marker_batch, read_marker
from harness.broker.log.producers import ProducerStates
from harness.broker.rules import rules_with
from harness.simulation.disk import MemoryStorage
from harness.simulation.loop import run
from tests.broker.cleaner.compacted import COMPACTED, NOW_MS, batch, clean, compacted_log, contents, reopened, rolled
from tests.broker.cleaner.test_crashes import Crash, MortalStorage
from tests.broker.log.logs import everything, headers, opened

RETENTION_MS = COMPACTED.delete_retention_ms
LATEST = 1 << 40


def written(log: Log, *steps: str) -> Log:
    """Carry out steps: `7 a1` writes key a in a transaction, `- a1` without one, `7 commits`, `7 aborts`."""
    sequences: dict[int, int] = {}
    for step in steps:
        writer, what = step.split()
        if writer == "-":
            log.append_as_leader(batch((what[0], what)), 0)
        elif what in ("commits", "aborts"):
            marker = Marker(what == "commits", 0)
            sent = marker_batch(marker, producer_id=int(writer), producer_epoch=0, timestamp_ms=NOW_MS)
            log.append_as_leader(sent, 0, internal=True)
        else:
            producer_id = int(writer)
            known = log.producers.get(producer_id)
            sequence = known.batches[-1].last_sequence + 1 if known is not None and known.batches else 0
            sequences[producer_id] = sequence
            sent = batch((what[0], what), numbering=Numbering(producer_id, 0, sequence), attributes=TRANSACTIONAL)
            verification = log.producer_history.verifications.begin(headers(sent)[0], 0)
            log.append_as_leader(sent, 0, verification=verification)
    return log


def values(log: Log) -> list[str | None]:
    """Of the records that are left, without markers."""
    markers = {header.base_offset for header in headers(everything(log)) if header.is_control}
    return [value for offset, _, value in contents(log) if offset not in markers]


def markers_in(log: Log) -> list[int]:
    return [header.base_offset for header in headers(everything(log)) if header.is_control and header.records_count]


async def test_aborted_records_go_and_replace_nothing() -> None:
    log = rolled(written(compacted_log(), "- a1", "7 a2", "7 b2", "7 aborts", "- b3"))
    await clean(log)
    assert values(log) == ["a1", "b3"]
    assert markers_in(log) == [3], "batches of its producer are left, though empty"
    assert [tuple(each) for each in log.aborted_transactions(0, LATEST)] == [(7, 1, 3, 4)]


async def test_committed_records_are_compacted_as_any() -> None:
    log = rolled(written(compacted_log(), "7 a1", "7 commits", "8 a2", "8 b2", "8 commits"))
    await clean(log)
    assert values(log) == ["a2", "b2"]


async def test_records_after_an_aborted_transaction_of_the_same_producer_count() -> None:
    log = rolled(written(compacted_log(), "7 a1", "7 aborts", "7 a2", "7 commits", "7 a3", "7 aborts"))
    await clean(log)
    assert values(log) == ["a2"]


@pytest.mark.parametrize(
    ("steps", "forgotten", "left"),
    [
        pytest.param(["7 a1", "7 aborts"], True, [[1], [1], []], id="of an aborted transaction, once it is empty"),
        pytest.param(["7 a1", "7 commits", "- a2"], True, [[1], [1], []], id="of a committed one that was replaced"),
        pytest.param(["7 a1", "7 commits"], True, [[1], [1], [1]], id="stays as long as a record of its transaction"),
        pytest.param(["7 a1", "7 aborts"], False, [[1], [1], [1]], id="stays with the emptied batch of a producer"),
        pytest.param(["7 commits"], True, [[0], [0], []], id="without a transaction"),
        pytest.param(["7 commits"], False, [[0], [0], []], id="that alone has a producer's state is emptied"),
    ],
)
async def test_a_marker(steps: list[str], forgotten: bool, left: list[list[int]]) -> None:
    """Cleaned three times: at once, before and after the time is over that tombstones stay."""
    log = rolled(written(compacted_log(), *steps))
    if forgotten:
        log.producer_history.expire(NOW_MS + 1)
    seen = []
    for later_ms in (0, RETENTION_MS - 1, 2 * RETENTION_MS):
        written(log, "- z1")
        rolled(log)
        log.cleaned_to = log.log_start_offset
        await clean(log, now_ms=NOW_MS + later_ms)
        seen.append(markers_in(log))
    assert seen == left
    if not forgotten and steps == ["7 commits"]:
        assert [header.producer_id for header in headers(everything(log)) if header.is_control] == [7]


async def test_the_horizon_of_a_marker_is_set_once() -> None:
    log = rolled(written(compacted_log(), "7 commits", "- a1"))
    for later_ms in (0, 1000):
        log.cleaned_to = 0
        await clean(rolled(written(log, "- z1")), now_ms=NOW_MS + later_ms)
    horizons = [header.delete_horizon_ms for header in headers(everything(log)) if header.is_control]
    assert horizons == [NOW_MS + RETENTION_MS]


async def test_nothing_from_the_first_unstable_offset_on_is_cleaned() -> None:
    log = written(compacted_log(), "- a1", "- a2")
    rolled(written(rolled(log), "7 a3", "- a4"))
    await clean(rolled(written(log, "- a5")))
    assert values(log) == ["a2", "a3", "a4", "a5"]


@pytest.mark.parametrize(
    ("bugs", "markers"), [pytest.param([], [1], id="right"), pytest.param(["markers-cleaned-early"], [], id="bug")]
)
async def test_with_the_planted_bug_a_marker_goes_before_its_records(bugs: list[str], markers: list[int]) -> None:
    log, _ = opened(MemoryStorage(), settings=COMPACTED, rules=rules_with(bugs))
    rolled(written(log, "7 a1", "7 commits"))
    for later_ms in (0, 2 * RETENTION_MS):
        log.cleaned_to = 0
        await clean(rolled(written(log, "- z1")), now_ms=NOW_MS + later_ms)
    assert markers_in(log) == markers


STEPS = ("- a1", "7 a2", "8 b1", "7 aborts", "8 commits", "7 c1", "7 aborts", "- d1", "8 b2", "8 aborts", "- a3")


@pytest.mark.parametrize("power_lost", [False, True])
async def test_a_crash_at_any_step_leaves_an_index_that_fits(power_lost: bool) -> None:
    def dirty() -> tuple[MortalStorage, Log]:
        storage = MortalStorage()
        log = written(compacted_log(storage, segment_bytes=200), *STEPS)
        log.flush()
        log.seal()
        log.expect_gaps()
        log.settings = compacted_log(segment_bytes=900).settings
        return storage, log

    storage, log = dirty()
    storage.steps_left = 10_000
    await clean(log)
    steps = 10_000 - storage.steps_left
    assert steps > 15
    for step in range(steps):
        storage, log = dirty()
        storage.steps_left = step
        with pytest.raises(Crash):
            await clean(log)
        storage.steps_left = None
        if power_lost:
            storage.lose_power()
        again = reopened(storage, clean=not power_lost, cleaned_to=0, recovery_point=11, segment_bytes=900)
        assert visible(again) == {"a": "a3", "b": "b1", "d": "d1"}, f"step {step}"
        assert not [name for name in storage.list("t-0") if ".cleaned" in name or ".swap" in name]


def visible(log: Log) -> dict[str, str]:
    """Return what consumers that read committed have of each key when they have read all."""
    aborted = sorted(log.aborted_transactions(0, LATEST), key=lambda each: each.first_offset)
    end = log.log_end_offset if log.first_unstable_offset(LATEST) is None else log.first_unstable_offset(LATEST)
    under_way: set[int] = set()
    latest: dict[str, str] = {}
    records = {offset: (key, value) for offset, key, value in contents(log)}
    for header, data in iter_batches(everything(log)):
        while aborted and aborted[0].first_offset <= header.last_offset:
            under_way.add(aborted.pop(0).producer_id)
        if header.is_control:
            marker = read_marker(data, header)
            if marker is not None and not marker.commits:
                under_way.discard(header.producer_id)
            continue
        if header.is_transactional and header.producer_id in under_way:
            continue
        for offset in range(header.base_offset, header.last_offset + 1):
            key, value = records.get(offset, (None, None))
            if key is not None and value is not None and offset < (end or 0):
                latest[key] = value
    return latest


moves = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("789-"), st.sampled_from(["a1", "a2", "b1", "c1"])),
        st.tuples(st.sampled_from("789"), st.sampled_from(["commits", "aborts"])),
        st.tuples(st.just("clean"), st.integers(0, 2)),
        st.tuples(st.just("restart"), st.booleans()),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(moves)
def test_consumers_see_the_same_before_and_after_any_cleaning(moves: list[tuple[str, object]]) -> None:
    """What is read committed is that of a log that is never cleaned, and producers are what they were."""

    async def played() -> None:
        storage = MemoryStorage()
        log, twin = compacted_log(storage, segment_bytes=300), compacted_log()
        now_ms = NOW_MS
        for writer, what in moves:
            if writer == "clean":
                now_ms += int(what) * RETENTION_MS  # type: ignore[call-overload]
                await clean(log, now_ms=now_ms)
            elif writer == "restart":
                log.flush()
                if what:
                    log.seal()
                log.close()
                log = reopened(
                    storage,
                    clean=bool(what),
                    cleaned_to=log.cleaned_to,
                    recovery_point=log.log_end_offset,
                    segment_bytes=300,
                )
            else:
                for each in (log, twin):
                    written(each, f"{writer} {what}")
            assert visible(log) == visible(twin)
            assert log.first_unstable_offset(LATEST) == twin.first_unstable_offset(LATEST)
        assert known(log.producers) == known(twin.producers)

    run(played())


def known(states: ProducerStates) -> dict[int, tuple[int, int | None, int | None]]:
    return {
        producer_id: (
            state.epoch,
            state.transaction_start,
            state.batches[-1].last_sequence if state.batches else None,
        )
        for producer_id, state in states.items()
    }

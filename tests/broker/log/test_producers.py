"""Idempotent producers: what is taken, what is answered as a duplicate, what is refused, and what is remembered."""

from collections import deque
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.broker.log.batch import parse_header
from harness.broker.log.log import InvalidRecords, Log
from harness.broker.log.producers import ProducerStates
from harness.broker.rules import rules_with
from harness.broker.wire.error_codes import ErrorCode
from harness.simulation.disk import MemoryStorage
from tests.broker.log.logs import everything, from_producer, headers, new_log, opened, write_in_transaction

LAST = 2**31 - 1


def append(log: Log, sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7) -> int:
    """Send one batch; return its base offset."""
    sent = from_producer(sequence, count, producer_epoch=epoch, producer_id=producer_id)
    return log.append_as_leader(sent, 0).base_offset


def written(*batches: tuple[int, ...]) -> Log:
    """A log with these batches: sequence, count, producer epoch."""
    log = new_log()
    for sequence, *rest in batches:
        append(log, sequence, *rest[:1], epoch=rest[1] if len(rest) > 1 else 0)
    return log


@pytest.mark.parametrize(
    ("before", "sent", "base_offset"),
    [
        pytest.param([], (0,), 0, id="a new producer starts at 0"),
        pytest.param([], (41,), 0, id="of a producer that is not known any sequence is taken (KIP-360)"),
        pytest.param([(0, 3)], (3,), 3, id="the next sequence follows"),
        pytest.param([(LAST, 1)], (0,), 1, id="after the largest sequence comes 0"),
        pytest.param([(LAST - 1, 4)], (2,), 4, id="a batch may span the largest sequence"),
        pytest.param([(0, 3)], (0, 1, 1), 3, id="a new epoch starts at 0"),
        pytest.param([(5, 1, -1)], (9, 1, -1), 1, id="without an epoch sequences are not looked at"),
        pytest.param([(5, 1, -1)], (9, 1, 0), 1, id="after no epoch any sequence starts the first one"),
    ],
)
def test_is_written(before: Sequence[tuple[int, ...]], sent: tuple[int, ...], base_offset: int) -> None:
    log = written(*before)
    sequence, *rest = sent
    assert append(log, sequence, *rest[:1], epoch=rest[1] if len(rest) > 1 else 0) == base_offset


@pytest.mark.parametrize(
    ("before", "sent", "error"),
    [
        pytest.param([(0, 3)], (4,), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="a gap"),
        pytest.param([(0, 3)], (1, 2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="a part of what was written"),
        pytest.param([(0, 3)], (2, 2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="an overlap"),
        pytest.param([(0, 3)], (3, 1, 1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="a new epoch not at 0"),
        pytest.param([(0, 1, 2)], (1, 1, 1), ErrorCode.INVALID_PRODUCER_EPOCH, id="an epoch that is over"),
        pytest.param([(0, 1, 2)], (0, 1, 1), ErrorCode.INVALID_PRODUCER_EPOCH, id="a duplicate in an old epoch"),
        pytest.param(
            [(n, 1) for n in range(6)], (0, 1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="a duplicate that is too old"
        ),
    ],
)
def test_is_refused_and_nothing_written(
    before: Sequence[tuple[int, ...]], sent: tuple[int, ...], error: ErrorCode
) -> None:
    log = written(*before)
    end = log.log_end_offset
    sequence, *rest = sent
    with pytest.raises(InvalidRecords) as refusal:
        append(log, sequence, *rest[:1], epoch=rest[1] if len(rest) > 1 else 0)
    assert (refusal.value.error_code, log.log_end_offset) == (error, end)


@pytest.mark.parametrize("sequence", range(1, 6))
def test_each_of_the_last_five_batches_is_answered_with_its_first_offset(sequence: int) -> None:
    log = written(*[(n, 1) for n in range(6)])
    info = log.append_as_leader(from_producer(sequence), 3)
    assert (info.base_offset, info.last_offset, info.batches) == (sequence, sequence, [])
    assert log.log_end_offset == 6
    assert log.epochs.latest_epoch == 0, "a duplicate begins no leader epoch"


def test_a_duplicate_that_spans_the_largest_sequence_is_known() -> None:
    log = written((LAST - 1, 4))
    assert append(log, LAST - 1, 4) == 0
    assert log.log_end_offset == 4


def test_a_duplicate_says_the_largest_timestamp_of_its_batch() -> None:
    log = new_log()
    sent = from_producer(0, 3, timestamp_ms=100)
    assert log.append_as_leader(sent, 0).append_time_ms == -1
    assert log.append_as_leader(sent, 0).append_time_ms == 102


def test_producers_do_not_mix() -> None:
    log = written((0, 2))
    assert append(log, 0, producer_id=8) == 2
    assert append(log, 2) == 3
    assert append(log, 1, producer_id=8) == 4


def test_a_write_that_the_disk_refused_is_not_remembered(storage: MemoryStorage) -> None:
    log = new_log(storage)
    append(log, 0)
    storage.space_left = 10
    with pytest.raises(OSError, match="No space left"):
        append(log, 1)
    storage.space_left = None
    assert append(log, 1) == 1


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_remembers(storage: MemoryStorage, clean: bool) -> None:
    log = new_log(storage)
    for sequence in range(9):
        append(log, sequence)
    log.flush()
    again, _ = opened(storage, clean=clean, recovery_point=log.recovery_point)
    assert append(again, 8) == 8
    assert append(again, 9) == 9


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_forgets_producers_that_have_expired_but_for_open_transactions(
    storage: MemoryStorage, clean: bool
) -> None:
    log = new_log(storage)
    for producer_id, timestamp_ms in ((1, 100), (2, 101)):
        log.append_as_leader(from_producer(0, producer_id=producer_id, timestamp_ms=timestamp_ms), 0)
    write_in_transaction(log, 0, producer_id=3)
    if clean:
        log.seal()
    again, _ = opened(storage, clean=clean, recovery_point=log.log_end_offset, expired_ms=100)
    assert [each for each, _ in again.producers.items()] == [2, 3]


def test_with_the_planted_bug_a_restart_forgets_and_a_retry_is_written_twice(storage: MemoryStorage) -> None:
    append(new_log(storage), 0)
    again, _ = opened(storage, rules=rules_with(["producer-state-lost"]))
    assert append(again, 0) == 1


def test_a_truncation_forgets_what_it_dropped_and_no_more() -> None:
    log = written(*[(n, 1) for n in range(8)])
    log.truncate_to(6)
    assert append(log, 6) == 6
    assert append(log, 2) == 2, "the fifth last"


def test_a_log_that_starts_over_knows_nobody() -> None:
    log = written((0, 1), (1, 1))
    log.truncate_fully_and_start_at(10)
    assert append(log, 0) == 10


def test_a_follower_remembers_what_its_leader_wrote() -> None:
    leader, follower = written((0, 2), (2, 1)), new_log()
    assert len(follower.producers) == 0
    follower.append_as_follower(everything(leader))
    assert append(follower, 2) == 2
    assert append(follower, 3) == 3


def test_producers_that_wrote_nothing_for_long_are_forgotten() -> None:
    states = ProducerStates()
    for producer_id, timestamp_ms in ((1, 100), (2, 101)):
        states.note(parse_header(from_producer(0, producer_id=producer_id, timestamp_ms=timestamp_ms)))
    assert states.expire(100) == [1]
    assert 1 not in states
    assert 2 in states


sends = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(7, 8), st.integers(0, 1), st.integers(0, 9), st.integers(1, 3)),
        st.tuples(st.just("go on"), st.integers(7, 8), st.just(0), st.just(0), st.integers(1, 3)),
        st.tuples(st.just("truncate"), st.integers(0, 4), st.just(0), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(sends)
def test_what_is_known_is_always_what_the_log_holds(steps: list[tuple[str, int, int, int, int]]) -> None:
    """And no sequence number of one epoch is ever in the log twice, or missing in between."""
    log = new_log()
    for kind, producer_id, epoch, sequence, count in steps:
        if kind == "truncate":
            log.truncate_to(max(0, log.log_end_offset - producer_id))
            continue
        if kind == "go on" and producer_id in log.producers:
            state = log.producers[producer_id]
            epoch, sequence = state.epoch, state.batches[-1].last_sequence + 1
        try:
            append(log, sequence, count, epoch=epoch, producer_id=producer_id)
        except InvalidRecords:
            continue
    deque(log.producer_history.recall(log.segments), 0)
    held = headers(everything(log))
    reread = ProducerStates(held)
    assert len(reread) == len(log.producers)
    for producer_id in {header.producer_id for header in held}:
        assert log.producers[producer_id] == reread[producer_id]
        for epoch in (0, 1):
            mine = [h for h in held if (h.producer_id, h.producer_epoch) == (producer_id, epoch)]
            firsts = [h.base_sequence for h in mine]
            lasts = [h.base_sequence + h.last_offset_delta for h in mine]
            assert firsts[1:] == [last + 1 for last in lasts[:-1]]

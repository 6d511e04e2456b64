"""What each request does to a transaction in each state, by the rules of Kafka 3.9's `TransactionCoordinator`."""

from dataclasses import replace
from typing import Any

import pytest

from harness.broker.rules import rules_with
from harness.broker.transactions.metadata import TransactionMetadata, TransactionState
from harness.broker.transactions.transaction import Decision, ImpossibleTransition, Need, Producer, Transaction
from harness.broker.wire.error_codes import ErrorCode

State = TransactionState
NOW, LATER = 1_000, 2_000
P0, P1 = ("t", 0), ("t", 1)
ITS = Producer(7, 3)
KNOWN = TransactionMetadata(producer_id=7, producer_epoch=3, timeout_ms=100, updated_ms=NOW)


def in_state(state: TransactionState, **changes: Any) -> Transaction:
    partitions = frozenset() if state is State.EMPTY or state.name.startswith("COMPLETE") else frozenset({P0})
    started_ms = -1 if state is State.EMPTY else NOW
    return Transaction("id", replace(KNOWN, state=state, partitions=partitions, started_ms=started_ms, **changes))


def outcome(decision: Decision | Need) -> Any:
    """Return an error, or the state and the epoch that are to be stored."""
    if isinstance(decision, TransactionMetadata):
        return decision.state, decision.producer_epoch
    return decision


def end(transaction: Transaction, producer: Producer = ITS, *, commit: bool = True) -> Any:
    return outcome(transaction.end(producer, commit=commit, now_ms=LATER))


BUSY, BAD, NONE = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE, ErrorCode.NONE


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        pytest.param(State.EMPTY, BAD, BAD, id="nothing has begun"),
        pytest.param(State.ONGOING, (State.PREPARE_COMMIT, 3), (State.PREPARE_ABORT, 3), id="it is open"),
        pytest.param(State.PREPARE_COMMIT, BUSY, BAD, id="it is being committed"),
        pytest.param(State.PREPARE_ABORT, BAD, BUSY, id="it is being aborted"),
        pytest.param(State.COMPLETE_COMMIT, NONE, BAD, id="it is committed"),
        pytest.param(State.COMPLETE_ABORT, BAD, NONE, id="it is aborted"),
    ],
)
def test_a_transaction_ends_once_and_in_one_way(state: TransactionState, commit: Any, abort: Any) -> None:
    assert (end(in_state(state)), end(in_state(state), commit=False)) == (commit, abort)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(State.EMPTY, (State.ONGOING, 3), id="the first partition begins it"),
        pytest.param(State.ONGOING, (State.ONGOING, 3), id="it is open"),
        pytest.param(State.PREPARE_COMMIT, BUSY, id="it is being committed"),
        pytest.param(State.PREPARE_ABORT, BUSY, id="it is being aborted"),
        pytest.param(State.COMPLETE_COMMIT, (State.ONGOING, 3), id="the one before is committed"),
        pytest.param(State.COMPLETE_ABORT, (State.ONGOING, 3), id="the one before is aborted"),
    ],
)
def test_partitions_are_added(state: TransactionState, expected: Any) -> None:
    assert outcome(in_state(state).add_partitions(ITS, {P1}, LATER)) == expected


def test_the_first_partition_starts_the_clock_and_later_ones_do_not() -> None:
    first = in_state(State.COMPLETE_COMMIT).add_partitions(ITS, {P1}, LATER)
    second = in_state(State.ONGOING).add_partitions(ITS, {P1}, LATER)
    assert isinstance(first, TransactionMetadata)
    assert isinstance(second, TransactionMetadata)
    assert (first.started_ms, first.partitions) == (LATER, frozenset({P1}))
    assert (second.started_ms, second.partitions) == (NOW, frozenset({P0, P1}))


def test_partitions_that_it_has_are_answered_at_once() -> None:
    assert in_state(State.ONGOING).add_partitions(ITS, {P0}, LATER) is NONE


@pytest.mark.parametrize(
    ("producer", "error"),
    [
        pytest.param(Producer(8, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING, id="another producer id"),
        pytest.param(Producer(7, 2), ErrorCode.PRODUCER_FENCED, id="an older epoch"),
        pytest.param(Producer(7, 4), ErrorCode.PRODUCER_FENCED, id="an epoch that was never assigned"),
    ],
)
def test_another_producer_is_fenced(producer: Producer, error: ErrorCode) -> None:
    for state in (State.EMPTY, State.ONGOING, State.PREPARE_COMMIT, State.COMPLETE_ABORT):
        transaction = in_state(state)
        assert transaction.add_partitions(producer, {P1}, LATER) is error
        assert end(transaction, producer) is error
        assert transaction.verify(producer, [P0]) == {P0: error}


@pytest.mark.parametrize(
    ("state", "errors"),
    [
        pytest.param(State.ONGOING, (NONE, ErrorCode.TRANSACTION_ABORTABLE), id="it is open"),
        pytest.param(State.EMPTY, (ErrorCode.TRANSACTION_ABORTABLE,) * 2, id="nothing has begun"),
        pytest.param(State.COMPLETE_ABORT, (ErrorCode.TRANSACTION_ABORTABLE,) * 2, id="it was aborted by its time-out"),
        pytest.param(State.PREPARE_COMMIT, (BUSY, BUSY), id="it is being committed"),
    ],
)
def test_partitions_are_verified(state: TransactionState, errors: tuple[ErrorCode, ErrorCode]) -> None:
    assert in_state(state).verify(ITS, [P0, P1]) == dict(zip((P0, P1), errors, strict=True))


# --- InitProducerId ---


def begins(
    state: TransactionState, expected: Producer | None = None, new_id: int | None = None, **changes: Any
) -> tuple[Any, ...]:
    decision = in_state(state, **changes).init_producer_id(50, expected, LATER, new_id)
    if isinstance(decision, TransactionMetadata):
        return decision.state, decision.producer_id, decision.producer_epoch, decision.last_producer_epoch
    return (decision,)


EXHAUSTED = {"producer_epoch": 32_766}
FENCED = (ErrorCode.PRODUCER_FENCED,)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param({"state": State.EMPTY}, (State.EMPTY, 7, 4, -1), id="the next epoch"),
        pytest.param({"state": State.COMPLETE_ABORT}, (State.EMPTY, 7, 4, -1), id="after an abort"),
        pytest.param({"state": State.EMPTY, "producer_epoch": -1}, (State.EMPTY, 7, 0, -1), id="the first session"),
        pytest.param({"state": State.PREPARE_ABORT}, (BUSY,), id="it is being aborted"),
        pytest.param({"state": State.ONGOING}, (State.PREPARE_EPOCH_FENCE, 7, 4, -1), id="an open one is fenced first"),
        pytest.param(
            {"state": State.EMPTY, "expected": ITS}, (State.EMPTY, 7, 4, 3), id="the producer goes on (KIP-360)"
        ),
        pytest.param(
            {"state": State.EMPTY, "expected": Producer(7, 2), "last_producer_epoch": 2},
            (State.EMPTY, 7, 3, 2),
            id="a retry of going on gets the same epoch",
        ),
        pytest.param({"state": State.EMPTY, "expected": Producer(7, 1)}, FENCED, id="an older epoch cannot go on"),
        pytest.param({"state": State.EMPTY, "expected": Producer(8, 3)}, FENCED, id="nor another producer id"),
        pytest.param(
            {"state": State.EMPTY, "expected": Producer(8, 3), "producer_epoch": -1},
            (State.EMPTY, 7, 0, -1),
            id="whatever a producer knew before the id was forgotten",
        ),
        pytest.param({"state": State.EMPTY, **EXHAUSTED}, (Need.PRODUCER_ID,), id="no epoch is left"),
        pytest.param({"state": State.EMPTY, "new_id": 9, **EXHAUSTED}, (State.EMPTY, 9, 0, -1), id="a new producer id"),
        pytest.param(
            {"state": State.EMPTY, "new_id": 9, "expected": Producer(7, 32_766), **EXHAUSTED},
            (State.EMPTY, 9, 0, 32_766),
            id="a producer goes on under a new id",
        ),
        pytest.param(
            {
                "state": State.EMPTY,
                "expected": Producer(6, 32_766),
                "last_producer_id": 6,
                "producer_epoch": 0,
                "last_producer_epoch": 32_766,
            },
            (State.EMPTY, 7, 0, 32_766),
            id="and may ask again",
        ),
        pytest.param(
            {"state": State.EMPTY, "expected": Producer(7, 5), **EXHAUSTED},
            (ErrorCode.UNKNOWN_SERVER_ERROR,),
            id="no epoch is left, and the producer names another one",
        ),
    ],
)
def test_a_session_begins(arguments: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert begins(**arguments) == expected


def test_an_open_transaction_is_aborted_under_a_raised_epoch() -> None:
    transaction = in_state(State.ONGOING)
    fence = transaction.fence()
    raised = Producer(fence.producer_id, fence.producer_epoch)
    aborted = transaction.end(raised, commit=False, from_client=False, now_ms=LATER)
    assert outcome(aborted) == (State.PREPARE_ABORT, 4)
    assert end(transaction) is ErrorCode.PRODUCER_FENCED


def test_an_epoch_that_could_not_be_stored_is_not_raised_again() -> None:
    transaction = in_state(State.ONGOING)
    fence = transaction.fence()
    transaction.end(Producer(7, fence.producer_epoch), commit=False, from_client=False, now_ms=LATER)
    transaction.not_stored(fenced=True)
    assert transaction.fence().producer_epoch == 4


def test_while_something_is_being_stored_everything_else_is_refused() -> None:
    transaction = in_state(State.ONGOING)
    decided = transaction.end(ITS, commit=True, now_ms=LATER)
    assert transaction.add_partitions(ITS, {P1}, LATER) is BUSY
    assert end(transaction, commit=False) is BUSY
    assert transaction.init_producer_id(50, None, LATER) is BUSY
    assert not transaction.has_timed_out(10 * LATER)
    assert isinstance(decided, TransactionMetadata)
    transaction.stored(decided)
    assert transaction.metadata.state is State.PREPARE_COMMIT


def test_it_is_complete_when_every_marker_is_written() -> None:
    transaction = in_state(State.PREPARE_COMMIT)
    completed = transaction.complete(LATER)
    transaction.marked([P0])
    transaction.stored(completed)
    assert (transaction.metadata.state, transaction.metadata.partitions) == (State.COMPLETE_COMMIT, frozenset())
    with pytest.raises(ImpossibleTransition):
        transaction.marked([P0])


@pytest.mark.parametrize(
    ("state", "now_ms", "expected"),
    [
        pytest.param(State.ONGOING, 1_100, False, id="just in time"),
        pytest.param(State.ONGOING, 1_101, True, id="too late"),
        pytest.param(State.PREPARE_COMMIT, 9_999, False, id="decided"),
        pytest.param(State.EMPTY, 9_999, False, id="nothing has begun"),
    ],
)
def test_an_open_transaction_times_out(state: TransactionState, now_ms: int, expected: bool) -> None:
    assert in_state(state).has_timed_out(now_ms) is expected


@pytest.mark.parametrize(
    ("state", "now_ms", "expires"),
    [
        pytest.param(State.EMPTY, 1_500, True, id="unused for long enough"),
        pytest.param(State.COMPLETE_ABORT, 1_499, False, id="used of late"),
        pytest.param(State.ONGOING, 9_999, False, id="open"),
        pytest.param(State.PREPARE_ABORT, 9_999, False, id="being aborted"),
    ],
)
def test_an_unused_id_expires(state: TransactionState, now_ms: int, expires: bool) -> None:
    last = in_state(state).expire(now_ms, after_ms=500)
    assert (last is not None and last.state is State.DEAD) is expires


@pytest.mark.parametrize(
    ("bug", "attempt", "wrong"),
    [
        pytest.param(
            "no-transactional-fence", lambda each: end(each, Producer(7, 2)), (State.PREPARE_COMMIT, 3), id="fence"
        ),
        pytest.param(
            "transitions-overlap",
            lambda each: [end(each), end(each, commit=False)],
            [(State.PREPARE_COMMIT, 3), (State.PREPARE_ABORT, 3)],
            id="overlap",
        ),
    ],
)
def test_a_guard_of_an_open_transaction(bug: str, attempt: Any, wrong: Any) -> None:
    right = attempt(in_state(State.ONGOING))
    planted = in_state(State.ONGOING)
    planted.rules = rules_with([bug])
    assert attempt(planted) == wrong != right


def test_a_guard_of_an_ended_transaction() -> None:
    planted = in_state(State.COMPLETE_ABORT)
    planted.rules = rules_with(["other-outcome-accepted"])
    assert (end(in_state(State.COMPLETE_ABORT)), end(planted)) == (BAD, NONE)

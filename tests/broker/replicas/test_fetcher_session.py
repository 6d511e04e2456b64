"""What a follower names in its next fetch, whatever its leader made of the last."""

import pytest

from harness.broker.replicas.fetch_sessions import NO_SESSION
from harness.broker.replicas.fetcher_messages import Difference, PartitionRequest
from harness.broker.replicas.fetcher_session import FetcherSession
from harness.broker.wire.error_codes import ErrorCode

A, B, C = (("t", number) for number in range(3))
ID = 77


def ask(key: tuple[str, int], offset: int = 0) -> PartitionRequest:
    return PartitionRequest(key, 0, offset)


def begun() -> FetcherSession:
    """A session in which partitions A and B are fetched."""
    session = FetcherSession()
    assert session.next([ask(A), ask(B)]) == Difference(NO_SESSION, 0, [ask(A), ask(B)], ())
    assert session.answered(ID, {A, B})
    return session


@pytest.mark.parametrize(
    ("wanted", "changed", "forgotten"),
    [
        pytest.param([ask(A), ask(B)], [], [], id="nothing has changed"),
        pytest.param([ask(A), ask(B, 1)], [ask(B, 1)], [], id="one moved on"),
        pytest.param(
            [ask(A), ask(B)._replace(log_start_offset=1)], [ask(B)._replace(log_start_offset=1)], [], id="start"
        ),
        pytest.param([ask(A), ask(B), ask(C)], [ask(C)], [], id="one more"),
        pytest.param([ask(B)], [], [A], id="one less"),
        pytest.param([ask(C)], [ask(C)], [A, B], id="others"),
    ],
)
def test_only_what_changed_is_named(
    wanted: list[PartitionRequest], changed: list[PartitionRequest], forgotten: list[tuple[str, int]]
) -> None:
    session = begun()
    assert session.next(wanted) == Difference(ID, 1, changed, forgotten)
    assert session.answered(ID, set())
    assert session.next(wanted) == Difference(ID, 2, [], [])


@pytest.mark.parametrize(
    ("error", "names"),
    [
        pytest.param(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION, id="forgotten by the leader"),
        pytest.param(ErrorCode.INVALID_FETCH_SESSION_EPOCH, ID, id="out of step, to be ended"),
    ],
)
def test_after_a_refusal_everything_is_named_again(error: ErrorCode, names: int) -> None:
    session = begun()
    session.next([ask(A)])
    session.refused(error)
    assert session.next([ask(A)]) == Difference(names, 0, [ask(A)], ())


def test_after_a_lost_answer_everything_is_named_again() -> None:
    session = begun()
    session.next([ask(A, 5)])
    session.lost()
    assert session.next([ask(A, 5)]) == Difference(ID, 0, [ask(A, 5)], ())


def test_a_leader_may_give_no_session_or_end_one() -> None:
    session = begun()
    session.next([])
    assert session.answered(NO_SESSION, set())
    assert session.next([ask(A)]) == Difference(NO_SESSION, 0, [ask(A)], ())
    assert session.answered(NO_SESSION, {A})
    assert session.next([ask(A)]) == Difference(NO_SESSION, 0, [ask(A)], ())


@pytest.mark.parametrize(
    ("incremental", "named", "fits"),
    [
        pytest.param(False, [A], True, id="a full answer with all"),
        pytest.param(False, [], False, id="a full answer that lacks one"),
        pytest.param(False, [A, B], False, id="a full answer with one more"),
        pytest.param(True, [], True, id="no news"),
        pytest.param(True, [A], True, id="news of one"),
        pytest.param(True, [A, B], False, id="news of one that was not asked for"),
    ],
)
def test_an_answer_that_cannot_be_one_is_not_used(incremental: bool, named: list[tuple[str, int]], fits: bool) -> None:
    session = begun() if incremental else FetcherSession()
    session.next([ask(A)])
    assert session.answered(ID, set(named)) is fits
    epoch = (2 if incremental else 1) if fits else 0
    assert session.next([ask(A)]).session_epoch == epoch

"""Fetch sessions by themselves: their epochs, changes, and evictions. As recorded of Kafka 3.9."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from harness.broker.replicas.fetch_sessions import (
    EVICTION_S,
    FINAL_EPOCH,
    FIRST_EPOCH,
    FetchSessionError,
    FetchSessions,
)
from harness.broker.replicas.fetching import PartitionFetch, Read
from harness.broker.rules import ProtocolRules
from harness.broker.wire.error_codes import ErrorCode

A, B, C = (("t", number) for number in range(3))
LAST_EPOCH = 2**31 - 1


class Sessions(FetchSessions):
    """Sessions with a clock of their own, asked for partitions by key."""

    def __init__(self, slots: int = 10) -> None:
        self.time_s = 0.0
        super().__init__(slots=slots, rng=random.Random(1), now_s=lambda: self.time_s, rules=ProtocolRules())

    def fetch(
        self,
        session_id: int,
        epoch: int,
        *named: tuple[str, int],
        forgotten: Sequence[tuple[str, int]] = (),
        privileged: bool = False,
        **read: Any,
    ) -> tuple[int, list[tuple[str, int]]]:
        """One fetch of empty partitions: the session's id, and what is told."""
        fetch = self.begin(session_id, epoch, [partition_fetch(key) for key in named], forgotten, privileged=privileged)
        session_id, reads = fetch.answer([Read(each, ErrorCode.NONE, 0, 0, **read) for each in fetch.partitions])
        return session_id, [each.fetch.key for each in reads]

    def full(self, *named: tuple[str, int], privileged: bool = False) -> int:
        return self.fetch(0, FIRST_EPOCH, *named, privileged=privileged)[0]


def partition_fetch(key: tuple[str, int], offset: int = 0) -> PartitionFetch:
    return PartitionFetch(key, -1, offset, 1000)


def refused(sessions: Sessions, session_id: int, epoch: int) -> str:
    with pytest.raises(FetchSessionError) as refusal:
        sessions.fetch(session_id, epoch)
    return refusal.value.error.name


def test_a_session_tells_everything_once() -> None:
    sessions = Sessions()
    session = sessions.full(A, B)
    assert session > 0
    assert sessions.fetch(session, 1) == (session, [])
    assert sessions.fetch(session, 2, C) == (session, [C])
    assert sessions.fetch(session, 3, A, forgotten=[B]) == (session, [])
    assert (len(sessions), sessions.partitions) == (1, 2)


NEWS = [
    pytest.param({}, {}, False, id="nothing new"),
    pytest.param({}, {"records": b"x"}, True, id="records"),
    pytest.param({"records": b"x"}, {"records": b"x"}, True, id="the same records asked for again"),
    pytest.param({}, {"high_watermark": 1}, True, id="another high watermark"),
    pytest.param({}, {"log_start_offset": 1}, True, id="another log start"),
    pytest.param({}, {"error": ErrorCode.NOT_LEADER_FOR_PARTITION}, True, id="an error"),
    pytest.param(
        {"error": ErrorCode.NOT_LEADER_FOR_PARTITION},
        {"error": ErrorCode.NOT_LEADER_FOR_PARTITION},
        True,
        id="the same error again",
    ),
    pytest.param({"error": ErrorCode.NOT_LEADER_FOR_PARTITION}, {}, True, id="an error that is over"),
]


@pytest.mark.parametrize(("before", "now", "is_news"), NEWS)
def test_what_is_news(before: dict[str, Any], now: dict[str, Any], is_news: bool) -> None:
    def read(fields: dict[str, Any]) -> Read:
        known = {"error": ErrorCode.NONE, "high_watermark": 0, "log_start_offset": 0}
        return Read(partition_fetch(A), **{**known, **fields})

    sessions = Sessions()
    session, _ = sessions.begin(0, FIRST_EPOCH, [partition_fetch(A)], privileged=False).answer([read({})])
    sessions.begin(session, 1, [], privileged=False).answer([read(before)])
    _, answer = sessions.begin(session, 2, [], privileged=False).answer([read(now)])
    assert bool(answer) is is_news


def test_who_got_records_is_read_last_the_next_time() -> None:
    sessions = Sessions()
    session = sessions.full(A, B, C)
    fetch = sessions.begin(session, 1, [], privileged=False)
    fetch.answer([Read(each, ErrorCode.NONE, 0, 0, b"x" if each.key == A else b"") for each in fetch.partitions])
    assert [each.key for each in sessions.begin(session, 2, [], privileged=False).partitions] == [B, C, A]


def test_a_partition_that_is_named_again_is_asked_for_as_named() -> None:
    sessions = Sessions()
    session = sessions.full(A, B)
    assert list(sessions.begin(session, 1, [partition_fetch(B, 7)], privileged=False).partitions) == [
        partition_fetch(A),
        partition_fetch(B, 7),
    ]
    assert list(
        sessions.begin(0, FIRST_EPOCH, [partition_fetch(A), partition_fetch(A, 1)], privileged=False).partitions
    ) == [partition_fetch(A, 1)]


def test_epochs_are_counted_and_one_out_of_turn_changes_nothing() -> None:
    sessions = Sessions()
    session = sessions.full(A)
    assert [refused(sessions, session, epoch) for epoch in (2, 7, -2)] == ["INVALID_FETCH_SESSION_EPOCH"] * 3
    assert sessions.fetch(session, 1) == (session, [])
    assert refused(sessions, session, 1) == "INVALID_FETCH_SESSION_EPOCH"
    assert sessions.fetch(session, 2) == (session, [])


def test_after_the_last_epoch_comes_the_first_again() -> None:
    sessions = Sessions()
    session = sessions.create(False, 1)
    assert session is not None
    session.update([partition_fetch(A)], [])
    session.epoch = LAST_EPOCH
    assert sessions.fetch(session.id, LAST_EPOCH) == (session.id, [A])
    assert sessions.fetch(session.id, 1) == (session.id, [])


@pytest.mark.parametrize("epoch", [1, -2], ids=["some epoch", "an epoch that is none"])
@pytest.mark.parametrize("session", [0, 12345], ids=["no session", "an unknown session"])
def test_an_unknown_session_is_not_found(session: int, epoch: int) -> None:
    assert refused(Sessions(), session, epoch) == "FETCH_SESSION_ID_NOT_FOUND"


def test_an_answer_that_comes_after_the_next_request_is_refused() -> None:
    sessions = Sessions()
    session = sessions.full(A)
    slow = sessions.begin(session, 1, [], privileged=False)
    sessions.fetch(session, 2)
    with pytest.raises(FetchSessionError) as refusal:
        slow.answer([Read(partition_fetch(A), ErrorCode.NONE, 0, 0)])
    assert (refusal.value.error, refusal.value.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session)


def test_an_answer_that_comes_after_the_session_has_no_partition_left_is_refused() -> None:
    sessions = Sessions()
    session = sessions.full(A)
    slow = sessions.begin(session, 1, [], privileged=False)
    sessions.fetch(session, 2, forgotten=[A])
    with pytest.raises(FetchSessionError) as refusal:
        slow.answer([Read(partition_fetch(A), ErrorCode.NONE, 0, 0)])
    assert refusal.value.error is ErrorCode.INVALID_FETCH_SESSION_EPOCH


@pytest.mark.parametrize("epoch", [FIRST_EPOCH, FINAL_EPOCH], ids=["and a new one begins", "and no other begins"])
def test_a_full_fetch_ends_the_session_that_it_names(epoch: int) -> None:
    sessions = Sessions()
    old = sessions.full(A)
    new, news = sessions.fetch(old, epoch, A, B)
    assert news == [A, B]
    assert (new == 0) is (epoch == FINAL_EPOCH)
    assert refused(sessions, old, 1) == "FETCH_SESSION_ID_NOT_FOUND"


def test_a_session_with_no_partition_left_is_over() -> None:
    sessions = Sessions()
    assert sessions.fetch(sessions.full(A), 1, forgotten=[A]) == (0, [])
    assert len(sessions) == 0


def test_a_session_may_begin_without_partitions() -> None:
    sessions = Sessions()
    session = sessions.full()
    assert sessions.fetch(session, 1, A) == (session, [A])


FOLLOWER, CLIENT = True, False
OLD_S = EVICTION_S + 1
Made = tuple[bool, Sequence[tuple[str, int]]]


@pytest.mark.parametrize(
    ("there", "is_old", "comes", "evicts"),
    [
        pytest.param((CLIENT, [A]), False, (CLIENT, [A, B]), False, id="a young one stays before its like"),
        pytest.param(
            (CLIENT, [A]), False, (FOLLOWER, [A]), True, id="a young one of a client makes way for a follower"
        ),
        pytest.param((FOLLOWER, [A]), False, (FOLLOWER, [A, B]), False, id="a young one of a follower stays"),
        pytest.param((FOLLOWER, [A]), True, (CLIENT, [A, B]), False, id="a follower never makes way for a client"),
        pytest.param((FOLLOWER, [A]), True, (FOLLOWER, [A, B]), True, id="an old one makes way for a larger one"),
        pytest.param((CLIENT, [A]), True, (CLIENT, [A, B]), True, id="a client's too"),
        pytest.param((CLIENT, [A]), True, (CLIENT, [A]), False, id="an old one stays before one as large"),
        pytest.param((CLIENT, [A, B]), True, (CLIENT, [A]), False, id="an old one stays before a smaller one"),
    ],
)
def test_who_makes_way(there: Made, is_old: bool, comes: Made, evicts: bool) -> None:
    """An old one is used again after two minutes: that is when it can be told."""
    sessions = Sessions(slots=1)
    session = sessions.full(*there[1], privileged=there[0])
    if is_old:
        sessions.time_s = OLD_S
        sessions.fetch(session, 1)
    assert (sessions.full(*comes[1], privileged=comes[0]) != 0) is evicts
    assert (len(sessions), sessions.evictions) == (1, int(evicts))


def test_one_that_is_not_used_makes_way_for_any() -> None:
    sessions = Sessions(slots=1)
    sessions.full(A, B, privileged=FOLLOWER)
    sessions.time_s = EVICTION_S
    assert sessions.full(A) == 0
    sessions.time_s = OLD_S
    assert sessions.full(A) != 0


def test_the_smallest_of_the_least_makes_way() -> None:
    sessions = Sessions(slots=3)
    made = {size: sessions.full(*[A, B, C][:size]) for size in (2, 1, 3)}
    sessions.full(A, privileged=True)
    assert refused(sessions, made[1], 1) == "FETCH_SESSION_ID_NOT_FOUND"
    assert [sessions.fetch(made[size], 1)[0] for size in (2, 3)] == [made[2], made[3]]


def test_without_slots_there_are_no_sessions() -> None:
    assert Sessions(slots=0).full(A) == 0

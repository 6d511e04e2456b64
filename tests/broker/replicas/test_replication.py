import pytest

from harness.broker.log.epoch_cache import UNDEFINED_END, EpochEnd, LeaderEpochCache
from harness.broker.replicas.replication import (
    NEVER_S,
    ControlOutcome,
    FollowerProgress,
    Truncation,
    check_leader_epoch,
    follower_high_watermark,
    judge_leader_and_isr,
    judge_stop_replica,
    may_join_isr,
    next_high_watermark,
    out_of_sync,
    required_insync_replicas,
    truncation_after,
    truncation_without_epochs,
)
from harness.broker.wire.error_codes import ErrorCode

LAG_S = 10.0
NOW_S = 100.0
LEADER = 1


def follower(log_end_offset: int, *, caught_up_s: float = NEVER_S) -> FollowerProgress:
    return FollowerProgress(log_end_offset=log_end_offset, last_caught_up_s=caught_up_s)


def test_one_record_from_producer_to_commit_takes_two_fetches() -> None:
    """T1 to T4: the leader learns with the second fetch that the follower has the record."""
    progress, high_watermark = FollowerProgress(log_end_offset=0), 0

    def leader(log_end_offset: int) -> int:
        return next_high_watermark(high_watermark, log_end_offset, (1, 2), {2: progress}, NOW_S, LAG_S)

    log_end_offset = 1  # T2: produced
    assert leader(log_end_offset) == 0
    progress.fetched(0, log_end_offset, NOW_S)  # T3: the record is on its way, with high watermark 0
    assert leader(log_end_offset) == 0
    assert follower_high_watermark(0, 0, 1) == 0
    progress.fetched(1, log_end_offset, NOW_S)  # T4: asks for the next one, so it has the first
    assert leader(log_end_offset) == 1
    assert follower_high_watermark(1, 0, 1) == 1


@pytest.mark.parametrize(
    ("current", "isr", "followers", "expected"),
    [
        pytest.param(3, (1,), {}, 10, id="a leader that is the whole ISR commits all it has"),
        pytest.param(3, (1, 2, 3), {2: follower(8), 3: follower(6)}, 6, id="the slowest member of the ISR decides"),
        pytest.param(
            3, (1, 2), {2: follower(8), 3: follower(6)}, 8, id="a lagging replica outside the ISR does not count"
        ),
        pytest.param(
            3,
            (1, 2),
            {2: follower(8), 3: follower(6, caught_up_s=95)},
            6,
            id="a caught-up replica outside the ISR counts",
        ),
        pytest.param(
            3,
            (1, 2),
            {2: follower(8), 3: follower(6, caught_up_s=90)},
            6,
            id="caught up exactly the lag time ago counts",
        ),
        pytest.param(
            3, (1, 2), {2: follower(8), 3: follower(6, caught_up_s=89)}, 8, id="caught up longer ago does not count"
        ),
        pytest.param(
            3, (1, 2), {2: follower(-1)}, 3, id="a member that never fetched in this term holds it where it is"
        ),
        pytest.param(7, (1, 2), {2: follower(5)}, 7, id="it never goes down"),
    ],
)
def test_the_leaders_high_watermark(
    current: int, isr: tuple[int, ...], followers: dict[int, FollowerProgress], expected: int
) -> None:
    assert next_high_watermark(current, 10, isr, followers, NOW_S, LAG_S) == expected


@pytest.mark.parametrize(
    ("leader", "log_start", "log_end", "expected"),
    [
        pytest.param(5, 0, 9, 5, id="it is the leader's"),
        pytest.param(9, 0, 5, 5, id="as far as the own log reaches"),
        pytest.param(2, 4, 9, 4, id="but not before the log's start"),
    ],
)
def test_a_followers_high_watermark(leader: int, log_start: int, log_end: int, expected: int) -> None:
    assert follower_high_watermark(leader, log_start, log_end) == expected


@pytest.mark.parametrize(
    ("fetches", "caught_up_s"),
    [
        pytest.param([(10, 10, 50.0)], 50.0, id="at the leader's end: caught up now"),
        pytest.param([(9, 10, 50.0)], NEVER_S, id="behind: not caught up"),
        pytest.param([(5, 10, 50.0), (10, 20, 60.0)], 50.0, id="reached the previous end: caught up at that fetch"),
        pytest.param([(5, 10, 50.0), (9, 20, 60.0)], NEVER_S, id="not even the previous end: not caught up"),
        pytest.param([(10, 10, 50.0), (10, 20, 60.0), (15, 30, 70.0)], 50.0, id="falls behind: the last time stays"),
    ],
)
def test_when_a_follower_was_caught_up(fetches: list[tuple[int, int, float]], caught_up_s: float) -> None:
    progress = FollowerProgress(leader_log_end_at_last_fetch=7, last_fetch_s=NEVER_S)
    for fetch_offset, leader_end, now_s in fetches:
        progress.fetched(fetch_offset, leader_end, now_s)
    assert progress.last_caught_up_s == caught_up_s


def test_a_fetch_tells_whether_the_followers_end_moved() -> None:
    progress = FollowerProgress()
    assert [progress.fetched(offset, 9, NOW_S) for offset in (0, 0, 4, 2)] == [True, False, True, True]


@pytest.mark.parametrize(
    ("in_isr", "was_leader", "log_end_offset", "caught_up_s"),
    [
        pytest.param(True, False, -1, NOW_S, id="a fresh leader knows no ends and gives the ISR the full lag time"),
        pytest.param(False, False, -1, NEVER_S, id="a fresh leader gives others no credit"),
        pytest.param(True, True, 8, NOW_S, id="a leader that stays keeps what it knows"),
        pytest.param(False, True, 8, NEVER_S, id="but resets replicas outside the ISR"),
    ],
)
def test_the_start_of_a_term(in_isr: bool, was_leader: bool, log_end_offset: int, caught_up_s: float) -> None:
    progress = follower(8, caught_up_s=99.0)
    progress.start_term(20, NOW_S, in_isr=in_isr, was_leader=was_leader)
    assert progress.log_end_offset == log_end_offset
    assert progress.last_caught_up_s == caught_up_s
    assert progress.leader_log_end_at_last_fetch == 20


@pytest.mark.parametrize(
    ("isr", "followers", "expected"),
    [
        pytest.param((1, 2), {2: follower(9, caught_up_s=89)}, [2], id="behind for longer than the lag time"),
        pytest.param((1, 2), {2: follower(9, caught_up_s=90)}, [], id="behind for exactly the lag time"),
        pytest.param((1, 2), {2: follower(10)}, [], id="silent for ever, but nothing to fetch"),
        pytest.param((1,), {2: follower(0)}, [], id="not a member anyway"),
        pytest.param((1, 2, 4), {2: follower(10), 4: follower(10)}, [4], id="complete, and no longer a replica"),
        pytest.param(
            (3, 1, 2), {2: follower(9), 3: follower(-1)}, [3, 2], id="all lagging members go at once, in ISR order"
        ),
    ],
)
def test_who_leaves_the_isr(isr: tuple[int, ...], followers: dict[int, FollowerProgress], expected: list[int]) -> None:
    assert out_of_sync(isr, (1, 2, 3), LEADER, 10, followers, NOW_S, LAG_S) == expected


@pytest.mark.parametrize(
    ("log_end_offset", "high_watermark", "epoch_start", "expected"),
    [
        pytest.param(5, 5, 5, True, id="has all that is committed"),
        pytest.param(4, 5, 3, False, id="lacks a committed record"),
        pytest.param(5, 3, 6, False, id="lacks what earlier leaders may have committed (KAFKA-7128)"),
        pytest.param(-1, 0, 0, False, id="never fetched"),
    ],
)
def test_who_may_join_the_isr(log_end_offset: int, high_watermark: int, epoch_start: int, expected: bool) -> None:
    assert may_join_isr(log_end_offset, high_watermark, epoch_start) is expected


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        pytest.param(5, ErrorCode.NONE, id="the same"),
        pytest.param(-1, ErrorCode.NONE, id="does not care"),
        pytest.param(4, ErrorCode.FENCED_LEADER_EPOCH, id="older"),
        pytest.param(6, ErrorCode.UNKNOWN_LEADER_EPOCH, id="newer"),
    ],
)
def test_a_request_in_another_leader_epoch_is_refused(epoch: int, expected: ErrorCode) -> None:
    assert check_leader_epoch(epoch, 5) is expected


@pytest.mark.parametrize(
    ("epoch", "assigned", "leads", "alive", "expected"),
    [
        pytest.param(6, True, True, True, ControlOutcome.APPLIED, id="a newer epoch makes a leader"),
        pytest.param(6, True, False, True, ControlOutcome.APPLIED, id="a newer epoch makes a follower"),
        pytest.param(6, True, True, False, ControlOutcome.APPLIED, id="a leader need not know that it lives"),
        pytest.param(5, True, True, True, ControlOutcome.IGNORED_SAME, id="the same epoch is a resend"),
        pytest.param(4, True, True, True, ControlOutcome.IGNORED_OLD, id="an older epoch is late"),
        pytest.param(6, False, False, True, ControlOutcome.NOT_ASSIGNED, id="not one of the replicas"),
        pytest.param(6, True, False, False, ControlOutcome.LEADER_UNAVAILABLE, id="the new leader is not alive"),
        pytest.param(4, False, False, False, ControlOutcome.IGNORED_OLD, id="age is looked at first"),
    ],
)
def test_what_becomes_of_a_leader_and_isr(
    epoch: int, assigned: bool, leads: bool, alive: bool, expected: ControlOutcome
) -> None:
    assert judge_leader_and_isr(epoch, 5, assigned=assigned, leads=leads, leader_alive=alive) is expected


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        pytest.param(6, ControlOutcome.APPLIED, id="a newer epoch"),
        pytest.param(5, ControlOutcome.APPLIED, id="the same epoch"),
        pytest.param(4, ControlOutcome.IGNORED_OLD, id="an older epoch"),
        pytest.param(-1, ControlOutcome.APPLIED, id="an old controller that sends none"),
        pytest.param(-2, ControlOutcome.APPLIED, id="a deletion"),
    ],
)
def test_what_becomes_of_a_stop_replica(epoch: int, expected: ControlOutcome) -> None:
    assert judge_stop_replica(epoch, 5) is expected


@pytest.mark.parametrize(("wanted", "replicas", "needed"), [(2, 3, 2), (3, 3, 3), (5, 3, 3), (1, 1, 1)])
def test_acks_all_never_needs_more_than_all_replicas(wanted: int, replicas: int, needed: int) -> None:
    assert required_insync_replicas(wanted, replicas) == needed


def step(entries: list[tuple[int, int]], log_end: int, answer: EpochEnd, high_watermark: int = 0) -> Truncation:
    cache = LeaderEpochCache(entries)
    return truncation_after(answer, cache.end_offset_for(answer.epoch, log_end), log_end, high_watermark)


@pytest.mark.parametrize(
    ("entries", "log_end", "answer", "high_watermark", "expected"),
    [
        pytest.param([(0, 0)], 4, EpochEnd(0, 2), 1, (2, True, "epoch"), id="KIP-101: the epoch ended earlier there"),
        pytest.param([(0, 0)], 4, EpochEnd(0, 4), 1, (4, True, "epoch"), id="nothing differs"),
        pytest.param([(0, 0)], 4, EpochEnd(0, 9), 1, (4, True, "epoch"), id="the leader has more of the same epoch"),
        pytest.param(
            [(0, 0), (2, 3)],
            6,
            EpochEnd(1, 5),
            0,
            (3, False, "epoch"),
            id="KIP-279: an epoch never seen here, ask again",
        ),
        pytest.param(
            [(2, 3)], 6, EpochEnd(1, 5), 0, (3, True, "epoch"), id="older than the first epoch here: back to its start"
        ),
        pytest.param(
            [(0, 0), (1, 2), (2, 8)], 9, EpochEnd(1, 5), 0, (5, True, "epoch"), id="the shorter of both ends counts"
        ),
        pytest.param(
            [(0, 0), (1, 2), (2, 4)], 9, EpochEnd(1, 6), 0, (4, True, "epoch"), id="here the epoch ended earlier"
        ),
        pytest.param([(0, 0)], 4, UNDEFINED_END, 3, (3, True, "hw"), id="the leader cannot tell: the high watermark"),
        pytest.param([(0, 0)], 4, EpochEnd(-1, 2), 1, (2, True, "epoch"), id="an old leader names an end only"),
        pytest.param([], 4, EpochEnd(3, 2), 1, (2, True, "epoch"), id="no epochs here: the end that the leader names"),
    ],
)
def test_one_step_of_truncation(
    entries: list[tuple[int, int]], log_end: int, answer: EpochEnd, high_watermark: int, expected: tuple[int, bool, str]
) -> None:
    taken = step(entries, log_end, answer, high_watermark)
    assert (taken.to, taken.done, taken.reason) == expected


def test_two_fast_leader_changes_take_two_steps() -> None:
    """KIP-279: this replica led alone in epoch 2 while the leader wrote epochs 1 and 3."""
    mine = [(0, 0), (2, 2)]
    theirs = LeaderEpochCache([(0, 0), (1, 2), (3, 4)])
    first = step(mine, 5, theirs.end_offset_for(2, 6))
    assert (first.to, first.done) == (2, False)
    second = step([(0, 0)], 2, theirs.end_offset_for(0, 6))
    assert (second.to, second.done) == (2, True)


def test_without_epochs_a_follower_goes_back_to_its_high_watermark() -> None:
    assert truncation_without_epochs(7) == Truncation(to=7, done=True, reason="hw")

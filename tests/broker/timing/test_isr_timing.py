"""When a replica leaves the ISR and when it is back, to the moment; and when requests that wait are answered."""

import asyncio

import pytest

from harness.broker.wire.error_codes import ErrorCode
from harness.events import IsrResult
from tests.broker.timing.timed_cluster import LAG_S, LATENCY_S, STATE, TimedCluster, follower, timed

PHASES_S = [0.0, 0.3, 0.6, 0.9, 1.2]
"""Of the leader's timer, which looks every half of the lag time."""


@pytest.mark.parametrize("phase_s", PHASES_S)
def test_a_silent_follower_leaves_between_one_and_one_and_a_half_lag_times(phase_s: float) -> None:
    async def story(timing: TimedCluster) -> None:
        await asyncio.sleep(phase_s)
        cut = follower(timing)
        timing.cut_off(cut)
        assert await timing.produce(timing.state.leader, "first", acks=1) == ErrorCode.NONE
        began_s = timing.now_s
        await timing.until(lambda: cut not in timing.state.isr, "shrink")
        # It was caught up last at its last fetch, which may be as old as a long poll (0.5 s).
        assert LAG_S - 0.5 <= timing.now_s - began_s <= LAG_S * 1.5 + LATENCY_S
        assert timing.state.leader_epoch == 0, "the leader shrinks the ISR, no leader is elected"

    timed(story)


@pytest.mark.parametrize("phase_s", PHASES_S)
def test_one_that_is_back_before_its_lag_time_is_over_never_left(phase_s: float) -> None:
    async def story(timing: TimedCluster) -> None:
        await asyncio.sleep(phase_s)
        cut, leader = follower(timing), timing.state.leader
        version = timing.cluster.ensemble.nodes[STATE].version
        timing.cut_off(cut)
        assert await timing.produce(leader, "first", acks=1) == ErrorCode.NONE
        await asyncio.sleep(LAG_S - 0.5 - LATENCY_S)
        timing.rejoin(cut)
        await asyncio.sleep(2 * LAG_S)
        assert timing.cluster.ensemble.nodes[STATE].version == version

    timed(story)


def test_without_new_records_nobody_lags_however_long_the_silence() -> None:
    async def story(timing: TimedCluster) -> None:
        version = timing.cluster.ensemble.nodes[STATE].version
        timing.cut_off(follower(timing))
        await asyncio.sleep(20 * LAG_S)
        assert timing.cluster.ensemble.nodes[STATE].version == version

    timed(story)


def test_who_has_caught_up_is_back_with_its_next_fetch() -> None:
    async def story(timing: TimedCluster) -> None:
        cut, leader = follower(timing), timing.state.leader
        timing.cut_off(cut)
        await timing.produce(leader, "first", acks=1)
        await timing.until(lambda: cut not in timing.state.isr, "shrink")
        timing.rejoin(cut)
        back_s = await timing.until(lambda: cut in timing.state.isr, "expand")
        assert back_s < 0.5 + 1.0, "a connection that is opened again, and one round of fetching"
        assert [(each.kind, each.result) for each in timing.events_of(leader, IsrResult)] == [
            ("shrink", "ok"),
            ("expand", "ok"),
        ]

    timed(story)


def test_acks_all_waits_for_the_laggard_until_it_has_left() -> None:
    async def story(timing: TimedCluster) -> None:
        leader = timing.state.leader
        timing.cut_off(follower(timing))
        began_s = timing.now_s
        assert await timing.produce(leader, "first", timeout_ms=30_000) == ErrorCode.NONE
        assert LAG_S - 0.5 <= timing.now_s - began_s <= LAG_S * 1.5 + LATENCY_S

    timed(story)


def test_a_write_that_waits_is_answered_when_its_time_is_over() -> None:
    async def story(timing: TimedCluster) -> None:
        leader = timing.state.leader
        timing.cut_off(follower(timing))
        began_s = timing.now_s
        assert await timing.produce(leader, "first", timeout_ms=1500) == ErrorCode.REQUEST_TIMED_OUT
        assert 1.5 <= timing.now_s - began_s <= 1.5 + LATENCY_S

    timed(story)


def test_a_fetch_waits_for_records_and_no_longer_than_it_may() -> None:
    async def story(timing: TimedCluster) -> None:
        leader = timing.state.leader
        began_s = timing.now_s
        assert (await timing.fetch(leader, 0, max_wait_ms=700)).records in (None, b"")
        assert 0.7 <= timing.now_s - began_s <= 0.7 + LATENCY_S
        began_s = timing.now_s
        waiting = asyncio.ensure_future(timing.fetch(leader, 0, max_wait_ms=60_000))
        await asyncio.sleep(5)
        assert not waiting.done()
        await timing.produce(leader, "first")
        assert b"first" in bytes((await waiting).records)
        assert timing.now_s - began_s < 5 + LATENCY_S

    timed(story)


def test_a_shrink_whose_answer_was_lost_counts_once() -> None:
    """The write is carried out, its answer lost, and the write sent again: it meets its own first try (KAFKA-2729)."""

    async def story(timing: TimedCluster) -> None:
        cut, leader = follower(timing), timing.state.leader
        version = timing.cluster.ensemble.nodes[STATE].version
        timing.cluster.ensemble.lose_answer_to = STATE
        timing.cut_off(cut)
        waiting = asyncio.ensure_future(timing.produce(leader, "first", timeout_ms=30_000))
        await timing.until(lambda: cut not in timing.state.isr, "shrink")
        assert await waiting == ErrorCode.NONE, "the leader adopted what it had written"
        assert timing.cluster.ensemble.nodes[STATE].version == version + 1
        assert [(each.kind, each.result, each.new_zk_version) for each in timing.events_of(leader, IsrResult)] == [
            ("shrink", "ok", version + 1)
        ]

    timed(story)


def test_a_shrink_that_never_reached_zookeeper_is_made_when_the_connection_is_back() -> None:
    async def story(timing: TimedCluster) -> None:
        cut, leader = follower(timing), timing.state.leader
        version = timing.cluster.ensemble.nodes[STATE].version
        session = timing.cluster[leader].session
        assert session is not None
        timing.cut_off(cut)
        waiting = asyncio.ensure_future(timing.produce(leader, "first", timeout_ms=30_000))
        await asyncio.sleep(LAG_S - 1)
        session.disconnect()
        await asyncio.sleep(3)  # shorter than the session; the shrink became due meanwhile
        assert timing.cluster.ensemble.nodes[STATE].version == version
        assert not waiting.done(), "an ISR counts only once ZooKeeper has accepted it"
        session.reconnect()
        assert await waiting == ErrorCode.NONE
        assert (timing.cluster.ensemble.nodes[STATE].version, timing.state.leader_epoch) == (version + 1, 0)

    timed(story)

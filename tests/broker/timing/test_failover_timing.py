"""Sessions, elections, failovers and shutdowns of whole brokers, to the moment."""

import asyncio

import pytest

from harness.broker.wire.error_codes import ErrorCode
from harness.broker.zookeeper.registration import BrokerIdTaken
from harness.events import BecomeFollower, BrokerRegistered, BrokerStop, ControllerResigned, Election, ZkSession
from tests.broker.timing.timed_cluster import LATENCY_S, PING_S, SESSION_S, TimedCluster, follower, timed

FIRST_WRITE_S = 0.25
"""After a new leader stands in ZooKeeper, it commits a record within this."""


def _other_than_controller(timing: TimedCluster) -> int:
    return next(broker_id for broker_id in (0, 1, 2) if broker_id != timing.controller)


@pytest.mark.parametrize("zookeeper_servers", [1, 3])
def test_a_killed_leader_is_replaced_when_its_session_is_over(zookeeper_servers: int) -> None:
    async def story(timing: TimedCluster) -> None:
        killed, before = timing.state.leader, timing.state
        # A new controller first takes dead replicas out of the ISR, which leaves no leader, and then elects one.
        steps = 2 if killed == timing.controller else 1
        timing.cluster[killed].kill()
        took_s = await timing.until(lambda: timing.state.leader not in (killed, -1), "a new leader")
        assert SESSION_S - PING_S - LATENCY_S <= took_s <= SESSION_S + LATENCY_S
        assert timing.state.leader_epoch == before.leader_epoch + steps
        assert timing.state.isr == tuple(broker for broker in before.isr if broker != killed)
        began_s = timing.now_s
        while await timing.produce(timing.state.leader, "after") != ErrorCode.NONE:  # noqa: ASYNC110  in virtual time
            await asyncio.sleep(0.01)
        assert timing.now_s - began_s <= FIRST_WRITE_S
        assert await timing.cluster[killed].start()
        await timing.whole()

    timed(story, zookeeper_servers=zookeeper_servers)


@pytest.mark.parametrize(
    ("length_s", "replaced"),
    [
        pytest.param(SESSION_S - PING_S - LATENCY_S, False, id="shorter than its session"),
        pytest.param(SESSION_S + LATENCY_S, True, id="longer than its session"),
        pytest.param(5 * SESSION_S, True, id="far longer"),
    ],
)
def test_a_leader_that_pauses_is_replaced_only_when_its_session_is_over(length_s: float, replaced: bool) -> None:
    async def story(timing: TimedCluster) -> None:
        leader, epoch = timing.state.leader, timing.state.leader_epoch
        writing = asyncio.ensure_future(timing.keep_writing())
        await asyncio.sleep(1)
        timing.cluster[leader].pause(at_most_s=length_s)
        await asyncio.sleep(length_s + 5)
        assert (timing.state.leader_epoch > epoch, timing.state.leader != leader) == (replaced, replaced)
        states = [event.state for event in timing.events_of(leader, ZkSession)]
        assert ("lost" in states, "reinit" in states) == (replaced, replaced)
        assert (
            bool([each for each in timing.events_of(leader, BecomeFollower) if each.leader_epoch > epoch]) is replaced
        )
        writing.cancel()
        await timing.whole()

    timed(story)


def test_a_leader_whose_session_is_ended_registers_anew_and_is_replaced() -> None:
    async def story(timing: TimedCluster) -> None:
        leader, epoch = timing.state.leader, timing.state.leader_epoch
        session = timing.cluster[leader].session
        assert session is not None
        first = timing.events_of(leader, BrokerRegistered)[-1].czxid or 0
        writing = asyncio.ensure_future(timing.keep_writing())
        timing.cluster.ensemble.end(session.session_id)
        assert await timing.until(lambda: timing.state.leader_epoch > epoch, "an election") < 1 + LATENCY_S
        back_s = await timing.until(lambda: len(timing.events_of(leader, BrokerRegistered)) == 2, "registered again")
        assert back_s < 1 + LATENCY_S
        assert (timing.events_of(leader, BrokerRegistered)[-1].czxid or 0) > first, "another broker epoch (KIP-380)"
        await asyncio.sleep(2)
        writing.cancel()
        await timing.whole()

    timed(story)


@pytest.mark.parametrize("end", ["its session is ended", "it is killed", "it pauses for longer than its session"])
def test_a_controller_that_is_gone_is_replaced_in_the_next_epoch(end: str) -> None:
    async def story(timing: TimedCluster) -> None:
        old, epoch = timing.controller, timing.controller_epoch
        session = timing.cluster[old].session
        assert session is not None
        if end == "its session is ended":
            timing.cluster.ensemble.end(session.session_id)
        elif end == "it is killed":
            timing.cluster[old].kill()
        else:
            timing.cluster[old].pause(at_most_s=3 * SESSION_S)
        took_s = await timing.until(lambda: timing.controller_epoch == epoch + 1, "a new controller")
        assert timing.controller >= 0
        at_once = end == "its session is ended"
        low_s, high_s = (0.0, LATENCY_S) if at_once else (SESSION_S - PING_S - LATENCY_S, SESSION_S + LATENCY_S)
        assert low_s <= took_s <= high_s
        await asyncio.sleep(3 * SESSION_S)
        assert (timing.controller_epoch, timing.controller >= 0) == (epoch + 1, True), "one election, not more"
        if end != "it is killed":
            assert len(timing.events_of(old, ControllerResigned)) == 1
        # The new controller carries out what happened while there was none.
        killed = next(broker_id for broker_id in (0, 1, 2) if broker_id not in (timing.controller, old))
        timing.cluster[killed].kill()
        await timing.until(lambda: killed not in timing.state.isr and timing.state.leader != killed, "an election")

    timed(story)


def test_a_broker_that_died_with_the_controller_is_missed_by_the_next_one() -> None:
    async def story(timing: TimedCluster) -> None:
        both = {timing.controller, timing.state.leader}
        if len(both) == 1:
            both.add(follower(timing))
        for broker_id in both:
            timing.cluster[broker_id].kill()
        (left,) = {0, 1, 2} - both
        took_s = await timing.until(lambda: timing.state.leader == left, "the last one leads")
        assert took_s <= SESSION_S + 2 * LATENCY_S
        assert (timing.controller, timing.state.isr) == (left, (left,))
        assert await timing.produce(left, "refused") == ErrorCode.NOT_ENOUGH_REPLICAS

    timed(story)


def test_a_clean_shutdown_moves_its_leads_before_it_goes() -> None:
    async def story(timing: TimedCluster) -> None:
        leader, epoch = timing.state.leader, timing.state.leader_epoch
        controller = timing.controller
        writing = asyncio.ensure_future(timing.keep_writing())
        began_s = timing.now_s
        assert await timing.cluster[leader].stop(30)
        assert timing.now_s - began_s < 1
        assert timing.events_of(leader, BrokerStop)[-1].controlled is True
        assert (timing.state.leader != leader, timing.state.leader_epoch) == (True, epoch + 1)
        assert [each.strategy for each in timing.events_of(controller, Election) if each.strategy][
            -1
        ] == "controlled_shutdown"
        await asyncio.sleep(LATENCY_S)
        assert str(leader) not in timing.registered, "the session is closed, not left to time out"
        assert await timing.cluster[leader].start()
        await asyncio.sleep(1)
        writing.cancel()
        await timing.whole()

    timed(story)


def test_a_shutdown_that_nobody_can_take_over_is_tried_again_and_then_given_up() -> None:
    async def story(timing: TimedCluster) -> None:
        leader = timing.state.leader
        for other in (0, 1, 2):
            if other != leader:
                timing.cluster[other].kill()
        await timing.until(lambda: timing.state.isr == (leader,) and timing.controller == leader, "it is alone", 60)
        began_s = timing.now_s
        assert await timing.cluster[leader].stop(60)
        assert 2 * 0.5 <= timing.now_s - began_s <= 2 * 0.5 + 1, "three tries, half a second between two"
        assert timing.events_of(leader, BrokerStop)[-1].controlled is False

    timed(story)


def test_a_shutdown_goes_through_once_somebody_can_take_over() -> None:
    async def story(timing: TimedCluster) -> None:
        leader = timing.state.leader
        others = [broker_id for broker_id in (0, 1, 2) if broker_id != leader]
        for other in others:
            timing.cluster[other].kill()
        await timing.until(lambda: timing.state.isr == (leader,) and timing.controller == leader, "it is alone", 60)
        stopping = asyncio.ensure_future(timing.cluster[leader].stop(120))
        await asyncio.sleep(3)
        assert not stopping.done()
        assert await timing.cluster[others[0]].start()
        assert await stopping
        assert timing.events_of(leader, BrokerStop)[-1].controlled is True
        assert timing.state.leader == others[0]

    timed(story, controlled_shutdown_max_retries="60")


def test_a_broker_that_bounces_faster_than_its_session_is_told_anew() -> None:
    """A clean stop and start within a moment: the same id in another epoch, which the controller must not mix up."""

    async def story(timing: TimedCluster) -> None:
        bounced = _other_than_controller(timing)
        first = timing.events_of(bounced, BrokerRegistered)[-1].czxid or 0
        assert await timing.cluster[bounced].stop(30)
        assert await timing.cluster[bounced].start()
        assert (timing.events_of(bounced, BrokerRegistered)[-1].czxid or 0) > first
        assert await timing.until(lambda: bounced in timing.state.isr, "back in the ISR", SESSION_S) < SESSION_S
        assert await timing.produce(timing.state.leader, "after") == ErrorCode.NONE
        await timing.whole()

    timed(story)


def test_a_killed_broker_cannot_take_its_id_before_its_session_is_over() -> None:
    async def story(timing: TimedCluster) -> None:
        bounced = _other_than_controller(timing)
        timing.cluster[bounced].kill()
        assert not await timing.cluster[bounced].start()
        assert isinstance(timing.cluster[bounced].failure, BrokerIdTaken)
        await asyncio.sleep(SESSION_S)
        assert await timing.cluster[bounced].start()
        await timing.whole()

    timed(story)

"""Hosts that lose power: only what was synced survives there, and replication makes up for it."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from harness.broker.wire.error_codes import ErrorCode
from harness.events import Recovery, Truncate
from tests.broker.timing.timed_cluster import SESSION_S, TOPIC, TimedCluster, follower, timed

LOG = f"{TOPIC}-0/00000000000000000000.log"


def _leader(timing: TimedCluster) -> int:
    return timing.state.leader


@pytest.mark.parametrize("torn", [False, True], ids=["the tail is gone", "the tail is torn"])
@pytest.mark.parametrize("broker_of", [follower, _leader], ids=["a follower", "the leader"])
@pytest.mark.parametrize("seed", range(3))
def test_what_was_not_synced_is_fetched_again(broker_of: Callable[..., Any], torn: bool, seed: int) -> None:
    async def story(timing: TimedCluster) -> None:
        writing = asyncio.ensure_future(timing.keep_writing())
        await asyncio.sleep(3)
        broker = timing.cluster[broker_of(timing)]
        size = broker.disk.open_append(LOG).size
        broker.lose_power(random.Random(seed) if torn else None)
        assert not broker.disk.exists(LOG) or broker.disk.open_append(LOG).size <= size
        await asyncio.sleep(SESSION_S + 3)
        assert await broker.start()
        await asyncio.sleep(2)
        writing.cancel()
        assert len(timing.acknowledged) > 50
        recoveries = [each for each in timing.events_of(broker.broker_id, Recovery) if each.topic == TOPIC]
        assert [each.clean for each in recoveries][-1:] in ([], [False])
        await timing.whole()

    timed(story, seed=seed)


def test_all_hosts_at_once_lose_what_none_had_synced_and_live_on_alike() -> None:
    """Durability is replication: this is the loss that Kafka accepts too (KIP-966)."""

    async def story(timing: TimedCluster) -> None:
        writing = asyncio.ensure_future(timing.keep_writing())
        await asyncio.sleep(3)
        writing.cancel()
        for broker in timing.cluster.brokers.values():
            broker.lose_power(random.Random(broker.broker_id))
        await asyncio.sleep(SESSION_S + 1)
        started = await asyncio.gather(*(broker.start() for broker in timing.cluster.brokers.values()))
        assert started == [True] * 3
        await timing.until(lambda: len(timing.state.isr) == 3 and timing.state.leader >= 0, "full ISR")
        timing.acknowledged.clear()
        writing = asyncio.ensure_future(timing.keep_writing())
        await asyncio.sleep(3)
        writing.cancel()
        assert len(timing.acknowledged) > 20
        await timing.whole()
        assert len({bytes(broker.disk.read(LOG)) for broker in timing.cluster.brokers.values()}) == 1

    timed(story)


def test_a_leader_that_is_back_before_any_controller_has_missed_it_leads_on_without_what_its_disk_has_lost() -> None:
    """As in Kafka before KIP-966: a new controller takes every leader that is registered for the one it was.

    `PartitionStateMachine.initializePartitionState` looks only at live brokers, and no controller that knew the
    broker's earlier epoch (KIP-380) lives on.
    """

    async def story(timing: TimedCluster) -> None:
        leader = timing.cluster[timing.state.leader]
        others = [broker for broker in timing.cluster.brokers.values() if broker is not leader]
        for other in others:
            other.pause()
        if timing.controller != leader.broker_id:
            timing.cluster.ensemble.remove("/controller")
        await timing.until(lambda: timing.controller == leader.broker_id, "the leader as controller")
        for other in others:
            other.resume()
        assert [await timing.produce(leader.broker_id, value) for value in ("one", "two")] == [ErrorCode.NONE] * 2
        before = timing.state
        assert leader.session is not None
        session_id = leader.session.session_id
        for other in others:
            other.pause()

        leader.lose_power()
        timing.cluster.ensemble.end(session_id)
        assert await leader.start()
        for other in others:
            other.resume()
        await timing.until(lambda: timing.controller == leader.broker_id, "a controller")
        # The followers do not know that their connections are dead: they wait for `replica.socket.timeout.ms`.
        await timing.until(
            lambda: all(timing.events_of(other.broker_id, Truncate) for other in others), "truncation", within_s=40
        )
        assert (timing.state.leader, timing.state.leader_epoch) == (before.leader, before.leader_epoch)
        with pytest.raises(AssertionError, match="lost acknowledged records"):
            await timing.whole()

    timed(story)

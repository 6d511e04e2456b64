"""Brokers as processes: what killing, pausing, stopping and a power loss do to them and to their peers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness.broker.configs.config import Endpoint
from harness.broker.handlers.apis import APIS
from harness.broker.wire.dispatch import Dispatcher
from harness.events import BrokerStart, BrokerStop, ZkSession
from harness.simulation.cluster import SimulatedCluster
from harness.simulation.loop import SimulatedLoop, run
from harness.simulation.server import MemoryServer

SESSION_S = 4.0


def in_cluster(
    story: Callable[[SimulatedCluster], Awaitable[None]], *, seed: int = 1, **options: Any
) -> SimulatedCluster:
    """Tell a story of three brokers that run."""

    async def work() -> SimulatedCluster:
        cluster = SimulatedCluster([0, 1, 2], seed=seed, **options)
        assert all(await asyncio.gather(*(broker.start() for broker in cluster.brokers.values())))
        await asyncio.sleep(1)
        await story(cluster)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        assert loop.complaints == []
        return cluster

    return run(work())


def registered(cluster: SimulatedCluster) -> list[str]:
    return cluster.ensemble.names("/brokers/ids")


def events_of(cluster: SimulatedCluster, broker_id: int, kind: type[Any]) -> list[Any]:
    return [logged.event for logged in cluster[broker_id].log.events if isinstance(logged.event, kind)]


def test_a_killed_broker_says_no_more_and_its_session_lives_on_until_it_times_out() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster[1].kill()
        lines = len(cluster[1].log.events)
        await asyncio.sleep(SESSION_S / 2)
        assert registered(cluster) == ["0", "1", "2"]
        await asyncio.sleep(SESSION_S)
        assert registered(cluster) == ["0", "2"]
        assert (len(cluster[1].log.events), cluster[1].state) == (lines, "stopped")
        assert await cluster[1].start()
        assert registered(cluster) == ["0", "1", "2"]
        assert [start.clean_marker for start in events_of(cluster, 1, BrokerStart)] == [False, False]

    in_cluster(story)


def test_a_clean_stop_takes_the_registration_along_and_leaves_its_marker() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert await cluster[1].stop(10)
        await asyncio.sleep(0.1)
        assert registered(cluster) == ["0", "2"]
        assert [stop.controlled for stop in events_of(cluster, 1, BrokerStop)] == [True]
        assert await cluster[1].start()
        assert [start.clean_marker for start in events_of(cluster, 1, BrokerStart)] == [False, True]

    in_cluster(story)


@pytest.mark.parametrize(
    ("length_s", "states"),
    [
        pytest.param(SESSION_S / 3, ["connected"], id="shorter than the session: not noticed"),
        pytest.param(
            SESSION_S * 2,
            ["connected", "suspended", "lost", "connected", "reinit"],
            id="longer than the session: it learns so when it goes on",
        ),
    ],
)
def test_a_paused_broker_stands_still_and_the_world_goes_on(length_s: float, states: list[str]) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster[1].pause(at_most_s=length_s)
        lines = len(cluster[1].log.events)
        await asyncio.sleep(length_s - 0.01)
        assert (len(cluster[1].log.events), cluster[1].state) == (lines, "paused")
        assert ("1" in registered(cluster)) == (length_s < SESSION_S)
        await asyncio.sleep(2)
        assert (cluster[1].state, registered(cluster)) == ("running", ["0", "1", "2"])
        assert [event.state for event in events_of(cluster, 1, ZkSession)] == states

    in_cluster(story)


@pytest.mark.parametrize("resumed", [False, True], ids=["paused again meanwhile", "resumed and paused again"])
def test_a_second_pause_counts_from_its_own_beginning(resumed: bool) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster[1].pause(at_most_s=1)
        await asyncio.sleep(0.5)
        if resumed:
            cluster[1].resume()
        cluster[1].pause(at_most_s=1)
        await asyncio.sleep(0.9)
        assert cluster[1].state == "paused"
        await asyncio.sleep(0.2)
        assert cluster[1].state == "running"

    in_cluster(story)


def test_a_broker_killed_while_it_starts_or_is_paused_is_just_dead() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster[1].kill()
        starting = asyncio.ensure_future(cluster[1].start())
        await asyncio.sleep(0.005)
        cluster[1].kill()
        assert not await starting
        cluster[2].pause()
        cluster[2].kill()
        cluster[2].resume()
        await asyncio.sleep(10)
        assert registered(cluster) == ["0"]
        assert await cluster[1].start()

    in_cluster(story)


def test_a_start_that_nobody_waits_for_any_more_is_taken_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster[1].kill()
        await asyncio.sleep(SESSION_S + 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(cluster[1].start(), 0.005)
        assert (cluster[1].state, registered(cluster)) == ("stopped", ["0", "2"])
        await asyncio.sleep(SESSION_S + 1)
        assert await cluster[1].start()

    in_cluster(story)


def test_a_broker_that_cannot_start_says_why_and_leaves_nothing_open() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster[1].kill()
        squatter = MemoryServer(cluster.network, Dispatcher(APIS, {}))
        squatter.bind(Endpoint(name="PLAINTEXT", host="broker-1", port=9092))
        assert not await cluster[1].start()
        assert "address in use" in str(cluster[1].failure)
        assert cluster[1].state == "stopped"
        cluster.network.stop_listening(squatter)
        await asyncio.sleep(SESSION_S + 1)  # until then the id belongs to the session of the first life
        assert await cluster[1].start()

    in_cluster(story)


def test_a_forced_expiry_makes_a_broker_register_anew() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        session = cluster[1].session
        assert session is not None
        cluster.ensemble.end(session.session_id)
        await asyncio.sleep(1)
        assert registered(cluster) == ["0", "1", "2"]
        assert [event.state for event in events_of(cluster, 1, ZkSession)][-4:] == [
            "suspended",
            "lost",
            "connected",
            "reinit",
        ]

    in_cluster(story)


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("through_codecs", [False, True])
def test_a_cluster_comes_up_whatever_carries_it(servers: int, through_codecs: bool) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert cluster.ensemble.data("/controller_epoch") == b"1"

    in_cluster(story, zookeeper_servers=servers, through_codecs=through_codecs)


def test_a_power_loss_tells_nobody_and_takes_what_was_not_synced() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        disk = cluster[1].disk
        disk.make_folder("t-0")
        file = disk.open_append("t-0/00000000000000000000.log")
        file.append(b"synced")
        file.sync()
        file.append(b"not synced")
        cluster[1].lose_power()
        assert disk.read("t-0/00000000000000000000.log") == b"synced"
        assert disk.exists("meta.properties")
        disk.remove("t-0")
        await asyncio.sleep(SESSION_S + 2)
        assert registered(cluster) == ["0", "2"]
        assert await cluster[1].start()

    in_cluster(story)

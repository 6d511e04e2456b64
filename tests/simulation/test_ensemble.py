"""What three servers promise and what they do not: held against many seeds, as it is about orders of events."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from harness.broker.zookeeper.client import BadVersion, NoNode, SessionState, WatchType
from harness.cluster.links.links import Links
from harness.simulation.loop import run
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper

SEEDS = range(20)
TIMEOUT_S = 4.0

Story = Callable[[Ensemble, list[SimulatedZooKeeper]], Awaitable[None]]


def played(seed: int, story: Story, sessions: int = 3) -> None:
    async def play() -> None:
        links = Links(random.Random(seed))
        ensemble = Ensemble(links=links, servers=3, rng=random.Random(seed))
        clients = [
            SimulatedZooKeeper(ensemble, host=f"client-{number}", session_timeout_s=TIMEOUT_S)
            for number in range(sessions)
        ]
        for client in clients:
            await client.connect()
        await clients[0].create("/a", b"0")
        await asyncio.sleep(1)
        await story(ensemble, clients)

    run(play())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_client_sees_its_own_writes_and_never_goes_back(seed: int) -> None:
    async def story(ensemble: Ensemble, clients: list[SimulatedZooKeeper]) -> None:
        async def work(zk: SimulatedZooKeeper) -> None:
            last = -1
            for _ in range(30):
                data, stat = await zk.get("/a")
                assert stat.version >= last
                last = stat.version
                try:
                    last = (await zk.set("/a", str(stat.version + 1).encode(), stat.version)).version
                except BadVersion:
                    continue
                data, stat = await zk.get("/a")
                assert stat.version >= last
                assert data == str(stat.version).encode()

        await asyncio.gather(*map(work, clients))
        await asyncio.sleep(1)
        assert all(server.tree.nodes["/a"] == ensemble.nodes["/a"] for server in ensemble.servers)

    played(seed, story)


def test_another_server_may_lag_behind() -> None:
    stale = 0
    for seed in SEEDS:

        async def story(ensemble: Ensemble, clients: list[SimulatedZooKeeper]) -> None:
            nonlocal stale
            for version in range(10):
                await clients[0].set("/a", b"", version)
                for other in clients[1:]:
                    stale += (await other.get("/a"))[1].version < version + 1

        played(seed, story)
    assert stale > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_watch_comes_before_what_it_announces_on_any_server(seed: int) -> None:
    async def story(ensemble: Ensemble, clients: list[SimulatedZooKeeper]) -> None:
        heard: list[int] = []
        zk = clients[1]
        zk.watch_node("/a", lambda kind, path: heard.append(1))
        _, seen = await zk.get("/a")
        for version in range(20):
            await clients[0].set("/a", b"", version)
            _, stat = await zk.get("/a")
            if stat.version > seen.version:
                assert heard, "the data are new, and the watch was not told"
                heard.pop()
            seen = stat

    played(seed, story)


def test_a_lost_connection_leaves_open_whether_a_write_happened() -> None:
    outcomes = set()
    for seed in SEEDS:

        async def story(ensemble: Ensemble, clients: list[SimulatedZooKeeper], after_s: float = seed * 1e-4) -> None:
            zk = clients[0]
            write = asyncio.ensure_future(zk.set("/a", b"mine", 0))
            await asyncio.sleep(after_s)
            ensemble.drop_connection(zk.session_id)
            try:
                assert (await write).version == 1
                outcomes.add("carried out once")
            except BadVersion:
                assert ensemble.data("/a") == b"mine"
                outcomes.add("met its own first try")

        played(seed, story)
    assert outcomes == {"carried out once", "met its own first try"}


def test_a_client_that_is_cut_off_hears_of_its_end_when_it_is_back() -> None:
    async def story(ensemble: Ensemble, clients: list[SimulatedZooKeeper]) -> None:
        zk, other = clients[:2]
        states: list[SessionState] = []
        heard: list[WatchType] = []
        zk.on_state(states.append)
        await zk.create("/e", b"", ephemeral=True)
        other.watch_node("/e", lambda kind, path: heard.append(kind))
        await asyncio.sleep(0.1)
        assert await other.exists("/e")
        hosts = [server.host for server in ensemble.servers]
        ensemble.links.isolate(zk.host, hosts)
        await asyncio.sleep(TIMEOUT_S * 0.9)
        assert (states, heard) == ([SessionState.SUSPENDED], [])
        await asyncio.sleep(TIMEOUT_S * 0.5)
        assert (states, heard) == ([SessionState.SUSPENDED], [WatchType.DELETED])
        ensemble.links.rejoin(zk.host, hosts)
        await asyncio.sleep(3)
        assert (states, zk.expired) == ([SessionState.SUSPENDED, SessionState.LOST], True)
        with pytest.raises(NoNode):
            await other.get("/e")

    played(1, story)


def test_a_cut_shorter_than_the_session_costs_the_connection_only() -> None:
    async def story(ensemble: Ensemble, clients: list[SimulatedZooKeeper]) -> None:
        zk = clients[0]
        session_id = zk.session_id
        hosts = [server.host for server in ensemble.servers]
        ensemble.links.isolate(zk.host, hosts)
        write = asyncio.ensure_future(zk.create("/e", b"", ephemeral=True))
        await asyncio.sleep(TIMEOUT_S / 2)
        assert not write.done()
        ensemble.links.rejoin(zk.host, hosts)
        assert (await write)[1].ephemeral_owner == session_id == zk.session_id

    played(2, story)

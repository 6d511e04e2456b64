"""One table of what the protocol promises, held against the fake and against a real server behind kazoo."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count

import pytest

from harness.broker.zookeeper.client import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    RolledBack,
    SessionExpired,
    SessionState,
    Set,
    Stat,
    WatchType,
    ZooKeeper,
)
from harness.broker.zookeeper.kazoo_client import KazooZooKeeper
from harness.waiting import until
from tests.broker.zookeeper.fake_zookeeper import FakeServer

_roots = count()


@dataclass
class Bench:
    """Sessions to try things with, below a path of their own."""

    open: Callable[[], ZooKeeper]
    root: str
    sessions: list[ZooKeeper] = field(default_factory=list)
    seen: list[tuple[WatchType, str]] = field(default_factory=list)

    async def session(self) -> ZooKeeper:
        zk = self.open()
        self.sessions.append(zk)
        await zk.connect()
        return zk

    def record(self, kind: WatchType, path: str) -> None:
        self.seen.append((kind, path.removeprefix(self.root)))

    async def sees(self, *expected: tuple[WatchType, str]) -> None:
        """Wait for the expected watches, and give unexpected ones the time of a round trip to show up."""

        async def seen() -> list[tuple[WatchType, str]]:
            return list(self.seen)

        await until(seen, lambda now: len(now) >= len(expected), what=f"watches {expected}", timeout_s=10)
        for zk in self.sessions:
            if not zk.expired:
                await zk.exists("/")
        assert self.seen == list(expected)


@pytest.fixture(params=["fake", pytest.param("kazoo", marks=pytest.mark.cluster)])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    if request.param == "fake":
        server = FakeServer()
        made = Bench(open=server.client, root=f"/t{next(_roots)}")
    else:
        hosts = f"127.0.0.1:{request.getfixturevalue('server_port')}"
        made = Bench(
            open=lambda: KazooZooKeeper(hosts, session_timeout_s=4, connection_timeout_s=10), root=f"/t{next(_roots)}"
        )
    zk = await made.session()
    await zk.create(made.root, b"")
    yield made
    for session in made.sessions:
        await session.close()


async def _writes_and_versions(bench: Bench) -> None:
    zk, path = bench.sessions[0], f"{bench.root}/a"
    created, stat = await zk.create(path, b"one")
    assert created == path
    assert (stat.version, stat.ephemeral_owner, stat.czxid) == (0, 0, stat.mzxid)
    written = await zk.set(path, b"two", 0)
    assert (written.version, written.czxid) == (1, stat.czxid)
    assert written.mzxid > stat.mzxid
    assert await zk.get(path) == (b"two", written)
    assert (await zk.set(path, b"three", ANY_VERSION)).version == 2
    await zk.delete(path, 2)
    assert await zk.exists(path) is None


async def _errors(bench: Bench) -> None:
    zk, path = bench.sessions[0], f"{bench.root}/a"
    with pytest.raises(NoNode):
        await zk.get(path)
    with pytest.raises(NoNode):
        await zk.children(path)
    with pytest.raises(NoNode):
        await zk.set(path, b"", ANY_VERSION)
    with pytest.raises(NoNode):
        await zk.delete(path)
    with pytest.raises(NoNode):
        await zk.create(f"{path}/b", b"")
    await zk.create(path, b"")
    await zk.create(f"{path}/b", b"")
    with pytest.raises(NodeExists):
        await zk.create(path, b"")
    with pytest.raises(BadVersion):
        await zk.set(path, b"", 7)
    with pytest.raises(BadVersion):
        await zk.delete(path, 7)
    with pytest.raises(NotEmpty):
        await zk.delete(path)


async def _sequence(bench: Bench) -> None:
    zk = bench.sessions[0]
    await zk.create(f"{bench.root}/other", b"")
    made = [(await zk.create(f"{bench.root}/n_", b"", sequential=True))[0] for _ in range(2)]
    assert made == [f"{bench.root}/n_0000000001", f"{bench.root}/n_0000000002"]
    assert await zk.children(bench.root) == ["n_0000000001", "n_0000000002", "other"]


async def _multi(bench: Bench) -> None:
    zk, fence, path = bench.sessions[0], f"{bench.root}/fence", f"{bench.root}/a"
    await zk.create(fence, b"")
    done = await zk.multi(
        [Check(path=fence, version=0), Create(path=path, data=b"x"), Set(path=path, data=b"y", version=0)]
    )
    assert done[:2] == [True, path]
    assert isinstance(done[2], Stat)
    assert (done[2].version, (await zk.get(path))[0]) == (1, b"y")
    assert await zk.multi([Delete(path=path), Check(path=fence, version=0)]) == [True, True]


async def _multi_errors(bench: Bench) -> None:
    zk, fence, path = bench.sessions[0], f"{bench.root}/fence", f"{bench.root}/a"
    await zk.create(fence, b"")
    ok, stale = Check(path=fence, version=0), Check(path=fence, version=5)
    cases = {
        "stale fence": ([stale, Create(path=path, data=b"")], [BadVersion, RolledBack]),
        "lost compare and set": ([ok, Set(path=fence, data=b"", version=9)], [RolledBack, BadVersion]),
        "no parent": ([ok, Create(path=f"{path}/b", data=b"")], [RolledBack, NoNode]),
        "first exists": (
            [Create(path=fence, data=b""), Set(path=fence, data=b"", version=0)],
            [NodeExists, RolledBack],
        ),
        "undone": ([Create(path=path, data=b""), Delete(path=f"{path}x")], [RolledBack, NoNode]),
    }
    for name, (ops, errors) in cases.items():
        assert [type(result) for result in await zk.multi(ops)] == errors, name
    assert await zk.exists(path) is None


async def _ephemerals(bench: Bench) -> None:
    zk, other = bench.sessions[0], await bench.session()
    _, stat = await other.create(f"{bench.root}/e", b"", ephemeral=True)
    assert stat.ephemeral_owner == other.session_id != 0
    await zk.create(f"{bench.root}/p", b"")
    await other.close()
    assert await zk.children(bench.root) == ["p"]
    assert other.expired
    with pytest.raises(SessionExpired):
        await other.exists("/")
    await other.close()


async def _node_watch(bench: Bench) -> None:
    zk, other, path = bench.sessions[0], await bench.session(), f"{bench.root}/a"
    zk.watch_node(path, bench.record)
    await other.create(path, b"")  # not armed yet: nobody read
    await other.delete(path)
    await zk.exists(path)
    await other.create(path, b"")
    await bench.sees((WatchType.CREATED, "/a"))
    await other.set(path, b"x", 0)  # one-shot: not armed any more
    await zk.get(path)
    await other.set(path, b"y", 1)
    await bench.sees((WatchType.CREATED, "/a"), (WatchType.DATA, "/a"))
    await zk.exists(path)
    await zk.get(path)
    await other.delete(path)
    await bench.sees((WatchType.CREATED, "/a"), (WatchType.DATA, "/a"), (WatchType.DELETED, "/a"))


async def _child_watch(bench: Bench) -> None:
    zk, other = bench.sessions[0], await bench.session()
    zk.watch_children(bench.root, bench.record)
    await zk.children(bench.root)
    await other.set(bench.root, b"data", ANY_VERSION)
    await other.create(f"{bench.root}/a", b"")
    await bench.sees((WatchType.CHILDREN, ""))
    await zk.children(bench.root)
    await other.set(f"{bench.root}/a", b"x", 0)
    await other.delete(f"{bench.root}/a")
    await bench.sees((WatchType.CHILDREN, ""), (WatchType.CHILDREN, ""))


async def _unwatched(bench: Bench) -> None:
    zk, other = bench.sessions[0], await bench.session()
    zk.watch_children(bench.root, bench.record)
    zk.watch_node(bench.root, bench.record)
    await zk.children(bench.root)
    await zk.exists(bench.root)
    zk.unwatch_children(bench.root)
    zk.unwatch_node(bench.root)
    await other.create(f"{bench.root}/a", b"")
    await other.set(bench.root, b"x", ANY_VERSION)
    await bench.sees()


async def _no_watch_without_node(bench: Bench) -> None:
    zk, other, path = bench.sessions[0], await bench.session(), f"{bench.root}/a"
    zk.watch_node(path, bench.record)
    with pytest.raises(NoNode):
        await zk.get(path)
    await other.create(path, b"")
    await bench.sees()


async def _order(bench: Bench) -> None:
    zk, path = bench.sessions[0], f"{bench.root}/a"
    await zk.create(path, b"")
    written = await asyncio.gather(*(zk.set(path, str(i).encode(), i) for i in range(50)))
    assert [stat.version for stat in written] == list(range(1, 51))


async def _edges(bench: Bench) -> None:
    zk = bench.open()
    bench.sessions.append(zk)
    seen: list[SessionState] = []
    zk.on_state(seen.append)
    assert (zk.session_id, zk.expired) == (0, False)
    await zk.connect()
    assert (seen, zk.expired) == ([SessionState.CONNECTED], False)
    await zk.close()
    assert (seen, zk.expired) == ([SessionState.CONNECTED], True)


@pytest.mark.parametrize(
    "promise",
    [
        pytest.param(_writes_and_versions, id="a write needs the version and raises it by one"),
        pytest.param(_errors, id="every failed call says why"),
        pytest.param(_sequence, id="sequential znodes count all children ever made, and children come sorted"),
        pytest.param(_multi, id="a multi carries out all"),
        pytest.param(_multi_errors, id="a multi that fails changes nothing and names the guilty op"),
        pytest.param(_ephemerals, id="ephemerals end with their session, and nothing works after it"),
        pytest.param(_node_watch, id="a node handler is armed by exists or get, for one event"),
        pytest.param(_child_watch, id="a child handler is armed by children, for one event"),
        pytest.param(_unwatched, id="a handler that was forgotten hears nothing"),
        pytest.param(_no_watch_without_node, id="a get that finds nothing arms nothing"),
        pytest.param(_order, id="calls are carried out in the order they were made"),
        pytest.param(_edges, id="a session connects once, and a closed one is over without a word"),
    ],
)
async def test_the_protocol_keeps_its_promise(bench: Bench, promise: Callable[[Bench], Awaitable[None]]) -> None:
    await promise(bench)

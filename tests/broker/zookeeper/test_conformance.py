"""One table of what the protocol promises, held against the stand-in and against a real server behind kazoo."""

import asyncio
from contextlib import AsyncExitStack

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
    Op,
    RolledBack,
    SessionExpired,
    SessionState,
    Set,
    Stat,
    WatchType,
)
from harness.system.waiting import until
from tests.broker.zookeeper.bench import Bench, Promise, played, real, simulated
from tests.broker.zookeeper.promises_of_races import RACES


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
    cases: dict[str, tuple[list[Op], list[type]]] = {
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
    await other.create(path, b"")  # not armed yet: nothing was read
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


async def _watch_before_answer(bench: Bench) -> None:
    zk, other, path = bench.sessions[0], await bench.session(), f"{bench.root}/a"
    await zk.create(path, b"0")
    zk.watch_node(path, bench.record)
    for version in range(20):
        data, stat = await zk.get(path)
        assert (stat.version, len(bench.seen)) == (version, version)
        await other.set(path, str(version + 1).encode(), version)
        data, _ = await zk.get(path)
        assert (data, len(bench.seen)) == (str(version + 1).encode(), version + 1)


async def _watches_of_a_deletion(bench: Bench) -> None:
    zk, other, path = bench.sessions[0], await bench.session(), f"{bench.root}/a"
    await zk.create(path, b"")
    for watched in (bench.root, path):
        zk.watch_node(watched, bench.record)
        zk.watch_children(watched, bench.record)
        await zk.exists(watched)
        await zk.children(watched)
    await other.delete(path)
    await bench.sees((WatchType.DELETED, "/a"), (WatchType.DELETED, "/a"), (WatchType.CHILDREN, ""))


async def _watches_of_a_multi(bench: Bench) -> None:
    zk, other, path = bench.sessions[0], await bench.session(), f"{bench.root}/a"
    zk.watch_node(path, bench.record)
    await zk.exists(path)
    await other.multi([Create(path=path, data=b""), Delete(path=f"{path}/none")])
    await bench.sees()
    await other.multi([Create(path=path, data=b""), Set(path=path, data=b"x", version=0)])
    await bench.sees((WatchType.CREATED, "/a"))
    assert (await zk.get(path))[1].version == 1


async def _transactions_in_order(bench: Bench) -> None:
    zk, other = bench.sessions[0], await bench.session()
    made = [await session.create(f"{bench.root}/n_", b"", sequential=True) for session in (zk, other) * 10]
    zxids = [stat.czxid for _, stat in made]
    assert zxids == sorted(set(zxids))
    results = await zk.multi([Create(path=f"{bench.root}/m_", data=b"", sequential=True) for _ in range(2)])
    assert results == [f"{bench.root}/m_{number:010d}" for number in (20, 21)]
    stats = [await zk.exists(str(path)) for path in results]
    assert len({stat.czxid for stat in stats if stat is not None}) == 1


async def _one_winner(bench: Bench) -> None:
    zk, other, path = bench.sessions[0], await bench.session(), f"{bench.root}/a"
    for number in range(10):
        calls = [session.create(f"{path}{number}", b"", ephemeral=True) for session in (zk, other)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes].count(NodeExists) == 1
    await zk.create(path, b"")
    for version in range(10):
        sets = await asyncio.gather(
            *(session.set(path, b"", version) for session in (zk, other)), return_exceptions=True
        )
        assert [type(outcome) for outcome in sets].count(BadVersion) == 1


async def _succession(bench: Bench) -> None:
    zk, path = bench.sessions[0], f"{bench.root}/a"
    holder = await bench.session()
    await holder.create(path, b"first", ephemeral=True)
    zk.watch_node(path, bench.record)
    assert await zk.exists(path)
    await holder.close()
    await bench.sees((WatchType.DELETED, "/a"))
    await zk.create(path, b"second", ephemeral=True)
    assert await zk.get(path) == (b"second", await zk.exists(path))


async def _forced_expiry(bench: Bench) -> None:
    zk, path = bench.sessions[0], f"{bench.root}/a"
    zk.watch_children(bench.root, bench.record)
    zk.watch_node(path, bench.record)
    owner = await bench.session()
    await owner.create(path, b"", ephemeral=True)
    owner.watch_node(path, lambda kind, _: None if kind is WatchType.MAYBE else bench.record(kind, "its owner hears"))
    await owner.exists(path)
    await zk.children(bench.root)
    await zk.exists(path)
    await bench.expire(owner)
    await bench.reaches(SessionState.LOST)
    there_and_away = [SessionState.CONNECTED, SessionState.SUSPENDED]  # a quick owner is back before its session goes
    assert bench.states == there_and_away * (len(bench.states) // 2) + [SessionState.LOST]
    await bench.sees((WatchType.DELETED, "/a"), (WatchType.CHILDREN, ""))
    assert owner.expired
    for call in (owner.exists("/"), owner.set(bench.root, b"", ANY_VERSION), owner.multi([Delete(path=path)])):
        with pytest.raises(SessionExpired):
            await call


async def _lost_connection(bench: Bench) -> None:
    zk, path = bench.sessions[0], f"{bench.root}/a"
    subject = await bench.session()
    await subject.create(path, b"", ephemeral=True)
    subject.watch_node(path, bench.record)
    subject.watch_children(bench.root, bench.record)
    await subject.get(path)
    session_id = subject.session_id
    bench.cut(subject)
    await bench.reaches(SessionState.SUSPENDED)
    await zk.set(path, b"changed while it could not hear", 0)
    waiting = [asyncio.ensure_future(subject.set(path, b"", version)) for version in range(1, 6)]
    bench.mend(subject)
    assert [(await call).version for call in waiting] == [2, 3, 4, 5, 6]
    assert bench.states == [SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.CONNECTED]
    assert (subject.session_id, subject.expired) == (session_id, False)
    watches = [(WatchType.MAYBE, "/a"), (WatchType.MAYBE, "")]
    await bench.sees(*watches)
    await zk.set(path, b"unheard: the watch went with the connection", 6)
    await bench.sees(*watches)
    await subject.get(path)
    await zk.set(path, b"heard", 7)
    await bench.sees(*watches, (WatchType.DATA, "/a"))


async def _silence(bench: Bench) -> None:
    zk, path = bench.sessions[0], f"{bench.root}/a"
    subject = await bench.session()
    await subject.create(path, b"", ephemeral=True)
    zk.watch_node(path, bench.record)
    await zk.exists(path)
    bench.cut(subject)
    await bench.reaches(SessionState.SUSPENDED)
    call = asyncio.ensure_future(subject.set(path, b"", 0))
    await until(lambda: zk.exists(path), lambda stat: stat is None, what="end of the session", timeout_s=120)
    await until(bench.heard, lambda seen: seen == [(WatchType.DELETED, "/a")], what="the watch", timeout_s=120)
    assert not call.done()
    assert not subject.expired
    bench.mend(subject)
    await bench.reaches(SessionState.LOST)
    with pytest.raises(SessionExpired):
        await call


PROMISES = [
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
    pytest.param(_watch_before_answer, id="a watch is told before what it announces can be read"),
    pytest.param(_watches_of_a_deletion, id="a deletion is told to both handlers of the path and to the parent's"),
    pytest.param(_watches_of_a_multi, id="a multi that fails fires no watch, one that succeeds fires one for each op"),
    pytest.param(_transactions_in_order, id="all sessions' writes have one order, a multi one place in it"),
    pytest.param(_one_winner, id="of two writes that exclude each other exactly one succeeds"),
    pytest.param(_succession, id="a client that watched an ephemeral can take its place when its session has ended"),
    pytest.param(_forced_expiry, id="a session ended by others: the watchers hear, then its owner, and nothing works"),
    pytest.param(_lost_connection, id="a lost connection: calls wait in order, handlers are told and not armed"),
    pytest.param(_silence, id="a session that is silent too long is over, and its owner hears when it is back"),
    pytest.param(_edges, id="a session connects once, and a closed one is over without a word"),
    *RACES,
]


@pytest.mark.parametrize("promise", PROMISES)
async def test_the_stand_in_keeps_the_promise(promise: Promise) -> None:
    await played(simulated(), promise)


@pytest.mark.cluster
@pytest.mark.real_time("a real server behind kazoo's threads")
@pytest.mark.parametrize("promise", PROMISES)
async def test_the_real_server_keeps_the_promise(server_port: int, promise: Promise) -> None:
    async with AsyncExitStack() as stack:
        await played(await real(server_port, stack), promise)

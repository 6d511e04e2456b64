"""More of what the broker relies on: the order of writes, the meaning of numbers and versions, the order of events."""

import asyncio

import pytest

from harness.broker.zookeeper.client import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Op,
    RolledBack,
    SessionExpired,
    SessionState,
    Set,
    Stat,
    WatchType,
)
from tests.broker.zookeeper.bench import Bench


async def _raised_fence(bench: Bench) -> None:
    """As a controller writes, fenced by the version of `/controller_epoch` (KAFKA-6082)."""
    old, new, fence, state = bench.sessions[0], await bench.session(), f"{bench.root}/epoch", f"{bench.root}/state"
    await old.create(fence, b"1")
    await old.create(state, b"by the old one")
    fenced: list[Op] = [
        Check(path=fence, version=0),
        Set(path=state, data=b"again", version=0),
        Create(path=f"{state}2", data=b""),
    ]
    await new.set(fence, b"2", 0)
    assert [type(result) for result in await old.multi(fenced)] == [BadVersion, RolledBack, RolledBack]
    assert (await new.get(state))[0] == b"by the old one"
    done = await new.multi([Check(path=fence, version=1), Set(path=state, data=b"by the new one", version=0)])
    assert isinstance(done[1], Stat)
    assert (await old.get(state))[0] == b"by the new one"


async def _taken_over(bench: Bench) -> None:
    """As a broker registers: create and set in one multi, which another session's ephemeral refuses until it ends."""
    other, owner, path = bench.sessions[0], await bench.session(), f"{bench.root}/id"
    register: list[Op] = [Create(path=path, data=b"", ephemeral=True), Set(path=path, data=b"r", version=0)]
    first = (await owner.multi(register))[1]
    assert isinstance(first, Stat)
    assert [type(result) for result in await other.multi(register)] == [NodeExists, RolledBack]
    assert [type(result) for result in await owner.multi(register)] == [NodeExists, RolledBack], "its own one too"
    other.watch_node(path, bench.record)
    stat = await other.exists(path)
    assert stat is not None
    assert (stat.ephemeral_owner, stat.czxid) == (owner.session_id, first.czxid)
    await bench.expire(owner)
    await bench.sees((WatchType.DELETED, "/id"))
    second = (await other.multi(register))[1]
    assert isinstance(second, Stat)
    assert second.czxid > first.czxid, "the broker epoch rises (KIP-380)"


async def _expired_in_the_middle(bench: Bench) -> None:
    zk, owner, path = bench.sessions[0], await bench.session(), f"{bench.root}/a"
    await zk.create(path, b"")
    bench.cut(owner)
    await bench.reaches(SessionState.SUSPENDED)
    waiting = asyncio.ensure_future(owner.multi([Set(path=path, data=b"late", version=0)]))
    await bench.expire(owner)
    bench.mend(owner)
    with pytest.raises(SessionExpired):
        await waiting
    assert (await zk.get(path))[1].version == 0, "nothing of a session is carried out after its end"


async def _another_life(bench: Bench) -> None:
    zk, path = bench.sessions[0], f"{bench.root}/a"
    _, first = await zk.create(path, b"one")
    await zk.set(path, b"two", 0)
    await zk.delete(path, 1)
    _, second = await zk.create(path, b"three")
    assert (second.version, second.czxid > first.czxid) == (0, True), "versions begin anew, czxids do not"
    with pytest.raises(BadVersion):
        await zk.set(path, b"", 1)
    assert (await zk.set(path, b"", 0)).version == 1


async def _numbers_once(bench: Bench) -> None:
    zk, path = bench.sessions[0], f"{bench.root}/n_"
    made = [(await zk.create(path, b"", sequential=True))[0] for _ in range(2)]
    await zk.delete(made[1])
    after = (await zk.create(path, b"", sequential=True))[0]
    assert after == f"{path}0000000002"
    await zk.multi([Create(path=path, data=b"", sequential=True), Delete(path=f"{bench.root}/none")])
    assert (await zk.create(path, b"", sequential=True))[0] == f"{path}0000000003", "a multi that failed took none"


async def _in_one_breath(bench: Bench) -> None:
    zk, path = bench.sessions[0], f"{bench.root}/a"
    calls = (
        zk.create(path, b"0"),
        zk.get(path),
        zk.set(path, b"1", 0),
        zk.get(path),
        zk.delete(path, 1),
        zk.exists(path),
    )
    created, first, _, second, _, gone = await asyncio.gather(*calls)
    assert (created[0], first[0], second[0], gone) == (path, b"0", b"1", None)


async def _absent_through_a_cut(bench: Bench) -> None:
    """As a broker waits for `/controller` to appear: what came while it could not hear, it is told to look for."""
    zk, subject, path = bench.sessions[0], await bench.session(), f"{bench.root}/controller"
    subject.watch_node(path, bench.record)
    assert await subject.exists(path) is None
    bench.cut(subject)
    await bench.reaches(SessionState.SUSPENDED)
    await zk.create(path, b"")
    bench.mend(subject)
    await bench.reaches(SessionState.CONNECTED)
    await bench.sees((WatchType.MAYBE, "/controller"))
    assert await subject.exists(path) is not None
    await zk.delete(path)
    await bench.sees((WatchType.MAYBE, "/controller"), (WatchType.DELETED, "/controller"))


async def _child_before_parent(bench: Bench) -> None:
    zk, other, path = bench.sessions[0], await bench.session(), f"{bench.root}/a"
    zk.watch_children(bench.root, bench.record)
    zk.watch_node(path, bench.record)
    await zk.children(bench.root)
    await zk.exists(path)
    await other.create(path, b"")
    await bench.sees((WatchType.CREATED, "/a"), (WatchType.CHILDREN, ""))


async def _dead_by_order(bench: Bench) -> None:
    """All ephemerals of a session go at once: after the event of one, no other is left."""
    zk, owner = bench.sessions[0], await bench.session()
    paths = [f"{bench.root}/{name}" for name in "abc"]
    for path in paths:
        await owner.create(path, b"", ephemeral=True)
        zk.watch_node(path, bench.record)
        await zk.exists(path)
    await bench.expire(owner)
    await bench.reaches(SessionState.LOST)
    assert [await zk.exists(path) for path in paths] == [None, None, None]
    assert sorted(await bench.heard()) == [(WatchType.DELETED, f"/{name}") for name in "abc"]
    with pytest.raises(NoNode):
        await zk.get(paths[0])


RACES = [
    pytest.param(_raised_fence, id="a multi whose fence was raised meanwhile writes nothing"),
    pytest.param(_taken_over, id="an id is its session's until that ends, and then another's in a later transaction"),
    pytest.param(_expired_in_the_middle, id="a write that waits when its session ends is never carried out"),
    pytest.param(_another_life, id="a znode made anew begins with version 0 and a later czxid"),
    pytest.param(_numbers_once, id="a sequential number is given once, deletions count for nothing"),
    pytest.param(_in_one_breath, id="pipelined calls read what earlier ones wrote"),
    pytest.param(_absent_through_a_cut, id="a znode that appears during a cut is not missed"),
    pytest.param(_child_before_parent, id="a creation is told to the znode's handler, then to the parent's"),
    pytest.param(_dead_by_order, id="a session's ephemerals are gone together"),
]

"""The real server behind kazoo, when connections break and sessions end."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss as KazooConnectionLoss

from harness.broker.zookeeper.client import ConnectionLoss, SessionExpired, SessionState, WatchType
from harness.broker.zookeeper.kazoo_client import KazooZooKeeper, _Call
from harness.system.waiting import until
from harness.zookeeper.sessions import expire, to_text
from tests.broker.zookeeper.cut_proxy import CutProxy

pytestmark = [pytest.mark.cluster, pytest.mark.real_time("a real server behind kazoo's threads")]


@dataclass
class Subject:
    """A session through a proxy, and all it has said."""

    zk: KazooZooKeeper
    proxy: CutProxy
    direct: KazooZooKeeper
    states: list[SessionState] = field(default_factory=list)
    watches: list[tuple[WatchType, str]] = field(default_factory=list)

    def record(self, kind: WatchType, path: str) -> None:
        self.watches.append((kind, path))

    async def reaches(self, state: SessionState) -> None:
        async def last() -> SessionState | None:
            return self.states[-1] if self.states else None

        await until(last, lambda now: now is state, what=f"state {state}", timeout_s=120, every_s=0.01)


@pytest.fixture
async def subject(server_port: int) -> AsyncIterator[Subject]:
    proxy = CutProxy(server_port)
    await proxy.start()
    zk = KazooZooKeeper(f"127.0.0.1:{proxy.port}", session_timeout_s=8, connection_timeout_s=120)
    direct = KazooZooKeeper(f"127.0.0.1:{server_port}", session_timeout_s=8, connection_timeout_s=120)
    made = Subject(zk, proxy, direct)
    zk.on_state(made.states.append)
    await zk.connect()
    await direct.connect()
    yield made
    proxy.mend()
    await direct.close()
    await zk.close()
    await proxy.stop()


async def _expire(port: int, session_id: int) -> None:
    await expire(f"127.0.0.1:{port}", to_text(session_id))


async def test_after_a_lost_connection_every_handler_is_told_and_can_be_armed_again(subject: Subject) -> None:
    zk, path = subject.zk, "/rearmed"
    await zk.create(path, b"")
    zk.watch_node(path, subject.record)
    zk.watch_children(path, subject.record)
    await zk.get(path)
    await zk.children(path)
    session_id = zk.session_id
    subject.proxy.cut()
    await subject.reaches(SessionState.SUSPENDED)
    await subject.direct.set(path, b"changed while disconnected", 0)
    subject.proxy.mend()
    await subject.reaches(SessionState.CONNECTED)
    assert subject.watches == [(WatchType.MAYBE, path), (WatchType.MAYBE, path)]
    assert (await zk.get(path))[0] == b"changed while disconnected"
    await zk.children(path)
    await subject.direct.set(path, b"again", 1)
    await subject.direct.create(f"{path}/child", b"")

    async def watches() -> list[tuple[WatchType, str]]:
        return subject.watches[2:]

    await until(watches, lambda now: len(now) == 2, what="two watches", timeout_s=120)
    assert subject.watches[2:] == [(WatchType.DATA, path), (WatchType.CHILDREN, path)]
    assert (zk.session_id, zk.expired) == (session_id, False)
    assert subject.states == [SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.CONNECTED]


async def test_calls_wait_through_a_lost_connection_and_keep_their_order(subject: Subject) -> None:
    zk, path = subject.zk, "/waiting"
    await zk.create(path, b"")
    subject.proxy.cut()
    await subject.reaches(SessionState.SUSPENDED)
    writes = [asyncio.ensure_future(zk.set(path, b"", version)) for version in range(5)]
    done, _ = await asyncio.wait(writes, timeout=0.05)
    assert not done
    subject.proxy.mend()
    assert [(await write).version for write in writes] == [1, 2, 3, 4, 5]


async def test_calls_on_their_way_when_the_connection_breaks_are_sent_again(subject: Subject) -> None:
    zk = subject.zk
    await zk.create("/again", b"")
    names = [f"/again/{number:03d}" for number in range(200)]
    creates = [asyncio.ensure_future(zk.create(name, b"")) for name in names]
    await asyncio.wait(creates, return_when=asyncio.FIRST_COMPLETED)
    subject.proxy.cut()
    await subject.reaches(SessionState.SUSPENDED)
    subject.proxy.mend()
    await asyncio.gather(*creates, return_exceptions=True)  # one carried out twice finds itself: NodeExists
    assert [f"/again/{name}" for name in await zk.children("/again")] == names


@dataclass
class _Lost:
    exception: Exception
    value: None = None


async def test_a_loss_that_is_heard_of_only_after_the_next_connection_is_sent_again_at_once(subject: Subject) -> None:
    zk = subject.zk
    subject.proxy.cut()
    await subject.reaches(SessionState.SUSPENDED)
    subject.proxy.mend()
    await subject.reaches(SessionState.CONNECTED)
    call = _Call(
        send=lambda: zk._client.exists_async("/"), future=asyncio.get_running_loop().create_future(), connection=1
    )
    zk._answered(call, _Lost(KazooConnectionLoss()))
    assert await call.future


async def test_an_expired_session_is_over_for_good(
    subject: Subject, server_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    zk = subject.zk
    zk.watch_node("/never", subject.record)
    await zk.exists("/never")
    await zk.create("/mine", b"", ephemeral=True)
    session_id = zk.session_id
    attempts: list[object] = []
    connect = zk._handler.create_connection

    def attempt(**kwargs: Any) -> Any:
        attempts.append(kwargs)
        return connect(**kwargs)

    monkeypatch.setattr(zk._handler, "create_connection", attempt)
    await _expire(server_port, session_id)
    await subject.reaches(SessionState.LOST)
    watches = list(subject.watches)  # a client that was quick has been back once before its session went
    assert await subject.direct.exists("/mine") is None
    with pytest.raises(SessionExpired):
        await zk.create("/mine", b"")
    await subject.direct.create("/never", b"")

    async def tries() -> int:
        return len(attempts)

    await until(tries, lambda n: n >= 3, what="tries of kazoo to open a session of its own", timeout_s=120)
    assert (zk.expired, zk.session_id) == (True, session_id)
    assert subject.states[-1] is SessionState.LOST
    assert subject.watches == watches


async def test_calls_that_wait_when_the_session_expires_fail(subject: Subject, server_port: int) -> None:
    subject.proxy.cut()
    await subject.reaches(SessionState.SUSPENDED)
    waiting = asyncio.ensure_future(subject.zk.exists("/"))
    await _expire(server_port, subject.zk.session_id)
    subject.proxy.mend()
    with pytest.raises(SessionExpired):
        await waiting


async def test_close_fails_calls_that_wait(subject: Subject) -> None:
    subject.proxy.cut()
    await subject.reaches(SessionState.SUSPENDED)
    waiting = asyncio.ensure_future(subject.zk.exists("/"))
    await asyncio.sleep(0)
    await subject.zk.close()
    with pytest.raises(SessionExpired):
        await waiting
    await subject.zk.close()


async def test_no_server_in_time_is_a_connection_loss(subject: Subject) -> None:
    subject.proxy.cut()
    lonely = KazooZooKeeper(f"127.0.0.1:{subject.proxy.port}", session_timeout_s=4, connection_timeout_s=0.3)
    with pytest.raises(ConnectionLoss, match=r"no session within 0\.3 s"):
        await lonely.connect()
    assert lonely.expired

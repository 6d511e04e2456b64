"""Sessions to hold the protocol's promises against: of the stand-in, and of a real server behind kazoo."""

import contextlib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count

from harness.broker.zookeeper.client import SessionExpired, SessionState, WatchType, ZooKeeper
from harness.broker.zookeeper.kazoo_client import KazooZooKeeper
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from harness.system.waiting import until
from harness.zookeeper.sessions import expire as expire_session
from harness.zookeeper.sessions import to_text
from tests.broker import sessions
from tests.broker.zookeeper.cut_proxy import CutProxy

_roots = count()

Promise = Callable[["Bench"], Awaitable[None]]


@dataclass
class Bench:
    """Sessions to try things with, below a path of their own."""

    open: Callable[[], ZooKeeper]
    expire: Callable[[ZooKeeper], Awaitable[None]]
    """Ends a session at the server, unknown to its client."""
    cut: Callable[[ZooKeeper], None]
    """Breaks a session's connection and keeps it broken, until …"""
    mend: Callable[[ZooKeeper], None]
    root: str
    sessions: list[ZooKeeper] = field(default_factory=list)
    seen: list[tuple[WatchType, str]] = field(default_factory=list)
    states: list[SessionState] = field(default_factory=list)
    """Of the session opened last."""

    async def session(self) -> ZooKeeper:
        zk = self.open()
        self.sessions.append(zk)
        self.states = []
        zk.on_state(self.states.append)
        await zk.connect()
        return zk

    def record(self, kind: WatchType, path: str) -> None:
        self.seen.append((kind, path.removeprefix(self.root)))

    async def heard(self) -> list[tuple[WatchType, str]]:
        return list(self.seen)

    async def sees(self, *expected: tuple[WatchType, str]) -> None:
        """Wait for the expected watches, and give unexpected ones the time of a round trip to show up."""

        await until(self.heard, lambda now: len(now) >= len(expected), what=f"watches {expected}", timeout_s=120)
        for zk in self.sessions:
            with contextlib.suppress(SessionExpired):  # one that is over may hear so only now
                await zk.exists("/")
        assert self.seen == list(expected)

    async def reaches(self, state: SessionState) -> None:
        states = self.states

        async def last() -> SessionState | None:
            return states[-1] if states else None

        await until(last, lambda now: now is state, what=f"state {state}", timeout_s=120, every_s=0.01)


async def played(bench: Bench, promise: Promise) -> None:
    zk = await bench.session()
    await zk.create(bench.root, b"")
    try:
        await promise(bench)
    finally:
        for session in bench.sessions:
            bench.mend(session)
        for session in bench.sessions:
            await session.close()


def simulated() -> Bench:
    ensemble = Ensemble()

    async def expire(zk: ZooKeeper) -> None:
        ensemble.end(zk.session_id)

    return Bench(
        open=lambda: SimulatedZooKeeper(ensemble, session_timeout_s=2),
        expire=expire,
        cut=lambda zk: sessions.simulated(zk).disconnect(),
        mend=lambda zk: sessions.simulated(zk).reconnect(),
        root=f"/t{next(_roots)}",
    )


async def real(port: int, stack: AsyncExitStack) -> Bench:
    proxies: dict[int, CutProxy] = {}
    free = [CutProxy(port) for _ in range(3)]
    for proxy in free:
        await proxy.start()
        stack.push_async_callback(proxy.stop)

    def open_session() -> ZooKeeper:
        proxy = free.pop()
        zk = KazooZooKeeper(f"127.0.0.1:{proxy.port}", session_timeout_s=8, connection_timeout_s=120)
        proxies[id(zk)] = proxy
        return zk

    async def expire(zk: ZooKeeper) -> None:
        await expire_session(f"127.0.0.1:{port}", to_text(zk.session_id))

    return Bench(
        open=open_session,
        expire=expire,
        cut=lambda zk: proxies[id(zk)].cut(),
        mend=lambda zk: proxies[id(zk)].mend(),
        root=f"/t{next(_roots)}",
    )

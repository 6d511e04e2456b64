import asyncio

import pytest

from harness.broker.zookeeper import session as session_module
from harness.broker.zookeeper.client import ConnectionLoss, SessionExpired
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.events import ZkSession
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from harness.system.waiting import until
from tests.broker.recording_state_log import RecordingStateLog


class StampedStateLog(RecordingStateLog):
    """Notes the session stamp between events."""

    def __init__(self) -> None:
        super().__init__(events=[])
        self.story: list[str] = []

    def emit(self, event: object) -> None:
        assert isinstance(event, ZkSession)
        self.story.append(event.state)

    def session_changed(self, session_id: int) -> None:
        self.story.append(f"stamp {'on' if session_id else 'off'}")

    def registered(self, broker_epoch: int) -> None:
        self.story.append(f"broker epoch {broker_epoch}")


class Watched:
    """A session over the fake, with hooks that record their calls."""

    def __init__(self) -> None:
        self.server = Ensemble()
        self.log = StampedStateLog()
        self.opened: list[SimulatedZooKeeper] = []
        self.session = ZooKeeperSession(self._open, self.log)
        self.renewed = asyncio.Event()
        self.session.before_new_session(self._before)
        self.session.after_new_session(self._after)

    def _open(self) -> SimulatedZooKeeper:
        self.opened.append(SimulatedZooKeeper(self.server))
        return self.opened[-1]

    async def _before(self) -> None:
        self.log.story.append(f"before, expired={self.session.current.expired}, sessions={len(self.opened)}")

    async def _after(self) -> None:
        self.log.story.append(f"after, expired={self.session.current.expired}, sessions={len(self.opened)}")
        self.renewed.set()


async def test_after_expiry_the_old_work_ends_before_the_new_session_begins() -> None:
    watched = Watched()
    await watched.session.start()
    first = watched.opened[0]
    first.expire()
    with pytest.raises(SessionExpired):
        await watched.session.current.exists("/")
    await watched.renewed.wait()
    assert watched.log.story == [
        "stamp on",
        "connected",
        "lost",
        "stamp off",
        "broker epoch -1",
        "before, expired=True, sessions=1",
        "stamp on",
        "connected",
        "reinit",
        "after, expired=False, sessions=2",
    ]
    assert watched.session.current is watched.opened[1]
    assert watched.session.previous_session_id == first.session_id
    await watched.session.stop()


async def test_a_lost_connection_replaces_nothing() -> None:
    watched = Watched()
    await watched.session.start()
    watched.opened[0].disconnect()
    watched.opened[0].reconnect()
    assert await watched.session.current.exists("/")
    assert watched.log.story == ["stamp on", "connected", "suspended", "stamp on", "connected"]
    assert len(watched.opened) == 1
    await watched.session.stop()


async def test_every_expired_session_is_replaced() -> None:
    watched = Watched()
    await watched.session.start()
    for number in range(3):
        watched.opened[number].expire()
        await watched.renewed.wait()
        watched.renewed.clear()
    assert [zk.expired for zk in watched.opened] == [True, True, True, False]
    await watched.session.stop()


async def test_no_server_is_asked_again_until_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "RECONNECT_WAIT_S", 0)
    watched = Watched()
    await watched.session.start()
    watched.server.reachable = False
    watched.opened[0].expire()

    async def tries() -> int:
        return len(watched.opened)

    await until(tries, lambda n: n >= 4, what="tries to open a session", timeout_s=5, every_s=0)
    with pytest.raises(SessionExpired):
        await watched.session.current.exists("/")
    watched.server.reachable = True
    await watched.renewed.wait()
    assert await watched.session.current.exists("/")
    await watched.session.stop()


async def test_a_start_without_a_server_says_so() -> None:
    watched = Watched()
    watched.server.reachable = False
    with pytest.raises(ConnectionLoss):
        await watched.session.start()
    await watched.session.stop()


async def test_stop_ends_the_session_and_its_ephemerals_at_once() -> None:
    watched = Watched()
    await watched.session.start()
    await watched.session.current.create("/e", b"", ephemeral=True)
    await watched.session.stop()
    await watched.session.stop()
    assert "/e" not in watched.server.nodes
    assert "lost" not in watched.log.story

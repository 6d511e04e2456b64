"""Keeps the broker in a ZooKeeper session: when one expires, the next is opened, in the order Kafka prescribes.

The order on expiry (`KafkaController` and `ZooKeeperClient.reinitialize`): first the hooks before a new session, which
end all work of the controller; only then the new session, so that no old work can write through it; then the hooks
after it, which register the broker again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from harness.broker.background import reported
from harness.broker.state_log import StateLog
from harness.broker.wire.sentinels import UNKNOWN_BROKER_EPOCH
from harness.broker.zookeeper.client import ConnectionLoss, SessionState, ZooKeeper
from harness.events import ZkSession

log = logging.getLogger(__name__)

Hook = Callable[[], Awaitable[None]]

RECONNECT_WAIT_S = 1.0
"""Pause between two tries to open a new session; Kafka's figure."""


class ZooKeeperSession:
    """Owns the broker's current `ZooKeeper` object and replaces it after expiry."""

    def __init__(self, open_session: Callable[[], ZooKeeper], state_log: StateLog) -> None:
        self._open_session = open_session
        self._state_log = state_log
        self._current = open_session()
        self._previous_session_id = 0
        self._before: list[Hook] = []
        self._after: list[Hook] = []
        self._expired = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    @property
    def current(self) -> ZooKeeper:
        """The session in force, or the expired one until the next is connected; ask again for every call."""
        return self._current

    @property
    def previous_session_id(self) -> int:
        """The session before the current one; 0 when this is the first."""
        return self._previous_session_id

    def before_new_session(self, hook: Hook) -> None:
        """Await `hook` after an expiry, before the new session is opened; hooks run in order of registration."""
        self._before.append(hook)

    def after_new_session(self, hook: Hook) -> None:
        """Await `hook` in each new session; hooks run in order of registration."""
        self._after.append(hook)

    async def start(self) -> None:
        """Open the first session.

        Raises:
            ConnectionLoss: no server answered in time.
        """
        await self._connect(self._current)
        self._keeper = asyncio.create_task(self._replace_expired(), name="zookeeper-session")
        self._keeper.add_done_callback(reported)

    async def stop(self) -> None:
        """End the session; this broker's ephemerals vanish at once. Idempotent."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
            self._keeper = None
        await self._current.close()

    async def _connect(self, zk: ZooKeeper) -> None:
        zk.on_state(lambda state: self._state_changed(zk, state))
        await zk.connect()

    def _state_changed(self, zk: ZooKeeper, state: SessionState) -> None:
        log.info("session.%s id=0x%x", state, zk.session_id)
        if state is SessionState.CONNECTED:
            self._state_log.session_changed(zk.session_id)
        self._state_log.emit(ZkSession(state=str(state)))
        if state is SessionState.LOST:
            self._state_log.session_changed(0)
            self._state_log.registered(UNKNOWN_BROKER_EPOCH)
            self._expired.set()

    async def _replace_expired(self) -> None:
        while True:
            await self._expired.wait()
            self._expired.clear()
            for hook in self._before:
                await hook()
            expired = self._current
            self._current = await self._open_next()
            self._previous_session_id = expired.session_id
            self._state_log.emit(ZkSession(state="reinit"))
            for hook in self._after:
                await hook()
            await expired.close()

    async def _open_next(self) -> ZooKeeper:
        """Return a new session, retrying without a limit."""
        while True:
            fresh = self._open_session()
            try:
                await self._connect(fresh)
            except ConnectionLoss as error:
                log.warning("session.reinit failed error=%s", error)
                await fresh.close()
            except asyncio.CancelledError:
                await fresh.close()
                raise
            else:
                return fresh
            await asyncio.sleep(RECONNECT_WAIT_S)

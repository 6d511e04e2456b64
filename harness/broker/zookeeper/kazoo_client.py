"""One ZooKeeper session over kazoo: kazoo's threads on one side, the broker's loop on the other.

kazoo differs from Kafka's Java client in four ways that matter, and this adapter takes them back:

- its watches die with every connection, so after each reconnect all handlers are told `WatchType.MAYBE`;
- it opens a new session by itself after an expiry, so `_OneSessionHandler` refuses any connection from then on;
- a listener that blocks holds up everything, so listeners only hand over to the loop;
- a lost connection fails its requests, so they are sent again, in order, once it is back.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.exceptions import ConnectionLoss as KazooConnectionLoss
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import Callback
from kazoo.protocol.states import EventType, KazooState, WatchedEvent, ZnodeStat
from kazoo.retry import KazooRetry

from harness.broker.zookeeper.client import (
    ANY_VERSION,
    BadVersion,
    Check,
    ConnectionLoss,
    Create,
    Delete,
    Handlers,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    OpResult,
    RolledBack,
    SessionExpired,
    SessionState,
    Set,
    Stat,
    Watch,
    WatchType,
    ZooKeeperError,
)

log = logging.getLogger(__name__)

_ERRORS: dict[type[KazooException], type[ZooKeeperError]] = {
    NoNodeError: NoNode,
    NodeExistsError: NodeExists,
    BadVersionError: BadVersion,
    NotEmptyError: NotEmpty,
    RolledBackError: RolledBack,
    RuntimeInconsistency: RolledBack,
    SessionExpiredError: SessionExpired,
    ConnectionClosedError: SessionExpired,
}

_WATCH_TYPES: dict[str, WatchType] = {
    EventType.CREATED: WatchType.CREATED,
    EventType.DELETED: WatchType.DELETED,
    EventType.CHANGED: WatchType.DATA,
    EventType.CHILD: WatchType.CHILDREN,
}


class _OneSessionHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no annotations
    """Delivers answers and watches on one thread, in order of arrival, and connects for one session only."""

    def __init__(self) -> None:
        super().__init__()
        self.session_over = False

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        if self.session_over:
            raise OSError("this session is over")
        return super().create_connection(*args, **kwargs)

    def dispatch_callback(self, callback: Callback) -> None:
        self.completion_queue.put(lambda: callback.func(*callback.args))


@dataclass(slots=True, eq=False)
class _Call:
    """One request on its way, perhaps more than once."""

    send: Callable[[], Any]
    future: asyncio.Future[Any]
    connection: int = 0
    """Which connection it was last sent on; 0 when it is to be sent."""


class KazooZooKeeper(Handlers):
    """Implements `ZooKeeper`.

    Calls made while the connection breaks may be carried out before older ones that were on their way; all others are
    carried out in the order they were made.
    """

    def __init__(self, hosts: str, *, session_timeout_s: float, connection_timeout_s: float) -> None:
        super().__init__()
        self._connection_timeout_s = connection_timeout_s
        self._handler = _OneSessionHandler()
        retry = KazooRetry(
            max_tries=-1, delay=0.05, backoff=2, max_jitter=0.2, max_delay=0.5, sleep_func=self._handler.sleep_func
        )
        self._client = KazooClient(hosts, timeout=session_timeout_s, handler=self._handler, connection_retry=retry)
        self._client.add_listener(self._state_changed)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connected = asyncio.Event()
        self._connections = 0
        self._session_id = 0
        self._closed = False
        self._calls: dict[int, _Call] = {}
        self._next_call = 0

    @property
    def session_id(self) -> int:
        """The session's id; 0 before the first connect."""
        return self._session_id

    @property
    def expired(self) -> bool:
        """Whether the session is known to be over."""
        return bool(self._handler.session_over)

    async def connect(self) -> None:
        """Open the session; raises ConnectionLoss when no server answers in time."""
        self._loop = asyncio.get_running_loop()
        self._client.start_async()
        try:
            async with asyncio.timeout(self._connection_timeout_s):
                await self._connected.wait()
        except TimeoutError:
            hosts = ",".join(f"{host}:{port}" for host, port in self._client.hosts)
            await self.close()
            raise ConnectionLoss(f"ZooKeeper at {hosts}: no session within {self._connection_timeout_s:g} s") from None

    async def close(self) -> None:
        """End the session; its ephemerals vanish at once. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._handler.session_over = True
        self._fail_calls()
        await asyncio.to_thread(self._stop_client)

    async def get(self, path: str) -> tuple[bytes, Stat]:
        """Return a znode's data; arms its node handler. Raises NoNode."""
        watch = self._node_fired if path in self._node_handlers else None
        data, stat = await self._call(lambda: self._client.get_async(path, watch=watch))
        return data, _stat(stat)

    async def exists(self, path: str) -> Stat | None:
        """Return a znode's stat or None; arms its node handler either way."""
        watch = self._node_fired if path in self._node_handlers else None
        stat = await self._call(lambda: self._client.exists_async(path, watch=watch))
        return None if stat is None else _stat(stat)

    async def children(self, path: str) -> list[str]:
        """Return the names of a znode's children, sorted; arms its child handler. Raises NoNode."""
        watch = self._children_fired if path in self._child_handlers else None
        return sorted(await self._call(lambda: self._client.get_children_async(path, watch=watch)))

    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequential: bool = False
    ) -> tuple[str, Stat]:
        """Create a znode and return its path and stat. Raises NodeExists, NoNode (no parent)."""
        created, stat = await self._call(
            lambda: self._client.create_async(
                path, data, ephemeral=ephemeral, sequence=sequential, makepath=False, include_data=True
            )
        )
        return created, _stat(stat)

    async def set(self, path: str, data: bytes, version: int) -> Stat:
        """Replace a znode's data. Raises NoNode, BadVersion."""
        return _stat(await self._call(lambda: self._client.set_async(path, data, version=version)))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a znode. Raises NoNode, BadVersion, NotEmpty."""
        await self._call(lambda: self._client.delete_async(path, version=version))

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        """Carry out all or none; never raises for an op's own error, which stands in the result."""
        results = await self._call(lambda: self._commit(ops))
        return [_op_result(result) for result in results]

    def _commit(self, ops: Sequence[Op]) -> Any:
        transaction = self._client.transaction()
        for op in ops:
            match op:
                case Check(path=path, version=version):
                    transaction.check(path, version)
                case Create(path=path, data=data, ephemeral=ephemeral, sequential=sequential):
                    transaction.create(path, data, ephemeral=ephemeral, sequence=sequential)
                case Set(path=path, data=data, version=version):
                    transaction.set_data(path, data, version)
                case Delete(path=path, version=version):
                    transaction.delete(path, version)
        return transaction.commit_async()

    async def _call(self, send: Callable[[], Any]) -> Any:
        """Return the answer to a request, sent again after every lost connection until there is one."""
        if self.expired:
            raise SessionExpired(f"session 0x{self._session_id:x} is over")
        call = _Call(send=send, future=asyncio.get_running_loop().create_future())
        number, self._next_call = self._next_call, self._next_call + 1
        self._calls[number] = call
        if self._connected.is_set():
            self._send(call)
        try:
            return await call.future
        finally:
            del self._calls[number]

    def _send(self, call: _Call) -> None:
        call.connection = self._connections
        call.send().rawlink(partial(self._post, self._answered, call))

    def _answered(self, call: _Call, result: Any) -> None:
        error = result.exception
        if call.future.done():
            return
        if error is None:
            call.future.set_result(result.value)
        elif isinstance(error, (KazooConnectionLoss, OperationTimeoutError)) and not self.expired:
            resend_now = self._connected.is_set() and call.connection < self._connections
            call.connection = 0
            if resend_now:
                self._send(call)
        elif isinstance(error, (KazooConnectionLoss, OperationTimeoutError)):
            call.future.set_exception(SessionExpired(f"session 0x{self._session_id:x} is over"))
        else:
            call.future.set_exception(_error(error))

    def _state_changed(self, state: str) -> None:
        """Hand an edge over to the loop, behind all answers that came before it; runs on kazoo's connection thread."""
        if state == KazooState.LOST:
            self._handler.session_over = True
        self._handler.completion_queue.put(partial(self._post, self._edge, state))

    def _edge(self, state: str) -> None:
        if self._closed:
            return
        if state == KazooState.CONNECTED:
            self._came_back()
        elif state == KazooState.SUSPENDED:
            self._connected.clear()
            self._tell(SessionState.SUSPENDED)
        else:
            self._connected.clear()
            self._tell(SessionState.LOST)
            self._fail_calls()

    def _came_back(self) -> None:
        client_id = self._client.client_id
        if client_id is None:  # broken again already: the next edge says so
            return
        self._session_id = client_id[0]
        self._connections += 1
        self._connected.set()
        self._tell(SessionState.CONNECTED)
        for call in list(self._calls.values()):
            if call.connection == 0:
                self._send(call)
        if self._connections > 1:
            for handlers in (self._node_handlers, self._child_handlers):
                for path in sorted(handlers):
                    handlers[path](WatchType.MAYBE, path)

    def _tell(self, state: SessionState) -> None:
        for listener in list(self._listeners):
            listener(state)

    def _fail_calls(self) -> None:
        for call in self._calls.values():
            if not call.future.done():
                call.future.set_exception(SessionExpired(f"session 0x{self._session_id:x} is over"))

    def _node_fired(self, event: WatchedEvent) -> None:
        self._post(self._deliver, self._node_handlers, event)

    def _children_fired(self, event: WatchedEvent) -> None:
        self._post(self._deliver, self._child_handlers, event)

    def _deliver(self, handlers: dict[str, Watch], event: WatchedEvent) -> None:
        kind = _WATCH_TYPES.get(event.type)
        if kind is not None and not self.expired and event.path in handlers:
            handlers[event.path](kind, event.path)

    def _post(self, action: Callable[..., None], *args: Any) -> None:
        """Run `action` on the broker's loop; nothing happens when that loop is gone."""
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(action, *args)

    def _stop_client(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except KazooException as error:
            log.warning("session.close failed id=0x%x error=%r", self._session_id, error)


def _stat(stat: ZnodeStat) -> Stat:
    return Stat(czxid=stat.czxid, mzxid=stat.mzxid, version=stat.version, ephemeral_owner=stat.ephemeralOwner)


def _op_result(result: Any) -> OpResult:
    if isinstance(result, ZnodeStat):
        return _stat(result)
    if isinstance(result, KazooException):
        return _error(result)
    return bool(result) if isinstance(result, bool) else str(result)


def _error(error: BaseException) -> ZooKeeperError:
    for kind, ours in _ERRORS.items():
        if isinstance(error, kind):
            return ours(str(error) or kind.__name__)
    return ZooKeeperError(repr(error))

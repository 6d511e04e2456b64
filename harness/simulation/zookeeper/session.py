"""One session as the broker has it: the stand-in for kazoo and the adapter over it, with the same behaviour.

Calls wait through a lost connection and are sent again, in order, once it is back; a write sent twice may meet its own
first try. Watches die with the connection, and every handler gets `MAYBE` after the next one. Whether the session is
over only a server can say.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

from harness.broker.zookeeper.client import (
    ANY_VERSION,
    ConnectionLoss,
    Create,
    Delete,
    Handlers,
    Op,
    OpResult,
    SessionExpired,
    SessionState,
    Set,
    Stat,
    Watch,
    WatchType,
)
from harness.cluster.links.links import Pipe
from harness.simulation.zookeeper.ensemble import Answer, Attached, Closed, Connection, Ensemble, Event, Request, Server

Paths = set[str]

RETRY_S = 0.05
"""Pause between two tries to connect, and …"""
TRY_S = 1.0
"""… how long a try waits for its answer."""
CLOSE_S = 1.0
PING_SHARE, SILENCE_SHARE = 1 / 3, 2 / 3
"""Of the session time-out: how often a client speaks, and after which silence it gives its connection up."""


@dataclass(slots=True, eq=False)
class _Wire:
    """One connection as both ends have it."""

    ensemble: Ensemble
    server: Server
    client: "SimulatedZooKeeper"
    up: Pipe = field(init=False)
    down: Pipe = field(init=False)
    connection: Connection | None = None

    def __post_init__(self) -> None:
        links, host, server = self.ensemble.links, self.client.host, self.server.host
        self.up = Pipe(links, host, server, self._at_server, self.ensemble.context)
        self.down = Pipe(links, server, host, self._at_client, self.client.context)

    def _at_server(self, request: Request | None) -> None:
        if request is None:
            self.connection = self.ensemble.attach(
                self.server, self.client.session_id, self.client.session_timeout_s, self.down
            )
        elif self.connection is not None:
            self.ensemble.receive(self.connection, request)

    def _at_client(self, item: Any) -> None:
        self.client.arrived(self, item)


@dataclass(slots=True, eq=False)
class _Call:
    request: Request
    future: asyncio.Future[Any]


class SimulatedZooKeeper(Handlers):
    """Implements `ZooKeeper`."""

    def __init__(
        self,
        ensemble: Ensemble,
        *,
        host: str = "client",
        session_timeout_s: float = math.inf,
        connection_timeout_s: float = 10.0,
    ) -> None:
        """`host` is where the client runs, for the links; a session without a time-out lives until it is ended."""
        super().__init__()
        self.host = host
        self.session_timeout_s = session_timeout_s
        self.context: Context = copy_context()
        self._connection_timeout_s = connection_timeout_s
        self._ensemble = ensemble
        self._session_id = 0
        self._expired = False
        self._closed = False
        self._held_off = False
        self._wire: _Wire | None = None
        self._connected = asyncio.Event()
        self._ended = asyncio.Event()
        self._tries = 0
        self._connections = 0
        self._heard_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._calls: dict[int, _Call] = {}
        self._next_call = 0
        self._armed_nodes: Paths = set()
        self._armed_children: Paths = set()

    # --- the protocol ---

    @property
    def session_id(self) -> int:
        """The session's id; 0 before the first connect."""
        return self._session_id

    @property
    def expired(self) -> bool:
        """Whether the session is known to be over."""
        return self._expired

    @property
    def connection(self) -> str:
        """A name for the connection that it has now, another one each time; empty when it has none."""
        return f"0x{self._session_id:x}/{self._connections}" if self._connected.is_set() else ""

    @property
    def watched(self) -> set[str]:
        """Paths with a handler."""
        return self._node_handlers.keys() | self._child_handlers.keys()

    async def connect(self) -> None:
        """Open the session; raises ConnectionLoss when no server answers in time."""
        self.context = copy_context()
        if self._ensemble.reachable:
            self._try_to_connect()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._connection_timeout_s):
                    await self._connected.wait()
                    return
        else:
            await asyncio.sleep(0)
        await self.close()
        raise ConnectionLoss(f"no server: no session within {self._connection_timeout_s:g} s")

    async def close(self) -> None:
        """End the session; its ephemerals vanish at once. Idempotent."""
        if self._closed:
            return
        self._closed = True
        connected = self._connected.is_set()
        self._end_session()
        if self._wire is not None and connected:
            self._wire.up.put(Request(-1, "close"))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self._ended.wait()
        self._hang_up()

    async def get(self, path: str) -> tuple[bytes, Stat]:
        """Return a znode's data; arms its node handler. Raises NoNode."""
        data_and_stat: tuple[bytes, Stat] = await self._call("get", path, watch=path in self._node_handlers)
        return data_and_stat

    async def exists(self, path: str) -> Stat | None:
        """Return a znode's stat or None; arms its node handler either way."""
        stat: Stat | None = await self._call("exists", path, watch=path in self._node_handlers)
        return stat

    async def children(self, path: str) -> list[str]:
        """Return the names of a znode's children, sorted; arms its child handler. Raises NoNode."""
        names: list[str] = await self._call("children", path, watch=path in self._child_handlers)
        return names

    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequential: bool = False
    ) -> tuple[str, Stat]:
        """Create a znode and return its path and stat. Raises NodeExists, NoNode (no parent)."""
        op = Create(path=path, data=data, ephemeral=ephemeral, sequential=sequential)
        created: tuple[str, Stat] = await self._call("write", ops=(op,))
        return created

    async def set(self, path: str, data: bytes, version: int) -> Stat:
        """Replace a znode's data. Raises NoNode, BadVersion."""
        stat: Stat = await self._call("write", ops=(Set(path=path, data=data, version=version),))
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a znode. Raises NoNode, BadVersion, NotEmpty."""
        await self._call("write", ops=(Delete(path=path, version=version),))

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        """Carry out all or none; never raises for an op's own error, which stands in the result."""
        results: list[OpResult] = await self._call("multi", ops=tuple(ops))
        return results

    # --- what befalls a session ---

    def disconnect(self) -> None:
        """Lose the connection, and do not connect again before `reconnect`."""
        self._held_off = True
        self._ensemble.drop_connection(self._session_id)
        self._suspend()

    def reconnect(self) -> None:
        """Connect again."""
        self._held_off = False
        self._try_to_connect()

    def expire(self) -> None:
        """End the session at the servers, and let this client know at once."""
        self._ensemble.end(self._session_id)
        self._lose()

    # --- calls ---

    async def _call(self, kind: str, path: str = "", *, watch: bool = False, ops: tuple[Op, ...] = ()) -> Any:
        """Return the answer to a request, sent again after every lost connection until there is one."""
        if self._expired:
            raise SessionExpired(f"session 0x{self._session_id:x} is over")
        number, self._next_call = self._next_call, self._next_call + 1
        request = Request(number, kind, path, watch, ops)
        call = _Call(request, asyncio.get_running_loop().create_future())
        self._calls[number] = call
        if self._wire is not None and self._connected.is_set():
            self._wire.up.put(request)
        try:
            return await call.future
        finally:
            self._calls.pop(number, None)

    def arrived(self, wire: _Wire, item: Any) -> None:
        """Take what a server says; what comes over an earlier connection is ignored."""
        if wire is not self._wire:
            return
        self._heard_s = _now_s()
        match item:
            case Answer():
                self._answered(item)
            case Event():
                self._fired(item)
            case Attached(session_id=0):
                self._lose()
            case Attached():
                self._attached(item.session_id)
            case Closed():
                if self._closed:
                    self._ended.set()
                else:
                    self._suspend()

    def _answered(self, answer: Answer) -> None:
        call = self._calls.pop(answer.number, None)
        if call is None or call.future.done():
            return
        if answer.error is not None:
            call.future.set_exception(answer.error)
            return
        if call.request.watch:
            armed = self._armed_children if call.request.kind == "children" else self._armed_nodes
            armed.add(call.request.path)
        call.future.set_result(answer.result)

    def _fired(self, event: Event) -> None:
        if event.kind is not WatchType.CHILDREN:
            self._deliver(self._armed_nodes, self._node_handlers, event)
        if event.kind in (WatchType.CHILDREN, WatchType.DELETED):
            self._deliver(self._armed_children, self._child_handlers, event)

    def _deliver(self, armed: Paths, handlers: dict[str, Watch], event: Event) -> None:
        if event.path in armed:
            armed.remove(event.path)
            if event.path in handlers and not self._expired:
                handlers[event.path](event.kind, event.path)

    # --- connections ---

    def _try_to_connect(self) -> None:
        if self._expired or self._held_off:
            return
        self._hang_up()
        if self._ensemble.reachable:
            server = self._ensemble.server_for(self._tries)
            self._tries += 1
            self._wire = _Wire(self._ensemble, server, self)
            self._wire.up.put(None)
        self._set_timer(TRY_S if self._wire is not None else RETRY_S, self._try_to_connect)

    def _attached(self, session_id: int) -> None:
        self._session_id = session_id
        self._connections += 1
        self._connected.set()
        self._keep_alive()
        self._tell(SessionState.CONNECTED)
        assert self._wire is not None
        for call in list(self._calls.values()):
            self._wire.up.put(call.request)
        if self._connections > 1:
            for handlers in (self._node_handlers, self._child_handlers):
                for path in sorted(handlers):
                    handlers[path](WatchType.MAYBE, path)

    def _keep_alive(self) -> None:
        """Speak now and then; give the connection up after too long a silence."""
        if self._wire is None or math.isinf(self.session_timeout_s):
            self._set_timer(math.inf, self._keep_alive)
        elif _now_s() - self._heard_s > self.session_timeout_s * SILENCE_SHARE:
            self._suspend()
        else:
            self._wire.up.put(Request(-1, "ping"))
            self._set_timer(self.session_timeout_s * PING_SHARE, self._keep_alive)

    def _suspend(self) -> None:
        """The connection is lost."""
        self._hang_up()
        if self._connected.is_set():
            self._connected.clear()
            self._tell(SessionState.SUSPENDED)
        self._set_timer(RETRY_S, self._try_to_connect)

    def _lose(self) -> None:
        """The session is over."""
        if not self._expired:
            self._end_session()
            self._hang_up()
            self._tell(SessionState.LOST)

    def _end_session(self) -> None:
        self._expired = True
        self._connected.clear()
        self._set_timer(math.inf, self._try_to_connect)
        for call in self._calls.values():
            if not call.future.done():
                call.future.set_exception(SessionExpired(f"session 0x{self._session_id:x} is over"))

    def _hang_up(self) -> None:
        self._armed_nodes.clear()
        self._armed_children.clear()
        if self._wire is not None:
            self._wire.down.break_off()
            self._wire = None

    def _set_timer(self, delay_s: float, action: Callable[[], None]) -> None:
        """Have the one timer do something; an endless delay means never."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not math.isinf(delay_s):
            self._timer = asyncio.get_running_loop().call_later(delay_s, action, context=self.context)

    def _tell(self, state: SessionState) -> None:
        for listener in list(self._listeners):
            listener(state)


def _now_s() -> float:
    return asyncio.get_running_loop().time()

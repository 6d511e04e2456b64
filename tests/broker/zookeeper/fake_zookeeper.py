"""ZooKeeper in memory: one tree, many sessions, with versions, ephemerals, one-shot watches and multi."""

import asyncio
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from harness.broker.zookeeper.client import (
    ANY_VERSION,
    BadVersion,
    Check,
    ConnectionLoss,
    Create,
    Delete,
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

Paths = set[str]


@dataclass
class Znode:
    data: bytes
    czxid: int
    mzxid: int
    owner: int = 0
    version: int = 0
    sequence: int = 0

    @property
    def stat(self) -> Stat:
        return Stat(czxid=self.czxid, mzxid=self.mzxid, version=self.version, ephemeral_owner=self.owner)


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


@dataclass
class FakeServer:
    """The tree, and who watches it."""

    nodes: dict[str, Znode] = field(default_factory=lambda: {"/": Znode(b"", 0, 0)})
    zxid: int = 0
    reachable: bool = True
    clients: list["FakeZooKeeper"] = field(default_factory=list)
    writes: list[tuple[int, str, str]] = field(default_factory=list)
    """Session, operation and path of every write that was carried out."""
    before_write: Callable[[Op], None] | None = None
    """Called before a write that is not part of a multi, and before each op of one; for what others do meanwhile."""
    lose_answer_to: str | None = None
    """The next write to this path is carried out, its answer lost, and the write sent again."""

    def client(self) -> "FakeZooKeeper":
        return FakeZooKeeper(self)

    def put(self, path: str, data: bytes = b"") -> None:
        """Write a znode with its parents, as some other client would."""
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts)):
            parent = "/" + "/".join(parts[:depth])
            if parent not in self.nodes:
                self.apply(0, Create(path=parent, data=b""))
        exists = path in self.nodes
        self.apply(0, Set(path=path, data=data, version=ANY_VERSION) if exists else Create(path=path, data=data))

    def remove(self, path: str) -> None:
        self.apply(0, Delete(path=path))

    def data(self, path: str) -> bytes:
        return self.nodes[path].data

    def names(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return sorted(
            p[len(prefix) :] for p in self.nodes if p.startswith(prefix) and "/" not in p[len(prefix) :] and p != "/"
        )

    def end_session(self, session_id: int) -> None:
        for path in [path for path, node in self.nodes.items() if node.owner == session_id and session_id]:
            self.apply(session_id, Delete(path=path))

    def apply(self, session_id: int, op: Op) -> Any:
        """Carry out one op; return its result or raise its error."""
        self.zxid += 1
        events: list[tuple[WatchType, str]] = []
        result = self._apply(session_id, op, events)
        for kind, path in events:
            self._fire(kind, path)
        return result

    def apply_all(self, session_id: int, ops: Sequence[Op]) -> list[OpResult]:
        self.zxid += 1
        before = deepcopy(self.nodes)
        events: list[tuple[WatchType, str]] = []
        results: list[OpResult] = []
        for number, op in enumerate(ops):
            try:
                results.append(self._apply(session_id, op, events))
            except ZooKeeperError as error:
                self.nodes = before
                return [*(RolledBack() for _ in results), error, *(RolledBack() for _ in ops[number + 1 :])]
        for kind, path in events:
            self._fire(kind, path)
        return results

    def _apply(self, session_id: int, op: Op, events: list[tuple[WatchType, str]]) -> Any:
        if isinstance(op, Create):
            return self._create(session_id, op, events)
        if op.path not in self.nodes:
            raise NoNode(op.path)
        node = self.nodes[op.path]
        if op.version not in (ANY_VERSION, node.version):
            raise BadVersion(op.path)
        if isinstance(op, Check):
            return True
        self.writes.append((session_id, type(op).__name__.lower(), op.path))
        if isinstance(op, Set):
            node.data, node.version, node.mzxid = op.data, node.version + 1, self.zxid
            events.append((WatchType.DATA, op.path))
            return node.stat
        if self.names(op.path):
            raise NotEmpty(op.path)
        del self.nodes[op.path]
        events += [(WatchType.DELETED, op.path), (WatchType.CHILDREN, parent_of(op.path))]
        return True

    def _create(self, session_id: int, op: Create, events: list[tuple[WatchType, str]]) -> str:
        parent = self.nodes.get(parent_of(op.path))
        if parent is None:
            raise NoNode(op.path)
        path = f"{op.path}{parent.sequence:010d}" if op.sequential else op.path
        if path in self.nodes:
            raise NodeExists(path)
        parent.sequence += 1
        self.nodes[path] = Znode(op.data, self.zxid, self.zxid, owner=session_id if op.ephemeral else 0)
        self.writes.append((session_id, "create", path))
        events += [(WatchType.CREATED, path), (WatchType.CHILDREN, parent_of(path))]
        return path

    def _fire(self, kind: WatchType, path: str) -> None:
        for client in list(self.clients):
            client.fire(kind, path)


class FakeZooKeeper:
    """One session; implements `ZooKeeper`."""

    _sessions = 0

    def __init__(self, server: FakeServer) -> None:
        self._server = server
        self._session_id = 0
        self._expired = False
        self._connected = asyncio.Event()
        self._over = asyncio.Event()
        self._listeners: list[Callable[[SessionState], None]] = []
        self._node_handlers: dict[str, Watch] = {}
        self._child_handlers: dict[str, Watch] = {}
        self._armed_nodes: set[str] = set()
        self._armed_children: set[str] = set()

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def expired(self) -> bool:
        return self._expired

    @property
    def watched(self) -> set[str]:
        """Paths with a handler."""
        return self._node_handlers.keys() | self._child_handlers.keys()

    async def connect(self) -> None:
        await asyncio.sleep(0)
        if not self._server.reachable:
            raise ConnectionLoss("no server")
        FakeZooKeeper._sessions += 1
        self._session_id = FakeZooKeeper._sessions
        self._server.clients.append(self)
        self._connected.set()
        self._tell(SessionState.CONNECTED)

    async def close(self) -> None:
        self._end()

    def on_state(self, listener: Callable[[SessionState], None]) -> None:
        self._listeners.append(listener)

    def watch_node(self, path: str, handler: Watch) -> None:
        self._node_handlers[path] = handler

    def unwatch_node(self, path: str) -> None:
        self._node_handlers.pop(path, None)

    def watch_children(self, path: str, handler: Watch) -> None:
        self._child_handlers[path] = handler

    def unwatch_children(self, path: str) -> None:
        self._child_handlers.pop(path, None)

    async def get(self, path: str) -> tuple[bytes, Stat]:
        await self._ready()
        node = self._server.nodes.get(path)
        if node is None:
            raise NoNode(path)
        self._arm(self._armed_nodes, self._node_handlers, path)
        return node.data, node.stat

    async def exists(self, path: str) -> Stat | None:
        await self._ready()
        self._arm(self._armed_nodes, self._node_handlers, path)
        node = self._server.nodes.get(path)
        return None if node is None else node.stat

    async def children(self, path: str) -> list[str]:
        await self._ready()
        if path not in self._server.nodes:
            raise NoNode(path)
        self._arm(self._armed_children, self._child_handlers, path)
        return self._server.names(path)

    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequential: bool = False
    ) -> tuple[str, Stat]:
        created = await self._write(Create(path=path, data=data, ephemeral=ephemeral, sequential=sequential))
        return created, self._server.nodes[created].stat

    async def set(self, path: str, data: bytes, version: int) -> Stat:
        stat: Stat = await self._write(Set(path=path, data=data, version=version))
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._write(Delete(path=path, version=version))

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        await self._ready()
        for op in ops:
            self._meanwhile(op)
        results = self._server.apply_all(self._session_id, ops)
        if any(self._loses_answer(op) for op in ops):
            results = self._server.apply_all(self._session_id, ops)
        return results

    def disconnect(self) -> None:
        """Lose the connection: watches die with it."""
        self._connected.clear()
        self._armed_nodes.clear()
        self._armed_children.clear()
        self._tell(SessionState.SUSPENDED)

    def reconnect(self) -> None:
        self._connected.set()
        self._tell(SessionState.CONNECTED)
        for handlers in (self._node_handlers, self._child_handlers):
            for path in sorted(handlers):
                handlers[path](WatchType.MAYBE, path)

    def expire(self) -> None:
        """End the session as the server would: its ephemerals vanish, then this client learns of it."""
        self._end()
        self._tell(SessionState.LOST)

    def fire(self, kind: WatchType, path: str) -> None:
        if kind is not WatchType.CHILDREN:
            self._deliver(self._armed_nodes, self._node_handlers, kind, path)
        if kind in (WatchType.CHILDREN, WatchType.DELETED):
            self._deliver(self._armed_children, self._child_handlers, kind, path)

    def _deliver(self, armed: Paths, handlers: dict[str, Watch], kind: WatchType, path: str) -> None:
        if path not in armed:
            return
        armed.remove(path)

        def deliver() -> None:
            if path in handlers and not self._expired:
                handlers[path](kind, path)

        asyncio.get_running_loop().call_soon(deliver)

    def _arm(self, armed: Paths, handlers: dict[str, Watch], path: str) -> None:
        if path in handlers:
            armed.add(path)

    async def _write(self, op: Op) -> Any:
        await self._ready()
        self._meanwhile(op)
        result = self._server.apply(self._session_id, op)
        if self._loses_answer(op):
            result = self._server.apply(self._session_id, op)
        return result

    def _meanwhile(self, op: Op) -> None:
        hook, self._server.before_write = self._server.before_write, None
        if hook is not None:
            hook(op)
            self._server.before_write = self._server.before_write or hook

    def _loses_answer(self, op: Op) -> bool:
        if self._server.lose_answer_to != op.path:
            return False
        self._server.lose_answer_to = None
        return True

    async def _ready(self) -> None:
        """Return when connected, at the earliest a moment later, as any real answer."""
        await asyncio.sleep(0)
        while not self._expired and not self._connected.is_set():
            waits = [asyncio.ensure_future(self._connected.wait()), asyncio.ensure_future(self._over.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        if self._expired:
            raise SessionExpired(f"session {self._session_id} is over")

    def _end(self) -> None:
        if not self._expired:
            self._expired = True
            self._over.set()
            if self in self._server.clients:
                self._server.clients.remove(self)
            self._server.end_session(self._session_id)

    def _tell(self, state: SessionState) -> None:
        for listener in list(self._listeners):
            listener(state)

"""The servers: one order of writes, reads that may lag behind on another server, one-shot watches, sessions that end.

The guarantees are ZooKeeper's, and no more: writes of all clients are in one order; a client sees its own writes and
never goes back in time, not even on another server; what one client wrote, another one may not read at once unless both
are at one server; a watch fires before the change that it announces can be read; requests of one session are answered
in order.
"""

import asyncio
import contextlib
import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.broker.zookeeper.client import (
    ANY_VERSION,
    Create,
    Delete,
    Op,
    OpResult,
    SessionExpired,
    Set,
    WatchType,
    ZooKeeperError,
)
from harness.cluster.links.links import Links, Pipe
from harness.cluster.links.lost_replies import LostReplies
from harness.simulation.zookeeper.tree import Change, Tree, Znode, parent_of

FIRST_SESSION = 0x1000_0000_0000
ELECTION_S = 0.2
"""ZooKeeper's `FastLeaderElection.finalizeWait`: for a better vote that may still come."""


class Request(NamedTuple):
    """What a client asks; `number` comes back with the answer."""

    number: int
    kind: str
    """get, exists, children, write, multi, ping or close."""
    path: str = ""
    watch: bool = False
    ops: tuple[Op, ...] = ()


class Answer(NamedTuple):
    """What a request came to: a result or an error."""

    number: int
    result: Any
    error: ZooKeeperError | None = None


class Event(NamedTuple):
    """A watch that fired."""

    kind: WatchType
    path: str


class Attached(NamedTuple):
    """The server's answer to a connect: the session, 0 when it is over."""

    session_id: int


class Closed(NamedTuple):
    """The connection is gone."""


@dataclass(slots=True, eq=False)
class Connection:
    """One connection of one session to one server, as the server has it."""

    server: "Server"
    session_id: int
    down: Pipe


@dataclass(slots=True, eq=False)
class _Session:
    timeout_s: float
    heard_s: float
    connection: Connection | None = None


Watchers = dict[str, dict[Connection, None]]


@dataclass(slots=True, eq=False)
class Server:
    """One server: its view of the tree, and the watches on it."""

    host: str
    tree: Tree
    lag: "deque[tuple[Change, ...]] | None"
    """What is decided and not yet carried out here; None for the server whose tree is the decided one."""
    runs: bool = True
    node_watches: Watchers = field(default_factory=dict)
    child_watches: Watchers = field(default_factory=dict)

    def catch_up(self) -> None:
        """Carry out all that is decided."""
        while self.lag:
            self.carry_out_next()

    def carry_out_next(self) -> None:
        """Carry out the oldest decided transaction, unless that is done, and fire its watches."""
        if self.lag:
            changes = self.lag.popleft()
            for change in changes:
                self.tree.replay(change)
            self.tell(changes)

    def tell(self, changes: Sequence[Change]) -> None:
        """Fire the watches of a transaction."""
        for change in changes:
            parent = parent_of(change.path)
            if change.type == "set":
                self._fire(WatchType.DATA, change.path, self.node_watches)
            elif change.type == "create":
                self._fire(WatchType.CREATED, change.path, self.node_watches)
                self._fire(WatchType.CHILDREN, parent, self.child_watches)
            else:
                self._fire(WatchType.DELETED, change.path, self.node_watches, self.child_watches)
                self._fire(WatchType.CHILDREN, parent, self.child_watches)

    def forget(self, connection: Connection) -> None:
        """Drop all watches of a connection."""
        for watches in (self.node_watches, self.child_watches):
            for path in [path for path, watchers in watches.items() if connection in watchers]:
                watches[path].pop(connection)

    def _fire(self, kind: WatchType, path: str, *tables: Watchers) -> None:
        watching: dict[Connection, None] = {}
        for table in tables:
            watching |= table.pop(path, {})
        for connection in watching:
            connection.down.put(Event(kind, path))


class Ensemble:
    """All servers together; the first one's tree is what is decided."""

    def __init__(self, *, links: Links | None = None, servers: int = 1, rng: random.Random | None = None) -> None:
        """Without `links` nothing takes time; `rng` draws how far servers lag, and to which one a client goes."""
        self.links = links or Links()
        self.context: Context = copy_context()
        self.tree = Tree()
        self.zxid = 0
        self.history: list[tuple[float, Change]] = []
        """Every change with its virtual time, in order."""
        self.reachable = True
        """Whether clients can connect."""
        self.before_write: Callable[[Op], None] | None = None
        """Called before each write and each op of a multi, so that other parties can act in between."""
        self.lose_answer_to: str | None = None
        """The next write to this path is carried out, its answer is lost, and the client sends it again."""
        self.replies = LostReplies()
        self._rng = rng
        self._sessions: dict[int, _Session] = {}
        self._opened = 0
        trees = [self.tree, *(Tree() for _ in range(servers - 1))]
        self.servers = [
            Server(host=f"zookeeper-{number}", tree=tree, lag=None if tree is self.tree else deque())
            for number, tree in enumerate(trees, start=1)
        ]
        self.apart: dict[str, frozenset[str]] = {}
        """Hosts of servers that do not reach the others, by the name of what cuts them off."""
        self.leader: Server | None = self.servers[0]
        """None without a quorum and during an election; no client is served then."""

    # --- the tree, as an outsider at the first server has it ---

    @property
    def nodes(self) -> dict[str, Znode]:
        """All znodes, by path."""
        return self.tree.nodes

    @property
    def writes(self) -> list[tuple[int, str, str]]:
        """Session, operation and path of every write that was carried out."""
        return [(change.session_id, change.type, change.path) for _, change in self.history]

    @property
    def sessions(self) -> list[int]:
        """The sessions that live, in the order they were opened."""
        return list(self._sessions)

    def data(self, path: str) -> bytes:
        """Return a znode's data."""
        return self.tree.nodes[path].data

    def names(self, path: str) -> list[str]:
        """Return the names of a znode's children, sorted."""
        return self.tree.names(path)

    def put(self, path: str, data: bytes = b"") -> None:
        """Write a znode with its parents, as a tool without a session would."""
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts)):
            above = "/" + "/".join(parts[:depth])
            if above not in self.nodes:
                self.write(0, Create(path=above, data=b""))
        exists = path in self.nodes
        self.write(0, Set(path=path, data=data, version=ANY_VERSION) if exists else Create(path=path, data=data))

    def remove(self, path: str) -> None:
        """Delete a znode, as a tool without a session would."""
        self.write(0, Delete(path=path))

    # --- writing ---

    def write(self, session_id: int, op: Op) -> Any:
        """Carry out one op and return its result; raises its error."""
        self.zxid += 1
        result, change = self.tree.carry_out(session_id, op, self.zxid)
        self._decided([change] if change is not None else [])
        return result

    def write_all(self, session_id: int, ops: Sequence[Op]) -> list[OpResult]:
        """Carry out all ops or none, and return what each came to."""
        self.zxid += 1
        results, changes = self.tree.carry_out_all(session_id, ops, self.zxid)
        self._decided(changes)
        return results

    def _decided(self, changes: Sequence[Change]) -> None:
        """Let every server carry a transaction out, sooner or later."""
        if not changes:
            return
        now_s = _now_s()
        self.history.extend((now_s, change) for change in changes)
        for server in self.servers:
            if server.lag is None:
                server.tell(changes)
            else:
                server.lag.append(tuple(changes))
                self._soon(self._lag_s(server), server.carry_out_next)

    def _lag_s(self, server: Server) -> float:
        return self.links.delay_s((self.servers[0].host, server.host))

    def _soon(self, delay_s: float, action: Callable[..., None], *args: Any) -> None:
        asyncio.get_running_loop().call_later(delay_s, action, *args, context=self.context)

    # --- servers ---

    def stop(self, server: Server) -> None:
        """End a server at once and keep its data; without a quorum or a leader the others serve no client either."""
        server.runs = False
        if server is self.leader or not self._has_quorum:
            self._elect()
        else:
            self._disconnect(server)

    def start(self, server: Server) -> None:
        """Start a stopped server with its data and with what the others know."""
        server.runs = True
        server.catch_up()
        if self.leader is None:
            self._elect()

    def separate(self, holder: str, servers: Sequence[Server]) -> None:
        """Cut servers off from the others; a side without a majority serves no client from now on."""
        self.apart[holder] = frozenset(server.host for server in servers)
        if self.leader is None or not self.takes_part(self.leader):
            self._elect()
        for server in self.servers:
            if not self.takes_part(server):
                self._disconnect(server)

    def reunite(self, holder: str) -> None:
        """Let them reach each other again; nothing happens when they do."""
        if self.apart.pop(holder, None) is None:
            return
        for server in self.servers:
            server.catch_up()
        if self.leader is None:
            self._elect()

    def takes_part(self, server: Server) -> bool:
        """Return whether a server runs and reaches, with itself, a majority of all."""
        reached = [other for other in self.servers if other.runs and self._reach(server, other)]
        return server.runs and len(reached) > len(self.servers) // 2

    def _reach(self, one: Server, other: Server) -> bool:
        return all((one.host in hosts) == (other.host in hosts) for hosts in self.apart.values())

    @property
    def _has_quorum(self) -> bool:
        return any(map(self.takes_part, self.servers))

    def _elect(self) -> None:
        self.leader = None
        for server in self.servers:
            self._disconnect(server)
        self._soon(ELECTION_S, self._lead)

    def _lead(self) -> None:
        """Let a server lead that knows all that is decided; every session has its whole time-out from then on."""
        if self.leader is not None or not self._has_quorum:
            return
        running = [server for server in self.servers if self.takes_part(server)]
        for server in running:
            server.catch_up()
        self.leader = running[-1]  # of equal logs, the one with the highest number wins
        for session in self._sessions.values():
            session.heard_s = _now_s()

    def _disconnect(self, server: Server) -> None:
        for session_id, session in self._sessions.items():
            if session.connection is not None and session.connection.server is server:
                self.drop_connection(session_id)

    # --- sessions ---

    def server_for(self, number: int) -> Server:
        """Return the server that a client's try to connect goes to: another one each time, the first from the seed."""
        first = self._rng.randrange(len(self.servers)) if self._rng is not None else 0
        return self.servers[(first + number) % len(self.servers)]

    def attach(self, server: Server, session_id: int, timeout_s: float, down: Pipe) -> Connection | None:
        """Open a session (`session_id` 0) or go on with one over a new connection; None when that one is over."""
        if self.leader is None or not self.takes_part(server):
            down.put(Closed())
            return None
        now_s = _now_s()
        if session_id == 0:
            self._opened += 1
            session_id = FIRST_SESSION + self._opened
            self._sessions[session_id] = _Session(timeout_s=timeout_s, heard_s=now_s)
            if not math.isinf(timeout_s):
                self._soon(timeout_s, self._look, session_id)
        session = self._sessions.get(session_id)
        if session is None:
            down.put(Attached(0))
            return None
        server.catch_up()  # a client never goes back in time: a server that is behind would turn it away
        if session.connection is not None:
            self._drop(session.connection)
        session.heard_s = now_s
        session.connection = Connection(server=server, session_id=session_id, down=down)
        down.put(Attached(session_id))
        return session.connection

    def end(self, session_id: int) -> None:
        """End a session: its ephemeral znodes go in one transaction, its connection is closed."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return
        if session.connection is not None:
            self._drop(session.connection)
        self.zxid += 1
        changes = []
        for path in self.tree.owned_by(session_id):
            _, change = self.tree.carry_out(session_id, Delete(path=path), self.zxid)
            assert change is not None
            changes.append(change)
        self._decided(changes)

    def drop_connection(self, session_id: int) -> None:
        """Lose a session's connection; answers on their way are lost, the session lives on."""
        session = self._sessions.get(session_id)
        if session is not None and session.connection is not None:
            session.connection.down = session.connection.down.reset()
            self._drop(session.connection)
            session.connection = None

    def _drop(self, connection: Connection) -> None:
        connection.server.forget(connection)
        connection.down.put(Closed())

    def _look(self, session_id: int) -> None:
        """End a session that was not heard of for too long."""
        session = self._sessions.get(session_id)
        if session is None:
            return
        left_s = session.heard_s + session.timeout_s - _now_s()
        if left_s > 0 or self.leader is None:
            self._soon(left_s if left_s > 0 else session.timeout_s, self._look, session_id)
        else:
            self.end(session_id)

    # --- requests ---

    def receive(self, connection: Connection, request: Request) -> None:
        """Carry out a request that came in, and answer it."""
        session = self._sessions.get(connection.session_id)
        if session is None or session.connection is not connection:
            return  # the session is over or goes on elsewhere: what is left on this connection is lost
        session.heard_s = _now_s()
        writes = ((type(op).__name__.lower(), op.path) for op in request.ops)
        carried_out = self.replies.take(connection.down.link[1], writes) if request.ops else None
        if carried_out is not None:
            if carried_out:
                with contextlib.suppress(ZooKeeperError):  # it was refused, and the answer has no reader
                    self._written(connection, request)
            self.drop_connection(connection.session_id)
            return
        try:
            connection.down.put(Answer(request.number, self._answer(connection, request)))
        except ZooKeeperError as error:
            connection.down.put(Answer(request.number, None, error))

    def _answer(self, connection: Connection, request: Request) -> Any:
        server, path = connection.server, request.path
        match request.kind:
            case "get":
                node = server.tree.node(path)
                _watch(server.node_watches, connection, request)
                return node.data, node.stat
            case "exists":
                _watch(server.node_watches, connection, request)
                znode = server.tree.nodes.get(path)
                return None if znode is None else znode.stat
            case "children":
                server.tree.node(path)
                _watch(server.child_watches, connection, request)
                return server.tree.names(path)
            case "write" | "multi":
                return self._written(connection, request)
            case "close":
                self.end(connection.session_id)
                raise SessionExpired("closed")
        return None

    def _written(self, connection: Connection, request: Request) -> Any:
        for op in request.ops:
            self._call_before_write(op)
        server = connection.server
        server.catch_up()  # its own writes are there when a client has their answer
        result = self._write_once(connection.session_id, request)
        if self.lose_answer_to is not None and any(op.path == self.lose_answer_to for op in request.ops):
            self.lose_answer_to = None
            result = self._write_once(connection.session_id, request)
        server.catch_up()
        return result

    def _write_once(self, session_id: int, request: Request) -> Any:
        if request.kind == "multi":
            return self.write_all(session_id, request.ops)
        (op,) = request.ops
        result = self.write(session_id, op)
        return (result, self.nodes[result].stat) if isinstance(op, Create) else result

    def _call_before_write(self, op: Op) -> None:
        hook, self.before_write = self.before_write, None
        if hook is not None:
            hook(op)
            self.before_write = self.before_write or hook


def _watch(table: Watchers, connection: Connection, request: Request) -> None:
    if request.watch:
        table.setdefault(request.path, {})[connection] = None


def _now_s() -> float:
    """Return the loop's time; 0 for what is there before any loop runs."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return 0.0

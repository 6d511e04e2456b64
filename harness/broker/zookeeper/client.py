"""What the broker needs of ZooKeeper, as one asyncio protocol: kazoo fulfils it, and so does the simulation.

One `ZooKeeper` object is one session. It never opens a second one by itself: after expiry every call raises
`SessionExpired`, and the broker makes a fresh object.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol

from harness.values import value_class

ANY_VERSION = -1


class ZooKeeperError(Exception):
    """Base of all errors of this protocol."""


class NoNode(ZooKeeperError):
    """The znode does not exist."""


class NodeExists(ZooKeeperError):
    """The znode exists already."""


class BadVersion(ZooKeeperError):
    """The znode's version is not the expected one."""


class NotEmpty(ZooKeeperError):
    """A znode with children cannot be deleted."""


class ConnectionLoss(ZooKeeperError):
    """The connection broke: a write may or may not have happened."""


class SessionExpired(ZooKeeperError):
    """The session is over; nothing of it can be used again."""


class RolledBack(ZooKeeperError):
    """This operation of a multi was fine, another one failed."""


@value_class(frozen=True, slots=True, kw_only=True)
class Stat:
    """What ZooKeeper knows about a znode."""

    czxid: int
    mzxid: int
    version: int
    ephemeral_owner: int
    """Session id, 0 for a persistent znode."""


@value_class(frozen=True, slots=True, kw_only=True)
class Check:
    """Part of a multi: the znode has this version."""

    path: str
    version: int


@value_class(frozen=True, slots=True, kw_only=True)
class Create:
    """Part of a multi: create a znode."""

    path: str
    data: bytes
    ephemeral: bool = False
    sequential: bool = False


@value_class(frozen=True, slots=True, kw_only=True)
class Set:
    """Part of a multi: replace the data of a znode that has this version."""

    path: str
    data: bytes
    version: int


@value_class(frozen=True, slots=True, kw_only=True)
class Delete:
    """Part of a multi: delete a znode that has this version."""

    path: str
    version: int = ANY_VERSION


Op = Check | Create | Set | Delete
OpResult = bool | str | Stat | ZooKeeperError
"""Of a check or delete True, of a create the path, of a set the Stat, or that op's own error."""


class WatchType(StrEnum):
    """What a one-shot watch reports."""

    CREATED = "created"
    DELETED = "deleted"
    DATA = "data"
    CHILDREN = "children"
    MAYBE = "maybe"
    """The connection was lost and is back: anything may have happened at this path."""


class SessionState(StrEnum):
    """Edges of a session's life."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """Disconnected; the session may still live. Not a reason to resign from anything."""
    LOST = "lost"
    """Expired, for good."""


Watch = Callable[[WatchType, str], None]
"""Called on the broker's loop with what happened and the path; must not block, only enqueue."""


class Handlers:
    """What the broker has registered with a session: listeners of its state, and a handler a path."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[SessionState], None]] = []
        self._node_handlers: dict[str, Watch] = {}
        self._child_handlers: dict[str, Watch] = {}

    def on_state(self, listener: Callable[[SessionState], None]) -> None:
        """Call `listener` on the broker's loop at every edge until LOST; none after `close`."""
        self._listeners.append(listener)

    def watch_node(self, path: str, handler: Watch) -> None:
        """Register the handler of a path; one a path, a later one replaces it."""
        self._node_handlers[path] = handler

    def unwatch_node(self, path: str) -> None:
        """Forget the handler of a path."""
        self._node_handlers.pop(path, None)

    def watch_children(self, path: str, handler: Watch) -> None:
        """Register the handler of the children of a path."""
        self._child_handlers[path] = handler

    def unwatch_children(self, path: str) -> None:
        """Forget the handler of the children of a path."""
        self._child_handlers.pop(path, None)


class ZooKeeper(Protocol):
    """One session. Calls wait through a lost connection (and are retried where the reply said CONNECTIONLOSS)
    until the session is back or expired; calls are carried out in the order they were made.

    Watches follow Kafka's rule: a handler is a local registration for a path, armed by the next `exists`/`get`
    (node handlers) or `children` (child handlers) on that path, one-shot, and armed anew by the next read.
    """

    @property
    def session_id(self) -> int:
        """The session's id; 0 before the first connect."""
        ...

    @property
    def expired(self) -> bool:
        """Whether the session is known to be over."""
        ...

    async def connect(self) -> None:
        """Open the session; raises ConnectionLoss when no server answers in time."""
        ...

    async def close(self) -> None:
        """End the session; its ephemerals vanish at once. Idempotent."""
        ...

    def on_state(self, listener: Callable[[SessionState], None]) -> None:
        """Call `listener` on the broker's loop at every edge."""
        ...

    def watch_node(self, path: str, handler: Watch) -> None:
        """Register the handler of a path; one a path, a later one replaces it."""
        ...

    def unwatch_node(self, path: str) -> None:
        """Forget the handler of a path."""
        ...

    def watch_children(self, path: str, handler: Watch) -> None:
        """Register the handler of the children of a path."""
        ...

    def unwatch_children(self, path: str) -> None:
        """Forget the handler of the children of a path."""
        ...

    async def get(self, path: str) -> tuple[bytes, Stat]:
        """Return a znode's data; arms its node handler. Raises NoNode."""
        ...

    async def exists(self, path: str) -> Stat | None:
        """Return a znode's stat or None; arms its node handler either way."""
        ...

    async def children(self, path: str) -> list[str]:
        """Return the names of a znode's children, sorted; arms its child handler. Raises NoNode."""
        ...

    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequential: bool = False
    ) -> tuple[str, Stat]:
        """Create a znode and return its path and stat. Raises NodeExists, NoNode (no parent)."""
        ...

    async def set(self, path: str, data: bytes, version: int) -> Stat:
        """Replace a znode's data. Raises NoNode, BadVersion."""
        ...

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a znode. Raises NoNode, BadVersion, NotEmpty."""
        ...

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        """Carry out all or none; never raises for an op's own error, which stands in the result."""
        ...

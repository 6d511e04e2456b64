from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from harness.broker.zookeeper.client import (
    ANY_VERSION,
    BadVersion,
    NodeExists,
    NoNode,
    Op,
    OpResult,
    SessionExpired,
    Stat,
    Watch,
    WatchType,
)


@dataclass
class MemoryZooKeeper:
    """ZooKeeper of one client, in memory: enough for whoever reads, writes and watches children."""

    nodes: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    """Data and version by path."""
    expired: bool = False
    session_id: int = 1
    child_handlers: dict[str, Watch] = field(default_factory=dict)
    armed: set[str] = field(default_factory=set)

    async def connect(self) -> None: ...

    async def close(self) -> None: ...

    def on_state(self, listener: object) -> None: ...

    def watch_node(self, path: str, handler: Watch) -> None: ...

    def unwatch_node(self, path: str) -> None: ...

    def watch_children(self, path: str, handler: Watch) -> None:
        self.child_handlers[path] = handler

    def unwatch_children(self, path: str) -> None:
        del self.child_handlers[path]

    def put(self, path: str, data: bytes = b"") -> None:
        """Write a znode with its parents, as another client would."""
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts)):
            self.nodes.setdefault("/" + "/".join(parts[:depth]), (b"", 0))
        self.nodes[path] = (data, self.nodes[path][1] + 1 if path in self.nodes else 0)
        self._children_changed(path)

    def reconnected(self) -> None:
        """Tell every handler that it may have missed something."""
        for path, handler in self.child_handlers.items():
            handler(WatchType.MAYBE, path)

    async def get(self, path: str) -> tuple[bytes, Stat]:
        self._check_session()
        if path not in self.nodes:
            raise NoNode(path)
        return self.nodes[path][0], self._stat(path)

    async def exists(self, path: str) -> Stat | None:
        self._check_session()
        return self._stat(path) if path in self.nodes else None

    async def children(self, path: str) -> list[str]:
        self._check_session()
        if path not in self.nodes:
            raise NoNode(path)
        if path in self.child_handlers:
            self.armed.add(path)
        prefix = f"{path}/"
        return sorted(
            name[len(prefix) :] for name in self.nodes if name.startswith(prefix) and "/" not in name[len(prefix) :]
        )

    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequential: bool = False
    ) -> tuple[str, Stat]:
        self._check_session()
        if path in self.nodes:
            raise NodeExists(path)
        if path.rpartition("/")[0] not in self.nodes:
            raise NoNode(path)
        self.nodes[path] = (data, 0)
        self._children_changed(path)
        return path, self._stat(path)

    async def set(self, path: str, data: bytes, version: int) -> Stat:
        self._check_session()
        if path not in self.nodes:
            raise NoNode(path)
        if version not in (ANY_VERSION, self.nodes[path][1]):
            raise BadVersion(path)
        self.nodes[path] = (data, self.nodes[path][1] + 1)
        return self._stat(path)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._check_session()
        del self.nodes[path]
        self._children_changed(path)

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        raise NotImplementedError

    def _check_session(self) -> None:
        if self.expired:
            raise SessionExpired

    def _stat(self, path: str) -> Stat:
        return Stat(czxid=1, mzxid=1, version=self.nodes[path][1], ephemeral_owner=0)

    def _children_changed(self, path: str) -> None:
        parent = path.rpartition("/")[0]
        if parent in self.armed:
            self.armed.remove(parent)
            self.child_handlers[parent](WatchType.CHILDREN, parent)


@pytest.fixture
def zookeeper() -> MemoryZooKeeper:
    memory = MemoryZooKeeper()
    for path in ("/brokers/topics/x", "/config/topics/x", "/config/changes/x"):
        memory.put(path)
        del memory.nodes[path]
    return memory

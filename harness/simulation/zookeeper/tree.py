"""ZooKeeper's tree: what each operation does to it, as values that another server can carry out too."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.broker.zookeeper.client import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    OpResult,
    RolledBack,
    Set,
    Stat,
    ZooKeeperError,
)

ROOT = "/"


class Change(NamedTuple):
    """One znode created, set or deleted, as decided: it is carried out everywhere alike."""

    zxid: int
    type: str
    """create, set or delete."""
    path: str
    data: bytes
    version: int
    """After the change; -1 for a delete."""
    owner: int
    """Session of an ephemeral znode, else 0."""
    session_id: int
    """The session or the tool that made the change."""


@dataclass(slots=True)
class Znode:
    """One znode."""

    data: bytes
    czxid: int
    mzxid: int
    owner: int = 0
    version: int = 0
    sequence: int = 0
    """Number of the next sequential child: counts all that were ever created."""
    children: dict[str, None] = field(default_factory=dict)

    @property
    def stat(self) -> Stat:
        """What ZooKeeper tells about it."""
        return Stat(czxid=self.czxid, mzxid=self.mzxid, version=self.version, ephemeral_owner=self.owner)


def parent_of(path: str) -> str:
    """Return the path above."""
    return path.rpartition("/")[0] or ROOT


class Tree:
    """All znodes, by path."""

    def __init__(self) -> None:
        self.nodes: dict[str, Znode] = {ROOT: Znode(b"", 0, 0)}

    def node(self, path: str) -> Znode:
        """Return a znode; raises NoNode."""
        node = self.nodes.get(path)
        if node is None:
            raise NoNode(path)
        return node

    def names(self, path: str) -> list[str]:
        """Return the names of a znode's children, sorted; none when there is no such znode."""
        node = self.nodes.get(path)
        return sorted(node.children) if node is not None else []

    def owned_by(self, session_id: int) -> list[str]:
        """Return the ephemeral znodes of a session."""
        return [path for path, node in self.nodes.items() if node.owner == session_id]

    def carry_out(self, session_id: int, op: Op, zxid: int) -> tuple[Any, Change | None]:
        """Do one operation; return its result and what it changed.

        Raises:
            NoNode, NodeExists, BadVersion, NotEmpty: nothing was done.
        """
        if isinstance(op, Create):
            return self._create(session_id, op, zxid)
        node = self.node(op.path)
        if op.version not in (ANY_VERSION, node.version):
            raise BadVersion(op.path)
        if isinstance(op, Check):
            return True, None
        if isinstance(op, Set):
            change = Change(zxid, "set", op.path, op.data, node.version + 1, node.owner, session_id)
            self.replay(change)
            return node.stat, change
        if node.children:
            raise NotEmpty(op.path)
        change = Change(zxid, "delete", op.path, b"", -1, node.owner, session_id)
        self.replay(change)
        return True, change

    def carry_out_all(self, session_id: int, ops: Sequence[Op], zxid: int) -> tuple[list[OpResult], list[Change]]:
        """Do all operations or none; return what each came to, which may be its error, and what they changed."""
        results: list[OpResult] = []
        changes: list[Change] = []
        before: list[tuple[Change, Znode | None]] = []
        for number, op in enumerate(ops):
            node_before = self._copy(op.path)
            try:
                result, change = self.carry_out(session_id, op, zxid)
            except ZooKeeperError as error:
                for done, node in reversed(before):
                    self._undo(done, node)
                return [*(RolledBack() for _ in results), error, *(RolledBack() for _ in ops[number + 1 :])], []
            results.append(result)
            if change is not None:
                changes.append(change)
                before.append((change, node_before))
        return results, changes

    def replay(self, change: Change) -> None:
        """Carry out what was decided."""
        path = change.path
        if change.type == "set":
            node = self.nodes[path]
            node.data, node.version, node.mzxid = change.data, change.version, change.zxid
            return
        parent_path, _, name = path.rpartition("/")
        parent = self.nodes[parent_path or ROOT]
        if change.type == "create":
            parent.sequence += 1
            parent.children[name] = None
            self.nodes[path] = Znode(change.data, change.zxid, change.zxid, change.owner)
        else:
            del parent.children[name]
            del self.nodes[path]

    def _create(self, session_id: int, op: Create, zxid: int) -> tuple[str, Change]:
        parent = self.node(parent_of(op.path))
        path = f"{op.path}{parent.sequence:010d}" if op.sequential else op.path
        if path in self.nodes:
            raise NodeExists(path)
        change = Change(zxid, "create", path, op.data, 0, session_id if op.ephemeral else 0, session_id)
        self.replay(change)
        return path, change

    def _copy(self, path: str) -> Znode | None:
        node = self.nodes.get(path)
        if node is None:
            return None
        return Znode(node.data, node.czxid, node.mzxid, node.owner, node.version, node.sequence, dict(node.children))

    def _undo(self, change: Change, before: Znode | None) -> None:
        parent_path, _, name = change.path.rpartition("/")
        parent = self.nodes[parent_path or ROOT]
        if change.type == "create":
            parent.sequence -= 1
            del parent.children[name]
            del self.nodes[change.path]
        else:
            assert before is not None, f"{change.path} was not there"
            parent.children[name] = None
            self.nodes[change.path] = before

"""Records the changes of znodes during a run: a session of the harness watches all and writes each change."""

import asyncio
import queue
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState, WatchedEvent

from harness.errors import ClusterError
from harness.kafka.security.settings import ZookeeperSecurity
from harness.store.history import ChainedWriter, ZnodeChange
from harness.zookeeper.scope import EVERYTHING, Scope
from harness.zookeeper.secured import OPEN, refusal, session_client
from harness.zookeeper.sessions import to_text

ROOT = "/"
INTERNAL_PATH = "/zookeeper"
"""ZooKeeper's own znodes: quotas and configuration, no evidence about brokers."""
SOURCE = "observer"
CONNECT_TIMEOUT_S = 10.0
SESSION_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class _ZnodeStat:
    """The last known stat of a znode."""

    czxid: int
    mzxid: int
    owner: int


class ZookeeperObserver:
    """Watches all znodes in scope from `start` to `stop` in a thread and appends a line to a file for each change.

    Of two writes in quick succession it may see only the later one: a watch fires once for several changes.
    `merge_history` fills the gaps afterwards. Znodes that exist at the start are written too.
    """

    problem = ""
    """Always empty: what the observer misses is in the servers' log."""

    def __init__(self, hosts: str, path: Path, scope: Scope = EVERYTHING, security: ZookeeperSecurity = OPEN) -> None:
        self._hosts = hosts
        self._security = security
        self._scope = scope
        self._path = path
        self._client = session_client(hosts, security, timeout=SESSION_TIMEOUT_S)
        self._fired_paths: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        """Paths whose watch has fired; None for the end."""
        self._stats: dict[str, _ZnodeStat] = {}
        self._children: dict[str, set[str]] = {}
        self._thread = threading.Thread(target=self._follow, name="zookeeper-observer", daemon=True)
        self._watching = threading.Event()
        self._error: OSError | None = None

    @property
    def session_id(self) -> int:
        """The id of the observer's own session."""
        return int(self._client.client_id[0])

    async def start(self) -> None:
        """Return when every existing znode is written and watched.

        Raises:
            ClusterError: ZooKeeper does not answer.
        """
        await asyncio.to_thread(self._start)

    async def stop(self) -> None:
        """End the session and the file.

        Raises:
            ClusterError: the file could not be written completely.
        """
        await asyncio.to_thread(self._stop)

    def _start(self) -> None:
        self._client.add_listener(self._session_changed)
        try:
            self._client.start(CONNECT_TIMEOUT_S)
        except (KazooException, KazooTimeoutError) as error:
            raise refusal(self._hosts, self._security, error) from error
        self._thread.start()
        if not self._watching.wait(CONNECT_TIMEOUT_S):
            self._stop()
            raise ClusterError(f"ZooKeeper at {self._hosts}: the observer could not read all znodes")

    def _stop(self) -> None:
        self._fired_paths.put(None)
        if self._thread.is_alive():
            self._thread.join(CONNECT_TIMEOUT_S)
        self._client.stop()
        self._client.close()
        if self._error is not None:
            raise ClusterError(f"the observer could not write {self._path}: {self._error}") from self._error

    def _session_changed(self, state: str) -> None:
        # kazoo does not set watches again after a lost connection: read everything again.
        if state == KazooState.CONNECTED:
            self._fired_paths.put(ROOT)

    def _watch_fired(self, event: WatchedEvent) -> None:
        if event.path is not None:
            self._fired_paths.put(event.path)

    def _follow(self) -> None:
        try:
            with ChainedWriter(self._path) as history:
                while (path := self._fired_paths.get()) is not None:
                    try:
                        self._read(path, history)
                        if path == ROOT:
                            if self._watching.is_set():
                                self._read_below(ROOT, history)
                            self._watching.set()
                    except (KazooException, KazooTimeoutError):
                        continue  # disconnected: after the next connection everything is read again
        except OSError as error:
            self._error = error
            self._watching.set()

    def _read_below(self, path: str, history: ChainedWriter) -> None:
        for name in sorted(self._children.get(path, ())):
            child = _child(path, name)
            self._read(child, history)
            self._read_below(child, history)

    def _read(self, path: str, history: ChainedWriter) -> None:
        """Read a znode and its new children, write their changes since the last read, and watch them again."""
        try:
            data, stat = self._client.get_async(path, self._watch_fired).get(timeout=READ_TIMEOUT_S)
            names, _ = self._client.get_children_async(path, self._watch_fired, include_data=True).get(
                timeout=READ_TIMEOUT_S
            )
        except NoNodeError:
            if path in self._stats:
                self._fired_paths.put(_parent(path))
            return
        before = self._stats.get(path)
        if before is None or before.mzxid != stat.mzxid:
            self._stats[path] = _ZnodeStat(stat.czxid, stat.mzxid, stat.ephemeralOwner)
            if path != ROOT and self._scope.holds(path):
                history.write(_written(path, data, stat))
        known = self._children.get(path, set())
        children = {name: _child(path, name) for name in names}
        now = {name for name, child in children.items() if child != INTERNAL_PATH and self._scope.leads_to(child)}
        self._children[path] = now
        for name in sorted(known - now):
            self._write_deletes(_child(path, name), stat.pzxid, history)
        for name in sorted(now - known):
            self._read(_child(path, name), history)

    def _write_deletes(self, path: str, zxid: int, history: ChainedWriter) -> None:
        for name in sorted(self._children.pop(path, ())):
            self._write_deletes(_child(path, name), zxid, history)
        last = self._stats.pop(path, None)
        if last is not None and self._scope.holds(path):
            history.write(_deleted(path, zxid, last))


def _written(path: str, data: bytes | None, stat: Any) -> ZnodeChange:
    """Return a change; a znode made without data, as Kafka makes some, has the same as one with none in it."""
    created = stat.mzxid == stat.czxid
    return ZnodeChange(
        zxid=stat.mzxid,
        time_ms=stat.ctime if created else stat.mtime,
        type="create" if created else "set",
        path=path,
        data=(data or b"").decode("utf-8", errors="replace"),
        version=stat.version,
        session="",
        ephemeral_owner=to_text(stat.ephemeralOwner),
        source=SOURCE,
    )


def _deleted(path: str, zxid: int, last: _ZnodeStat) -> ZnodeChange:
    """Return a delete; its zxid is the parent's pzxid: that of the delete, or of a later change among its children."""
    return ZnodeChange(
        zxid=zxid,
        time_ms=time.time_ns() // 1_000_000,
        type="delete",
        path=path,
        data="",
        version=-1,
        session="",
        ephemeral_owner=to_text(last.owner),
        source=SOURCE,
    )


def _child(path: str, name: str) -> str:
    return f"/{name}" if path == ROOT else f"{path}/{name}"


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or ROOT

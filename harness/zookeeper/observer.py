"""Sees every znode change as it happens, through a session of the harness's own, and writes it down at once."""

import asyncio
import queue
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState, WatchedEvent

from harness.errors import ClusterError
from harness.store.history import JsonlWriter, ZnodeChange
from harness.zookeeper.sessions import to_text

ROOT = "/"
SERVERS_OWN = "/zookeeper"
"""ZooKeeper's own znodes: quotas and configuration, no evidence about brokers."""
SOURCE = "observer"
CONNECT_TIMEOUT_S = 10.0
SESSION_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was last seen of a znode."""

    czxid: int
    mzxid: int
    owner: int


class ZookeeperObserver:
    """Follows all znodes from `start` to `stop` and appends a line a change to one file; a thread of its own reads.

    Two writes in quick succession may show as one, the later: watches say that something changed, not how often.
    `merge_history` fills the gaps afterwards. What exists at the start is written too, as it stands then.
    """

    def __init__(self, hosts: str, path: Path) -> None:
        self._hosts = hosts
        self._path = path
        self._client = KazooClient(hosts=hosts, timeout=SESSION_TIMEOUT_S)
        self._to_look_at: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        """Paths whose watch has fired; None for the end."""
        self._seen: dict[str, _Seen] = {}
        self._children: dict[str, set[str]] = {}
        self._thread = threading.Thread(target=self._follow, name="zookeeper-observer", daemon=True)
        self._watching = threading.Event()
        self._error: OSError | None = None

    @property
    def session_id(self) -> int:
        """The id of the observer's own session."""
        return int(self._client.client_id[0])

    async def start(self) -> None:
        """Return when every existing znode is written down and watched.

        Raises:
            ClusterError: ZooKeeper does not answer.
        """
        await asyncio.to_thread(self._start)

    async def stop(self) -> None:
        """End the session and the file.

        Raises:
            ClusterError: the file could not be written to the end.
        """
        await asyncio.to_thread(self._stop)

    def _start(self) -> None:
        self._client.add_listener(self._session_changed)
        try:
            self._client.start(CONNECT_TIMEOUT_S)
        except KazooTimeoutError as error:
            raise ClusterError(f"ZooKeeper at {self._hosts} does not answer the observer") from error
        self._thread.start()
        if not self._watching.wait(CONNECT_TIMEOUT_S):
            self._stop()
            raise ClusterError(f"ZooKeeper at {self._hosts}: the observer could not read all znodes")

    def _stop(self) -> None:
        self._to_look_at.put(None)
        if self._thread.is_alive():
            self._thread.join(CONNECT_TIMEOUT_S)
        self._client.stop()
        self._client.close()
        if self._error is not None:
            raise ClusterError(f"the observer could not write {self._path}: {self._error}") from self._error

    def _session_changed(self, state: str) -> None:
        # kazoo does not set watches again after a lost connection: everything is looked at anew.
        if state == KazooState.CONNECTED:
            self._to_look_at.put(ROOT)

    def _watch_fired(self, event: WatchedEvent) -> None:
        if event.path is not None:
            self._to_look_at.put(event.path)

    def _follow(self) -> None:
        try:
            with JsonlWriter(self._path) as history:
                while (path := self._to_look_at.get()) is not None:
                    try:
                        self._look(path, history)
                        if path == ROOT:
                            if self._watching.is_set():
                                self._look_below(ROOT, history)
                            self._watching.set()
                    except (KazooException, KazooTimeoutError):
                        continue  # disconnected: the next connection looks at everything
        except OSError as error:
            self._error = error
            self._watching.set()

    def _look_below(self, path: str, history: JsonlWriter) -> None:
        for name in sorted(self._children.get(path, ())):
            child = _child(path, name)
            self._look(child, history)
            self._look_below(child, history)

    def _look(self, path: str, history: JsonlWriter) -> None:
        """Write down what changed at a path and below it since the last look, and watch it again."""
        try:
            data, stat = self._client.get_async(path, self._watch_fired).get(timeout=READ_TIMEOUT_S)
            names, _ = self._client.get_children_async(path, self._watch_fired, include_data=True).get(
                timeout=READ_TIMEOUT_S
            )
        except NoNodeError:
            if path in self._seen:
                self._to_look_at.put(_parent(path))
            return
        before = self._seen.get(path)
        if before is None or before.mzxid != stat.mzxid:
            self._seen[path] = _Seen(stat.czxid, stat.mzxid, stat.ephemeralOwner)
            if path != ROOT:
                history.write(_written(path, data, stat))
        known = self._children.get(path, set())
        now = {name for name in names if _child(path, name) != SERVERS_OWN}
        self._children[path] = now
        for name in sorted(known - now):
            self._vanished(_child(path, name), stat.pzxid, history)
        for name in sorted(now - known):
            self._look(_child(path, name), history)

    def _vanished(self, path: str, zxid: int, history: JsonlWriter) -> None:
        for name in sorted(self._children.pop(path, ())):
            self._vanished(_child(path, name), zxid, history)
        seen = self._seen.pop(path, None)
        if seen is not None:
            history.write(_deleted(path, zxid, seen))


def _written(path: str, data: bytes, stat: Any) -> ZnodeChange:
    created = stat.mzxid == stat.czxid
    return ZnodeChange(
        zxid=stat.mzxid,
        time_ms=stat.ctime if created else stat.mtime,
        type="create" if created else "set",
        path=path,
        data=data.decode("utf-8", errors="replace"),
        version=stat.version,
        session="",
        ephemeral_owner=to_text(stat.ephemeralOwner),
        source=SOURCE,
    )


def _deleted(path: str, zxid: int, seen: _Seen) -> ZnodeChange:
    """Return a delete; its zxid is that of the last change among the parent's children, so the delete's or later."""
    return ZnodeChange(
        zxid=zxid,
        time_ms=time.time_ns() // 1_000_000,
        type="delete",
        path=path,
        data="",
        version=-1,
        session="",
        ephemeral_owner=to_text(seen.owner),
        source=SOURCE,
    )


def _child(path: str, name: str) -> str:
    return f"/{name}" if path == ROOT else f"{path}/{name}"


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or ROOT

"""The present content of ZooKeeper, through a session of the harness's own."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Self

from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from harness.kafka.security.settings import ZookeeperSecurity
from harness.zookeeper import sessions
from harness.zookeeper.secured import OPEN, refusal, session_client
from harness.zookeeper.view import (
    Controller,
    PartitionView,
    Registration,
    ZookeeperView,
    assignment_of,
    controller_view,
    partition_view,
)

ANY_VERSION = -1
CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 5.0
AGAIN = {"max_tries": -1, "max_delay": 0.5, "deadline": READ_TIMEOUT_S}
"""For reads on a broken connection: a server that was paused drops its clients when it resumes."""
SESSION_TIMEOUT_S = 10.0


class KazooView(ZookeeperView):
    """A `ZookeeperView` over one kazoo client; an async context manager."""

    def __init__(self, hosts: str, security: ZookeeperSecurity = OPEN) -> None:
        self._hosts = hosts
        self._security = security
        self._client = session_client(hosts, security, timeout=SESSION_TIMEOUT_S, command_retry=AGAIN)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Open the session; raises ClusterError when no server answers."""
        try:
            await asyncio.to_thread(self._client.start, CONNECT_TIMEOUT_S)
        except (KazooException, KazooTimeoutError) as error:
            await self.close()
            raise refusal(self._hosts, self._security, error) from error

    async def close(self) -> None:
        """End the session; idempotent."""
        await asyncio.to_thread(self._client.stop)
        await asyncio.to_thread(self._client.close)

    async def controller(self) -> Controller:
        """Return the controller and its epoch."""
        return await asyncio.to_thread(self._controller)

    async def registrations(self) -> dict[int, Registration]:
        """Return the live brokers by id."""
        return await asyncio.to_thread(self._registrations)

    async def partitions(self) -> list[PartitionView]:
        """Return every partition that has a state znode, by topic and partition."""
        return await asyncio.to_thread(self._partitions)

    async def topics(self) -> list[str]:
        """Return the names of all topics."""
        return await asyncio.to_thread(lambda: list(self._children(["/brokers/topics"])[0]))

    async def cluster_id(self) -> str:
        """Return the id of this ZooKeeper's cluster; empty without one, or with one before 0.10.1."""
        znode = (await asyncio.to_thread(self._get, ["/cluster/id"]))[0]
        return "" if znode is None else str(json.loads(znode[0])["id"])

    async def expire(self, session: str) -> None:
        """End another client's session, given in hexadecimal; no-op if it has ended."""
        await sessions.expire(self._hosts, session, self._security)

    async def exists(self, path: str) -> bool:
        """Return whether a znode exists."""
        return await asyncio.to_thread(lambda: self._all(self._client.exists_async, [path], None)[0] is not None)

    async def read(self, path: str) -> bytes | None:
        """Return the content of a znode; None if it does not exist."""
        (znode,) = await asyncio.to_thread(self._get, [path])
        return None if znode is None else bytes(znode[0])

    async def create(self, path: str, data: bytes) -> bool:
        """Create a persistent znode; return False when it exists already."""
        return await asyncio.to_thread(lambda: self._write_done(self._client.create_async(path, data), NodeExistsError))

    async def write(self, path: str, data: bytes, *, instead_of: bytes | None = None) -> bool:
        """Replace the content of a znode; return False if it does not exist, or is not `instead_of`."""
        return await asyncio.to_thread(self._write, path, data, instead_of)

    def _write(self, path: str, data: bytes, instead_of: bytes | None) -> bool:
        (znode,) = self._get([path])
        if znode is None or instead_of not in (None, znode[0]):
            return False
        version = ANY_VERSION if instead_of is None else znode[1].version
        return self._write_done(self._client.set_async(path, data, version), (NoNodeError, BadVersionError))

    async def delete(self, path: str) -> bool:
        """Delete a znode without children; return False when there is none."""
        return await asyncio.to_thread(lambda: self._write_done(self._client.delete_async(path), NoNodeError))

    def _write_done(self, pending: Any, needless: type[KazooException] | tuple[type[KazooException], ...]) -> bool:
        """Wait for a write; return False when it fails with `needless`, because it was done already."""
        try:
            pending.get(timeout=READ_TIMEOUT_S)
        except needless:
            return False
        except (KazooException, KazooTimeoutError) as error:
            raise refusal(self._hosts, self._security, error) from error
        return True

    def _controller(self) -> Controller:
        epoch = self._get(["/controller_epoch"])[0]
        controller = self._get(["/controller"])[0]
        return controller_view(
            None if epoch is None else epoch[0],
            None if controller is None else (controller[0], sessions.to_text(controller[1].ephemeralOwner)),
        )

    def _registrations(self) -> dict[int, Registration]:
        names = self._children(["/brokers/ids"])[0]
        znodes = self._get([f"/brokers/ids/{name}" for name in names])
        return {
            int(name): Registration(
                broker_id=int(name), czxid=znode[1].czxid, session=sessions.to_text(znode[1].ephemeralOwner)
            )
            for name, znode in zip(names, znodes, strict=True)
            if znode is not None
        }

    def _partitions(self) -> list[PartitionView]:
        topics = self._children(["/brokers/topics"])[0]
        assignments = self._get([f"/brokers/topics/{topic}" for topic in topics])
        partitions: list[tuple[str, int, tuple[int, ...]]] = []
        for topic, znode in zip(topics, assignments, strict=True):
            if znode is not None:
                partitions += [(topic, partition, replicas) for partition, replicas in assignment_of(znode[0])]
        partitions.sort()
        paths = [f"/brokers/topics/{topic}/partitions/{partition}/state" for topic, partition, _ in partitions]
        states = self._get(paths)
        return [
            partition_view(topic, partition, assignment, znode[0], znode[1].version)
            for (topic, partition, assignment), znode in zip(partitions, states, strict=True)
            if znode is not None
        ]

    def _get(self, paths: list[str]) -> list[Any]:
        """Return (data, stat) of each path, None where there is no such znode; reads are pipelined."""
        return self._all(self._client.get_async, paths, None)

    def _children(self, paths: list[str]) -> list[Any]:
        """Return the sorted children of each path, none where there is no such znode."""
        return [sorted(names) for names in self._all(self._client.get_children_async, paths, ())]

    def _all(self, ask: Callable[[str], Any], paths: list[str], missing: Any) -> list[Any]:
        """Return the answer for each path, `missing` where there is no such znode."""

        def answers() -> list[Any]:
            pending = [ask(path) for path in paths]
            return [_answer(result, missing) for result in pending]

        try:
            answered: list[Any] = self._client.retry(answers)
        except (KazooException, KazooTimeoutError) as error:
            raise refusal(self._hosts, self._security, error) from error
        return answered


def _answer(pending: Any, missing: Any) -> Any:
    try:
        return pending.get(timeout=READ_TIMEOUT_S)
    except NoNodeError:
        return missing

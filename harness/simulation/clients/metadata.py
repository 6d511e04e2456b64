"""What every client has: connections to brokers, the leaders of partitions, and refreshes of both."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import MetadataRequest
from harness.broker.wire.transport import Message, PeerError
from harness.simulation.transport import MemoryConnection, MemoryTransport
from harness.values import NO_BROKER, TopicPartition

METADATA_VERSION = 8
REFRESH_S = 2.0
"""Between two requests for metadata while nothing shows that it is old."""
REFRESH_SOON_S = 0.05
"""Before the first request after something showed that the metadata is old; doubled while answers bring nothing new."""
REFRESH_LATER_S = 0.4
"""The longest of these pauses."""
CONNECT_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition, as brokers report it."""

    broker_id: int
    leader_epoch: int


class ClusterClient:
    """One client's view of the cluster; calls `changed` when it has learnt something or has a new connection."""

    def __init__(
        self,
        transport: MemoryTransport,
        bootstrap: Iterable[tuple[str, int]],
        topics: Iterable[str],
        *,
        client_id: str,
        timeout_s: float,
        changed: Callable[[], None],
    ) -> None:
        self.leaders: dict[TopicPartition, Leader] = {}
        self.controller_id = NO_BROKER
        self.timeout_s = timeout_s
        self._transport = transport
        self._bootstrap = tuple(bootstrap)
        self._topics = sorted(topics)
        self._client_id = client_id
        self._changed = changed
        self._addresses: dict[int, tuple[str, int]] = {}
        self._connections: dict[tuple[str, int], MemoryConnection] = {}
        self._opening: dict[tuple[str, int], asyncio.Task[MemoryConnection | None]] = {}
        self._tries = 0
        self._pause_s = REFRESH_SOON_S
        self._stale = asyncio.Event()
        self._refresher = asyncio.ensure_future(self._keep_fresh())

    # --- metadata ---

    def refresh_soon(self) -> None:
        """Something showed that the metadata is old."""
        self._stale.set()

    def led_by(self, broker_id: int, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return those of the partitions that a broker leads."""
        return [each for each in partitions if (led := self.leaders.get(each)) and led.broker_id == broker_id]

    @property
    def broker_ids(self) -> list[int]:
        """All brokers that live, as far as this client knows."""
        return sorted(self._addresses)

    async def _keep_fresh(self) -> None:
        while True:
            self._stale.clear()
            before = dict(self.leaders)
            known = await self._refresh()
            if known and self.leaders != before:
                self._pause_s = REFRESH_SOON_S
                self._changed()
            else:
                self._pause_s = min(2 * self._pause_s, REFRESH_LATER_S)
            await asyncio.sleep(self._pause_s)
            if known:
                await _set_within(self._stale, REFRESH_S - self._pause_s)

    async def _refresh(self) -> bool:
        """Ask one broker after the other, a different one at each try; return whether it had an answer."""
        addresses = sorted({*self._addresses.values(), *self._bootstrap})
        address = addresses[self._tries % len(addresses)]
        connection = await self._connect(address)
        if connection is None:
            self._tries += 1
            return False
        request = metadata_request(self._topics)
        try:
            self._learn(await connection.request(request, METADATA_VERSION, timeout_s=self.timeout_s))
        except PeerError:
            self._tries += 1
            return False
        return True

    def _learn(self, answer: Message) -> None:
        self._addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        self.controller_id = answer.controller_id
        for topic in answer.topics:
            for partition in topic.partitions:
                key = (topic.name, partition.partition_index)
                known = self.leaders.get(key)
                if partition.error_code != ErrorCode.NONE or partition.leader_id not in self._addresses:
                    self._stale.set()
                elif known is None or partition.leader_epoch >= known.leader_epoch:  # KIP-320: never back in time
                    self.leaders[key] = Leader(partition.leader_id, partition.leader_epoch)

    # --- connections ---

    def connection(self, broker_id: int) -> MemoryConnection | None:
        """Return an open connection to a broker, or begin to open one."""
        address = self._addresses.get(broker_id)
        if address is None:
            self.refresh_soon()
            return None
        connection = self._connections.get(address)
        if connection is not None and not connection.closed:
            return connection
        if address not in self._opening:
            self._opening[address] = asyncio.ensure_future(self._open(address))
        return None

    async def connected(self, broker_id: int) -> MemoryConnection:
        """Return a connection to a broker; raises PeerError."""
        address = self._addresses.get(broker_id)
        connection = await self._connect(address) if address is not None else None
        if connection is None:
            raise PeerError(f"broker {broker_id} cannot be reached")
        return connection

    async def ask(self, broker_id: int, message: Message, version: int) -> Message:
        """Return a broker's answer; raises PeerError."""
        return await (await self.connected(broker_id)).request(message, version, timeout_s=self.timeout_s)

    async def _connect(self, address: tuple[str, int]) -> MemoryConnection | None:
        connection = self._connections.get(address)
        if connection is not None and not connection.closed:
            return connection
        if address not in self._opening:
            self._opening[address] = asyncio.ensure_future(self._open(address))
        return await asyncio.shield(self._opening[address])  # others may wait for it too

    async def _open(self, address: tuple[str, int]) -> MemoryConnection | None:
        connection = None
        try:
            connection = await self._transport.connect(*address, client_id=self._client_id, timeout_s=CONNECT_TIMEOUT_S)
            self._connections[address] = connection
        except PeerError:
            self.refresh_soon()
            await asyncio.sleep(self._pause_s)
        finally:
            del self._opening[address]
        self._changed()  # not when it is cancelled or its loop closed: it would begin to open the next
        return connection

    def close(self) -> None:
        """Drop every connection."""
        for task in (self._refresher, *self._opening.values()):
            task.cancel()
        for connection in self._connections.values():
            connection.close()


def metadata_request(topics: Iterable[str]) -> MetadataRequest:
    """Return a Metadata request for the leaders of some topics' partitions."""
    topic = MetadataRequest.MetadataRequestTopic
    return MetadataRequest(
        topics=[topic(name=name) for name in topics],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def now_s() -> float:
    """Return the virtual time in seconds."""
    return asyncio.get_running_loop().time()


async def _set_within(event: asyncio.Event, limit_s: float) -> None:
    """Return when the event is set, or when the time has passed."""
    loop = asyncio.get_running_loop()
    timer = loop.call_later(limit_s, event.set)
    await event.wait()
    timer.cancel()

"""Requests of this broker to others, outside of replication: one connection a broker, one request at a time on it."""

import asyncio
from dataclasses import dataclass, field

from harness.broker.metadata_cache import MetadataCache
from harness.broker.wire.transport import Connection, Message, PeerError, Transport


@dataclass(slots=True)
class _Peer:
    """One other broker, or this one: a request to itself takes the same way."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    address: tuple[str, int] | None = None
    connection: Connection | None = None

    def disconnect(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


@dataclass(slots=True, kw_only=True)
class Peers:
    """The brokers of the cluster, by the metadata cache."""

    transport: Transport
    metadata: MetadataCache
    listener: str
    client_id: str
    timeout_s: float
    _peers: dict[int, _Peer] = field(default_factory=dict)

    async def request(self, broker_id: int, message: Message, version: int) -> Message:
        """Send a request to a broker and return its answer.

        Raises:
            PeerError: the broker is not alive, cannot be reached, or does not answer in time.
        """
        peer = self._peers.setdefault(broker_id, _Peer())
        async with peer.lock:
            address = self.metadata.leader_endpoint(broker_id, self.listener)
            if address is None:
                raise PeerError(f"broker {broker_id} is not alive")
            if address != peer.address or (peer.connection is not None and peer.connection.closed):
                peer.disconnect()
            try:
                if peer.connection is None:
                    host, port = peer.address = address
                    peer.connection = await self.transport.connect(
                        host, port, client_id=self.client_id, timeout_s=self.timeout_s
                    )
                return await peer.connection.request(message, version, timeout_s=self.timeout_s)
            except BaseException:  # a request that was given up leaves a connection in the middle of an answer
                peer.disconnect()
                raise

    def close(self) -> None:
        """Drop every connection."""
        for peer in self._peers.values():
            peer.disconnect()

"""The connections of a broker, the limit on new ones, and the idle ones.

The rules are Kafka's (`ConnectionQuotas`, `Selector.IdleExpiryManager`): at the limit, a connection waits until a place
is free, except a broker's, for which the least recently used one of another listener is closed; a connection above an
address's limit is closed at once; and so is an idle one, whatever it is waiting for.
"""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from harness.broker.wire.limits import ServerLimits

log = logging.getLogger(__name__)

_SWEEPS_IN_IDLE_TIME = 10
_SHORTEST_SWEEP_S = 0.01


class NotingReads(asyncio.StreamReaderProtocol):
    """Records when data came in last."""

    read_s = 0.0

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__(reader)
        self.reader = reader

    def data_received(self, data: bytes) -> None:
        """Record the time and pass the data on."""
        self.read_s = asyncio.get_running_loop().time()
        super().data_received(data)


@dataclass(slots=True, eq=False, kw_only=True)
class ClientConnection:
    """One accepted connection."""

    listener: str
    address: str
    peer: str
    """host:port of the other end."""
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    protocol: NotingReads
    written_s: float
    """When its client read something last."""
    _untaken_bytes: int = 0

    def close(self) -> None:
        """Drop it at once; unsent data is lost."""
        self.writer.transport.abort()

    def used_s(self, now_s: float) -> float:
        """Return when a byte moved last, as far as known now."""
        untaken_bytes = self.writer.transport.get_write_buffer_size()
        if untaken_bytes != self._untaken_bytes:
            self._untaken_bytes = untaken_bytes
            self.written_s = now_s
        return max(self.protocol.read_s, self.written_s)


class Connections:
    """All connections of a server."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._open: dict[ClientConnection, None] = {}
        self._by_address: Counter[str] = Counter()
        self._left = asyncio.Event()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._open)

    def __iter__(self) -> Iterator[ClientConnection]:
        """Return them, oldest first."""
        return iter(self._open)

    async def place(self, listener: str) -> None:
        """Return when there is a place for a connection of this listener."""
        while len(self._open) >= self._limits.max_connections and listener != self._limits.protected_listener:
            self._left.clear()
            await self._left.wait()

    def may_come(self, address: str) -> bool:
        """Whether one more connection from an address is allowed."""
        return self._by_address[address] < self._limits.per_address(address)

    def add(self, connection: ClientConnection) -> None:
        """Add a connection; if it is a broker's above the limit, another one is closed."""
        self._open[connection] = None
        self._by_address[connection.address] += 1
        if len(self._open) > self._limits.max_connections:
            self._close_least_recently_used()

    def remove(self, connection: ClientConnection) -> None:
        """Remove a closed connection."""
        del self._open[connection]
        self._by_address[connection.address] -= 1
        if not self._by_address[connection.address]:
            del self._by_address[connection.address]
        self._left.set()

    async def close_idle(self) -> None:
        """Close idle connections, in a loop."""
        max_idle_s = self._limits.max_idle_s
        if max_idle_s < 0:
            return
        while True:
            now_s = asyncio.get_running_loop().time()
            for connection in self._open:
                if now_s - connection.used_s(now_s) > max_idle_s and not connection.writer.is_closing():
                    log.info("connection.idle listener=%s peer=%s", connection.listener, connection.peer)
                    connection.close()
            await asyncio.sleep(max(max_idle_s / _SWEEPS_IN_IDLE_TIME, _SHORTEST_SWEEP_S))

    def _close_least_recently_used(self) -> None:
        now_s = asyncio.get_running_loop().time()
        others = [each for each in self._open if each.listener != self._limits.protected_listener]
        others = [each for each in others if not each.writer.is_closing()]
        victim = min(others, key=lambda each: each.used_s(now_s), default=None)
        if victim is not None:
            log.info("connection.evicted listener=%s peer=%s", victim.listener, victim.peer)
            victim.close()


async def take_in(listener: str, accepted: socket.socket, *, read_ahead_bytes: int) -> ClientConnection:
    """Return an accepted socket as a connection, with Nagle's algorithm off.

    Raises:
        OSError: it is closed already.
    """
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    host, port = accepted.getpeername()[:2]
    protocol = NotingReads(asyncio.StreamReader(limit=read_ahead_bytes))
    transport, _ = await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, accepted)
    return as_connection(transport, protocol, listener=listener, address=host, peer=f"{host}:{port}")


def as_connection(
    transport: asyncio.Transport, protocol: NotingReads, *, listener: str, address: str, peer: str
) -> ClientConnection:
    """Return a transport as a connection."""
    loop = asyncio.get_running_loop()
    protocol.read_s = loop.time()
    transport.set_write_buffer_limits(high=0)  # drain() returns when the response is with the kernel
    return ClientConnection(
        listener=listener,
        address=address,
        peer=peer,
        reader=protocol.reader,
        writer=asyncio.StreamWriter(transport, protocol, protocol.reader, loop),
        protocol=protocol,
        written_s=loop.time(),
    )

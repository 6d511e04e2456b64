"""Limits of clients: connections, memory for requests, and for responses that they do not read.

The kernel's part is bounded too: connections that wait to be accepted, and the buffers of a connection.
"""

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.broker.configs.config import BrokerConfig
from harness.broker.configs.config_types import INT_MAX

UNTAKEN_RESPONSE_BYTES = 128 * 1024 * 1024
"""Limit of all unread responses together. Kafka needs none: it sends from files."""

Room = Callable[[], int]
"""Returns how many bytes a response may have now; one batch of records is sent in any case (KIP-74)."""


def unlimited() -> int:
    """Return more room than any response needs."""
    return INT_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """By default those of Kafka."""

    max_request_bytes: int = 100 * 1024 * 1024
    queued_request_bytes: int = -1
    """Sum of all requests being read or answered; at the limit no request is read. Not positive: no limit."""
    untaken_response_bytes: int = UNTAKEN_RESPONSE_BYTES
    max_connections: int = INT_MAX
    max_connections_per_address: int = INT_MAX
    addresses: Mapping[str, int] = field(default_factory=dict)
    """Limits of single addresses instead."""
    max_idle_s: float = 600.0
    """A connection on which no byte moves for longer is closed, also in the middle of a request; negative: never."""
    protected_listener: str | None = None
    """The brokers' own: its connections are accepted in any number, at the cost of others."""
    backlog: int = 50
    """Number of connections waiting in the kernel."""
    receive_buffer_bytes: int = 102_400
    """Of each connection; -1: the kernel's choice."""
    send_buffer_bytes: int = 102_400
    """Of each connection; -1: the kernel's choice."""

    def per_address(self, address: str) -> int:
        """Return the limit of connections from an address."""
        return self.addresses.get(address, self.max_connections_per_address)


def server_limits(config: BrokerConfig) -> ServerLimits:
    """Return the limits of the properties; the brokers' listener is protected only if it is not the only one.

    Raises:
        OSError: a host name among the addresses cannot be resolved.
    """
    overrides = (entry.rpartition(":") for entry in config["max.connections.per.ip.overrides"])
    return ServerLimits(
        max_request_bytes=config["socket.request.max.bytes"],
        queued_request_bytes=config["queued.max.request.bytes"],
        max_connections=config["max.connections"],
        max_connections_per_address=config["max.connections.per.ip"],
        addresses={socket.gethostbyname(host): int(count) for host, _, count in overrides},
        max_idle_s=config["connections.max.idle.ms"] / 1000,
        protected_listener=config.peer_listener if len(config.endpoints) > 1 else None,
        backlog=config["socket.listen.backlog.size"],
        receive_buffer_bytes=config["socket.receive.buffer.bytes"],
        send_buffer_bytes=config["socket.send.buffer.bytes"],
    )


class RequestMemory:
    """Kafka's memory pool: while any is left, a request of any size is read."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._freed = asyncio.Event()
        self.taken_bytes = 0

    async def take(self, size_bytes: int) -> None:
        """Take memory for a request, once there is some."""
        while 0 < self._limit_bytes <= self.taken_bytes:
            self._freed.clear()
            await self._freed.wait()
        self.taken_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Release it."""
        self.taken_bytes -= size_bytes
        self._freed.set()


class ResponseMemory:
    """Counts unread responses, so that the next ones are smaller."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.held_bytes = 0

    def room(self) -> int:
        """Return the room of the next response."""
        return max(0, self._limit_bytes - self.held_bytes)

    @contextmanager
    def holding(self, size_bytes: int) -> Iterator[None]:
        """Count a response until its client has read it."""
        self.held_bytes += size_bytes
        try:
            yield
        finally:
            self.held_bytes -= size_bytes

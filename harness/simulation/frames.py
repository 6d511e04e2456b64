"""What a client that speaks bytes has in the place of TCP: frames over connections in memory."""

import asyncio
import struct
from collections import deque
from typing import Any

from harness.broker.wire.messages import ApiKey
from harness.broker.wire.transport import PeerError
from harness.kafka.client import NoAnswer
from harness.simulation.network import CLOSED, End, Network, SimulatedRequest
from harness.simulation.transport import knock

_HEADER = struct.Struct(">hhi")
"""API, version, correlation id."""


class MemoryFrames:
    """Implements the client's `Network`."""

    def __init__(self, network: Network, host: str) -> None:
        self._network = network
        self._host = host

    async def connect(self, host: str, port: int, *, timeout_s: float) -> "FrameStream":
        """Connect to a broker; raises NoAnswer."""
        made = FrameStream(self._network, self._host)
        try:
            await knock(self._network, self._host, host, port, made, timeout_s)
        except PeerError as error:
            raise NoAnswer(str(error)) from error
        return made


class FrameStream:
    """Implements the client's `Stream`."""

    def __init__(self, network: Network, client_id: str) -> None:
        self.end = End(network, self._take)
        self._client_id = client_id
        self._pending: deque[asyncio.Future[bytes]] = deque()

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self.end.closed

    async def exchange(self, frame: bytes) -> bytes:
        """Send a frame and return the one that answers it; raises NoAnswer."""
        key, version, number = _HEADER.unpack_from(frame)
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pending.append(future)
        self.end.put(SimulatedRequest(number, version, self._client_id, ApiKey(key), None, frame))
        return await future

    def close(self) -> None:
        """Drop the connection at once."""
        self.end.close()
        self._fail("the connection is closed")

    def _take(self, item: Any) -> None:
        if item is CLOSED:
            self._fail("closed before the response")
            return
        future = self._pending.popleft()
        if not future.done():
            future.set_result(item.frame)

    def _fail(self, why: str) -> None:
        pending, self._pending = self._pending, deque()
        for future in pending:
            if not future.done():
                future.set_exception(NoAnswer(why))

"""Peers that answer every control request with success, unless a test says otherwise."""

import asyncio
from dataclasses import dataclass, field

from harness.broker.wire.messages import ApiMessage, LeaderAndIsrResponse, StopReplicaResponse, UpdateMetadataResponse
from harness.broker.wire.transport import Message, PeerError

_ANSWERS = {
    "LeaderAndIsrRequest": lambda: LeaderAndIsrResponse(error_code=0, partition_errors=[]),
    "StopReplicaRequest": lambda: StopReplicaResponse(error_code=0, partition_errors=[]),
    "UpdateMetadataRequest": lambda: UpdateMetadataResponse(error_code=0),
}


@dataclass
class FakeTransport:
    """Connects to any port; the port is the peer's broker id."""

    received: list[tuple[int, ApiMessage]] = field(default_factory=list)
    down: set[int] = field(default_factory=set)
    """Peers that refuse connections."""
    break_next: set[int] = field(default_factory=set)
    """Peers that get the next request but whose connection breaks before they answer."""
    silent: set[int] = field(default_factory=set)
    """Peers that never answer."""
    connects: list[tuple[int, str, float]] = field(default_factory=list)
    open: list["FakeConnection"] = field(default_factory=list)

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> "FakeConnection":
        await asyncio.sleep(0)
        self.connects.append((port, client_id, timeout_s))
        if port in self.down:
            raise PeerError(f"{port} is down")
        self.open.append(FakeConnection(self, port))
        return self.open[-1]

    def to(self, broker_id: int) -> list[ApiMessage]:
        return [message for receiver, message in self.received if receiver == broker_id]


@dataclass(eq=False)
class FakeConnection:
    transport: FakeTransport
    broker_id: int
    broken: bool = False

    async def request(self, message: Message, version: int, *, timeout_s: float) -> Message:
        await asyncio.sleep(0)
        if self.broken or self.broker_id in self.transport.down:
            raise PeerError(f"{self.broker_id} is down")
        self.transport.received.append((self.broker_id, message))
        message.encode(version=version)
        if self.broker_id in self.transport.silent:
            await asyncio.Event().wait()
        if self.broker_id in self.transport.break_next:
            self.transport.break_next.discard(self.broker_id)
            self.broken = True
            raise PeerError("connection broke")
        return _ANSWERS[type(message).__name__]()

    def close(self) -> None:
        if self in self.transport.open:
            self.transport.open.remove(self)

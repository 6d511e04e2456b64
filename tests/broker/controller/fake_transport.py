"""Peers that answer every control request with success, unless a test says otherwise."""

import asyncio
from dataclasses import dataclass, field

from harness.broker.wire.messages import (
    ApiMessage,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from harness.broker.wire.transport import Message, PeerError

_LeaderError = LeaderAndIsrResponse.LeaderAndIsrPartitionError
_StopError = StopReplicaResponse.StopReplicaPartitionError
Errors = dict[tuple[str, int], int]
"""Error code by partition."""


def _leader_and_isr(request: LeaderAndIsrRequest, errors: Errors) -> LeaderAndIsrResponse:
    named = [(topic.topic_name, p.partition_index) for topic in request.topic_states for p in topic.partition_states]
    errors_of = [_LeaderError(topic_name=t, partition_index=n, error_code=errors.get((t, n), 0)) for t, n in named]
    return LeaderAndIsrResponse(error_code=0, partition_errors=errors_of)


def _stop_replica(request: StopReplicaRequest, errors: Errors) -> StopReplicaResponse:
    named = [(topic.topic_name, state) for topic in request.topic_states for state in topic.partition_states]
    errors_of = [
        _StopError(
            topic_name=topic,
            partition_index=state.partition_index,
            error_code=errors.get((topic, state.partition_index), 0) if state.delete_partition else 0,
        )
        for topic, state in named
    ]
    return StopReplicaResponse(error_code=0, partition_errors=errors_of)


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
    delete_errors: dict[int, Errors] = field(default_factory=dict)
    """What peers say that cannot delete, by broker id."""
    leader_errors: dict[int, Errors] = field(default_factory=dict)
    """What peers say that cannot lead or follow, by broker id."""
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
    closed: bool = False

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
        if isinstance(message, LeaderAndIsrRequest):
            return _leader_and_isr(message, self.transport.leader_errors.get(self.broker_id, {}))
        if isinstance(message, StopReplicaRequest):
            failing = self.transport.delete_errors.get(self.broker_id, {})
            return _stop_replica(message, failing)
        assert isinstance(message, UpdateMetadataRequest)
        return UpdateMetadataResponse(error_code=0)

    def close(self) -> None:
        if self in self.transport.open:
            self.transport.open.remove(self)

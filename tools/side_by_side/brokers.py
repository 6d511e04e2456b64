"""What a situation does to single brokers, whatever runs them: processes of real Kafka, or a simulation."""

import asyncio
from typing import Protocol

from tools.peers import Peer


class Brokers(Protocol):
    """The brokers of a cluster, whose ids count from 0."""

    def kill(self, broker_id: int) -> None:
        """End a broker without a controlled shutdown."""

    def pause(self, broker_id: int) -> None:
        """Freeze a broker until it is resumed."""

    def resume(self, broker_id: int) -> None:
        """Let a paused broker continue."""

    async def start(self, broker_id: int) -> None:
        """Start a broker again."""

    def address(self, broker_id: int) -> tuple[str, int]:
        """Return where clients reach a broker."""


class RealBrokers:
    """Those of real Kafka."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def kill(self, broker_id: int) -> None:
        """End a broker without a controlled shutdown."""
        self._peer.kill(broker_id)

    def pause(self, broker_id: int) -> None:
        """Freeze a broker."""
        self._peer.pause(broker_id)

    def resume(self, broker_id: int) -> None:
        """Let a paused broker continue."""
        self._peer.resume(broker_id)

    async def start(self, broker_id: int) -> None:
        """Start a broker again."""
        await asyncio.to_thread(self._peer.start, broker_id)

    def address(self, broker_id: int) -> tuple[str, int]:
        """Return where clients reach a broker."""
        host, _, port = self._peer.bootstrap_servers.split(",")[broker_id].rpartition(":")
        return host, int(port)

"""A cluster in virtual time, for the situations that are also played to real Kafka."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from harness.simulation.cluster import CLIENT_PORT, SimulatedCluster
from harness.simulation.transport import MemoryTransport


@dataclass(frozen=True)
class SimulatedBrokers:
    """Brokers 0 to n, as `tools.side_by_side.brokers` disturbs them."""

    cluster: SimulatedCluster

    @property
    def transport(self) -> MemoryTransport:
        return MemoryTransport(self.cluster.network, "client")

    def kill(self, broker_id: int) -> None:
        self.cluster[broker_id].kill()

    def pause(self, broker_id: int) -> None:
        self.cluster[broker_id].pause()

    def resume(self, broker_id: int) -> None:
        self.cluster[broker_id].resume()

    async def start(self, broker_id: int) -> None:
        assert await self.cluster[broker_id].start()

    def address(self, broker_id: int) -> tuple[str, int]:
        return self.cluster[broker_id].host, CLIENT_PORT


async def simulated(count: int, properties: Mapping[str, str]) -> SimulatedBrokers:
    """Return brokers that run; every message goes through the real codecs."""
    cluster = SimulatedCluster(range(count), seed=1, properties=properties, through_codecs=True)
    assert all(await asyncio.gather(*(broker.start() for broker in cluster.brokers.values())))
    return SimulatedBrokers(cluster)

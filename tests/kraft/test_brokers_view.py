"""What brokers tell of a cluster whose metadata are out of reach."""

from dataclasses import dataclass

import pytest

from harness.broker.wire.messages import MetadataResponse
from harness.broker.wire.transport import Message, PeerError
from harness.errors import ClusterError
from harness.kraft.brokers_view import BrokersView


@dataclass
class Brokers:
    """Brokers in memory by port, with the topics that each knows; each is its own transport's connection."""

    topics: dict[int, list[str]]
    away: frozenset[int] = frozenset()
    asked: int = 0
    closed = False

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> "Brokers":
        if port in self.away:
            raise PeerError(f"connecting to {host}:{port}: refused")
        return Brokers(self.topics, self.away, port)

    async def request(self, message: Message, version: int, *, timeout_s: float) -> Message:
        topic, broker = MetadataResponse.MetadataResponseTopic, MetadataResponse.MetadataResponseBroker
        return MetadataResponse(
            controller_id=1,
            brokers=[broker(node_id=port, host="h", port=port) for port in self.topics],
            topics=[topic(name=name, partitions=[]) for name in self.topics[self.asked]],
        )

    def close(self) -> None:
        pass


async def test_a_topic_is_there_as_soon_as_any_broker_knows_it() -> None:
    brokers = Brokers({1: ["a"], 2: ["a", "b"], 3: ["c"]})
    assert await BrokersView("h:1", brokers).topics() == ["a", "b", "c"]
    brokers.away = frozenset({1, 3})
    assert await BrokersView("h:1,h:2", brokers).topics() == ["a", "b"]
    brokers.away = frozenset({1, 2, 3})
    with pytest.raises(ClusterError, match="no broker answers: connecting to h:1: refused; connecting to h:2: refused"):
        await BrokersView("h:1,h:2", brokers).topics()

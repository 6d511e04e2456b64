"""Two clusters for transactional clients: this broker's, and that of Kafka 3.9.1."""

import uuid
from collections.abc import Iterator

import pytest

from tests.kafka_tools import has_kafka
from tools.peers import Peer, create_topic, running

__all__ = ["Peer", "peer", "topic"]

PARTITIONS = 3
PROPERTIES = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
KINDS = [
    pytest.param("ours", id="this broker"),
    pytest.param("kafka", id="Kafka 3.9.1", marks=pytest.mark.rotating(0, of="clients on real Kafka")),
]


@pytest.fixture(scope="module", params=KINDS)
def peer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """A cluster of three brokers."""
    kind = request.param
    if kind == "kafka" and not has_kafka():
        pytest.skip("no jars of real Kafka: make kafka-libs")
    with running(kind, tmp_path_factory.mktemp("peer"), properties=PROPERTIES) as started:
        yield started


@pytest.fixture
def topic(peer: Peer) -> str:
    """A fresh topic; a transactional id and a group have its name too."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    create_topic(peer, name, PARTITIONS)
    return name

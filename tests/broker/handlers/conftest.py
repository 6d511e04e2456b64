import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from harness.broker.administration.topic_creation import TopicCreator
from harness.broker.configs.config import BrokerConfig, parse_config
from harness.broker.metadata_cache import MetadataCache
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.messages import ApiKey
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from tests.broker.metadata_update import metadata_update
from tests.broker.recording_state_log import RecordingStateLog


@pytest.fixture
def config() -> BrokerConfig:
    return parse_config(
        {
            "broker.id": "1",
            "listeners": "PLAINTEXT://h:1,REPL://h:2",
            "inter.broker.listener.name": "REPL",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,REPL:PLAINTEXT",
            "log.dir": "/d",
            "zookeeper.connect": "z",
            "offsets.topic.num.partitions": "2",
            "num.partitions": "3",
        }
    )


@pytest.fixture
def context() -> Callable[..., RequestContext]:
    def build(version: int, api_key: ApiKey = ApiKey.METADATA, listener: str = "PLAINTEXT") -> RequestContext:
        return RequestContext(
            api_key=api_key, api_version=version, correlation_id=1, client_id="c", listener=listener, peer="p:1"
        )

    return build


@pytest.fixture
def tell() -> Callable[..., None]:
    """Apply one UpdateMetadata: topic → partition → (leader, replicas); brokers → listeners."""

    def update(cache: MetadataCache, brokers: dict[int, tuple[str, ...]], topics: dict[str, dict[int, Any]]) -> None:
        states = {t: {n: (leader, 4, known) for n, (leader, known) in of.items()} for t, of in topics.items()}
        cache.update(metadata_update(brokers, states, 2))

    return update


@pytest.fixture
async def session(zookeeper: Ensemble) -> AsyncIterator[ZooKeeperSession]:
    made = ZooKeeperSession(lambda: SimulatedZooKeeper(zookeeper), RecordingStateLog([]))
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def creator(config: BrokerConfig, session: ZooKeeperSession) -> TopicCreator:
    return TopicCreator(config, MetadataCache(), session, random.Random(1))

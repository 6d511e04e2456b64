import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from harness.broker.administration.topic_creation import TopicCreator
from harness.broker.configs.config import BrokerConfig, parse_config
from harness.broker.metadata_cache import MetadataCache
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.messages import ApiKey, UpdateMetadataRequest
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from tests.broker.recording_state_log import RecordingStateLog

_Broker = UpdateMetadataRequest.UpdateMetadataBroker
_Topic = UpdateMetadataRequest.UpdateMetadataTopicState
_Partition = _Topic.UpdateMetadataPartitionState


@pytest.fixture
def config() -> BrokerConfig:
    return parse_config(
        {
            "broker.id": "1",
            "listeners": "PLAINTEXT://h:1,REPL://h:2",
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
        endpoint = _Broker.UpdateMetadataEndpoint
        cache.update(
            UpdateMetadataRequest(
                controller_id=2,
                controller_epoch=1,
                broker_epoch=1,
                live_brokers=[
                    _Broker(
                        id=broker_id,
                        rack=None,
                        endpoints=[
                            endpoint(host=f"h{broker_id}", port=9000 + n, listener=name, security_protocol=0)
                            for n, name in enumerate(listeners)
                        ],
                    )
                    for broker_id, listeners in brokers.items()
                ],
                topic_states=[
                    _Topic(
                        topic_name=topic,
                        partition_states=[
                            _Partition(
                                partition_index=number,
                                controller_epoch=1,
                                leader=leader,
                                leader_epoch=4,
                                isr=replicas,
                                zk_version=0,
                                replicas=replicas,
                                offline_replicas=[broker for broker in replicas if broker not in brokers],
                            )
                            for number, (leader, replicas) in partitions.items()
                        ],
                    )
                    for topic, partitions in topics.items()
                ],
            )
        )

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

from harness.broker.metadata_cache import DELETED, AliveBroker, MetadataCache
from harness.broker.wire.messages import UpdateMetadataRequest

_Broker = UpdateMetadataRequest.UpdateMetadataBroker
_Topic = UpdateMetadataRequest.UpdateMetadataTopicState
_Partition = _Topic.UpdateMetadataPartitionState


def broker(broker_id: int, *listeners: str) -> _Broker:
    endpoint = _Broker.UpdateMetadataEndpoint
    return _Broker(
        id=broker_id,
        endpoints=[
            endpoint(port=9000 + i, host=f"h{broker_id}", listener=name, security_protocol=0)
            for i, name in enumerate(listeners)
        ],
        rack=None,
    )


def update(*brokers: _Broker, controller: int = 1, **leaders: dict[int, tuple[int, int]]) -> UpdateMetadataRequest:
    """Leader and leader epoch by partition by topic."""
    return UpdateMetadataRequest(
        controller_id=controller,
        controller_epoch=1,
        broker_epoch=1,
        topic_states=[
            _Topic(
                topic_name=topic,
                partition_states=[
                    _Partition(
                        partition_index=number,
                        controller_epoch=1,
                        leader=leader,
                        leader_epoch=epoch,
                        isr=[1, 2],
                        zk_version=0,
                        replicas=[1, 2],
                        offline_replicas=[],
                    )
                    for number, (leader, epoch) in partitions.items()
                ],
            )
            for topic, partitions in leaders.items()
        ],
        live_brokers=list(brokers),
    )


def test_brokers_are_replaced_and_partitions_are_merged() -> None:
    cache = MetadataCache()
    assert (cache.controller_id, cache.alive_brokers(), cache.topics()) == (-1, [], [])
    cache.update(update(broker(2, "A"), broker(1, "A", "B"), a={0: (1, 0), 1: (2, 0)}))
    cache.update(update(broker(1, "A", "B"), controller=2, b={0: (1, 3)}, a={1: (1, 1)}))
    assert cache.controller_id == 2
    assert cache.alive_brokers() == [
        AliveBroker(broker_id=1, endpoints={"A": ("h1", 9000), "B": ("h1", 9001)}, rack=None)
    ]
    assert cache.topics() == ["a", "b"]
    assert [(info.partition, info.leader, info.leader_epoch) for info in cache.partitions("a")] == [
        (0, 1, 0),
        (1, 1, 1),
    ]
    assert cache.partition("a", 9) is None
    assert cache.partitions("c") == []


def test_an_endpoint_needs_a_live_broker_with_that_listener() -> None:
    cache = MetadataCache()
    cache.update(update(broker(1, "A", "B")))
    asked = [(1, "B"), (1, "C"), (2, "A")]
    assert [cache.leader_endpoint(*each) for each in asked] == [("h1", 9001), None, None]
    assert [cache.is_alive(broker_id) for broker_id in (1, 2)] == [True, False]


def test_the_last_update_wins_even_with_an_older_leader_epoch() -> None:
    cache = MetadataCache()
    cache.update(update(a={0: (1, 5)}))
    cache.update(update(a={0: (2, 4)}))
    info = cache.partition("a", 0)
    assert info is not None
    assert (info.leader, info.leader_epoch) == (2, 4)


def test_a_deleted_partition_is_forgotten_and_with_the_last_one_its_topic() -> None:
    cache = MetadataCache()
    cache.update(update(a={0: (1, 0), 1: (1, 0)}))
    cache.update(update(a={0: (DELETED, 0)}))
    assert (cache.topics(), cache.partition("a", 0)) == (["a"], None)
    cache.update(update(a={1: (DELETED, 0)}, b={0: (DELETED, 0)}))
    assert cache.topics() == []

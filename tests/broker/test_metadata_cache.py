from harness.broker.metadata_cache import AliveBroker, MetadataCache
from harness.broker.wire.messages import UpdateMetadataRequest
from harness.events import FORGOTTEN
from tests.broker.metadata_update import metadata_update


def update(
    brokers: dict[int, str] | None = None, *, controller: int = 1, **leaders: dict[int, tuple[int, int]]
) -> UpdateMetadataRequest:
    """Listeners by broker; leader and leader epoch by partition by topic."""
    topics = {topic: {n: (*state, [1, 2]) for n, state in states.items()} for topic, states in leaders.items()}
    return metadata_update(brokers or {}, topics, controller)


def test_brokers_are_replaced_and_partitions_are_merged() -> None:
    cache = MetadataCache()
    assert (cache.controller_id, cache.alive_brokers(), cache.topics()) == (-1, [], [])
    cache.update(update({2: "A", 1: "AB"}, a={0: (1, 0), 1: (2, 0)}))
    cache.update(update({1: "AB"}, controller=2, b={0: (1, 3)}, a={1: (1, 1)}))
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
    cache.update(update({1: "AB"}))
    endpoints = [(1, "B"), (1, "C"), (2, "A")]
    assert [cache.leader_endpoint(*each) for each in endpoints] == [("h1", 9001), None, None]
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
    cache.update(update(a={0: (FORGOTTEN, 0)}))
    assert (cache.topics(), cache.partition("a", 0)) == (["a"], None)
    cache.update(update(a={1: (FORGOTTEN, 0)}, b={0: (FORGOTTEN, 0)}))
    assert cache.topics() == []

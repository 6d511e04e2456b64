import random
from collections import Counter

import pytest

from harness.broker.topics import NewTopic, Placement, TopicPlanner, TopicRefused, TopicRequest, place
from harness.broker.wire.error_codes import ErrorCode


def planner(*topics: str, brokers: int = 3) -> TopicPlanner:
    return TopicPlanner(
        alive_brokers=range(brokers), default_partitions=2, default_replication_factor=1, topics=frozenset(topics)
    )


def plan(request: TopicRequest, *topics: str, brokers: int = 3) -> NewTopic:
    return planner(*topics, brokers=brokers).plan(request, random.Random(1))


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(
            TopicRequest(name="taken", partitions=1, replication_factor=1),
            ErrorCode.TOPIC_ALREADY_EXISTS,
            id="a name that is taken",
        ),
        pytest.param(
            TopicRequest(name="t", partitions=0, replication_factor=1), ErrorCode.INVALID_PARTITIONS, id="no partitions"
        ),
        pytest.param(
            TopicRequest(name="t", partitions=-2, replication_factor=1),
            ErrorCode.INVALID_PARTITIONS,
            id="a negative number of partitions",
        ),
        pytest.param(
            TopicRequest(name="t", partitions=1, replication_factor=0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            id="no replicas",
        ),
        pytest.param(
            TopicRequest(name="t", partitions=1, replication_factor=4),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            id="more replicas than live brokers",
        ),
        pytest.param(
            TopicRequest(name="t", partitions=1, assignment={0: [0]}),
            ErrorCode.INVALID_REQUEST,
            id="a count together with a placement",
        ),
        pytest.param(
            TopicRequest(name="t", replication_factor=1, assignment={0: [0]}),
            ErrorCode.INVALID_REQUEST,
            id="a replication factor together with a placement",
        ),
        pytest.param(
            TopicRequest(name="t", assignment={1: [0]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            id="a placement that does not begin at partition 0",
        ),
        pytest.param(
            TopicRequest(name="t", assignment={0: [0], 2: [0]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            id="a placement with a gap",
        ),
        pytest.param(
            TopicRequest(name="t", assignment={0: [0], 1: [0, 1]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            id="partitions with unequal numbers of replicas",
        ),
        pytest.param(
            TopicRequest(name="t", assignment={0: [1, 1]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            id="a broker twice in one partition",
        ),
        pytest.param(
            TopicRequest(name="t", assignment={0: [-3]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            id="a negative broker id",
        ),
        pytest.param(
            TopicRequest(name="t", assignment={0: []}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            id="a partition without replicas",
        ),
        pytest.param(
            TopicRequest(name="t", partitions=2**31 - 1),
            ErrorCode.INVALID_PARTITIONS,
            id="more partitions than can be placed",
        ),
        pytest.param(TopicRequest(name=""), ErrorCode.INVALID_TOPIC_EXCEPTION, id="no name"),
        pytest.param(TopicRequest(name=".."), ErrorCode.INVALID_TOPIC_EXCEPTION, id="the name of a folder"),
        pytest.param(TopicRequest(name="a b"), ErrorCode.INVALID_TOPIC_EXCEPTION, id="a space in the name"),
        pytest.param(TopicRequest(name="ä"), ErrorCode.INVALID_TOPIC_EXCEPTION, id="a letter beyond ASCII"),
        pytest.param(TopicRequest(name="a\n"), ErrorCode.INVALID_TOPIC_EXCEPTION, id="a line end in the name"),
        pytest.param(TopicRequest(name="x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, id="a name of 250 characters"),
        pytest.param(
            TopicRequest(name="a_b"), ErrorCode.INVALID_TOPIC_EXCEPTION, id="a name that collides with a topic's"
        ),
        pytest.param(
            TopicRequest(name="t", config={"no.such.property": "1"}), ErrorCode.INVALID_CONFIG, id="an unknown property"
        ),
        pytest.param(
            TopicRequest(name="t", config={"min.insync.replicas": "none"}),
            ErrorCode.INVALID_CONFIG,
            id="a property that is no number",
        ),
        pytest.param(
            TopicRequest(name="t", config={"min.insync.replicas": "0"}),
            ErrorCode.INVALID_CONFIG,
            id="a property out of bounds",
        ),
        pytest.param(
            TopicRequest(name="t", config={"segment.bytes": None}), ErrorCode.INVALID_CONFIG, id="a property of null"
        ),
        pytest.param(
            TopicRequest(name="a b", partitions=1, replication_factor=9),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            id="the placement is refused before the name",
        ),
    ],
)
def test_a_topic_is_refused(request_: TopicRequest, expected: ErrorCode) -> None:
    with pytest.raises(TopicRefused) as refused:
        plan(request_, "taken", "a.b")
    assert refused.value.error is expected
    assert refused.value.message


@pytest.mark.parametrize(
    ("request_", "topics"),
    [
        pytest.param(TopicRequest(name="x" * 249), (), id="a name of 249 characters"),
        pytest.param(TopicRequest(name="a.b_c-D9"), (), id="every character that is allowed"),
        pytest.param(TopicRequest(name="ab"), ("abc",), id="a name without dots cannot collide"),
        pytest.param(TopicRequest(name="t", config={"min.insync.replicas": "9"}), (), id="more in sync than replicas"),
        pytest.param(TopicRequest(name="t", config={"cleanup.policy": "compact"}), (), id="a compacted topic"),
    ],
)
def test_a_topic_is_accepted_with_the_brokers_own_numbers(request_: TopicRequest, topics: tuple[str, ...]) -> None:
    topic = plan(request_, *topics)
    assert [len(replicas) for replicas in topic.assignment.values()] == [1, 1]
    assert topic.config == dict(request_.config)


def test_a_placement_by_hand_may_name_brokers_that_are_dead() -> None:
    assert plan(TopicRequest(name="t", assignment={1: [8, 0], 0: [9, 8]})).assignment == {0: [9, 8], 1: [8, 0]}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("brokers", "factor"), [(1, 1), (2, 2), (3, 2), (3, 3), (5, 3)])
def test_a_placement_is_balanced_and_names_no_broker_twice(brokers: int, factor: int, seed: int) -> None:
    ids = range(10, 10 + brokers)
    assignment = place(ids, 2 * brokers, factor, start=seed % brokers, shift=(2 * seed) % brokers)
    assert Counter(replicas[0] for replicas in assignment.values()) == Counter(dict.fromkeys(ids, 2))
    assert all(len(set(replicas)) == factor for replicas in assignment.values())


def test_a_placement_is_kafkas() -> None:
    """The table in the documentation of Kafka's AdminUtils: five brokers, ten partitions, three replicas."""
    expected: Placement = {
        0: [0, 1, 2],
        1: [1, 2, 3],
        2: [2, 3, 4],
        3: [3, 4, 0],
        4: [4, 0, 1],
        5: [0, 2, 3],
        6: [1, 3, 4],
        7: [2, 4, 0],
        8: [3, 0, 1],
        9: [4, 1, 2],
    }
    assert place(range(5), 10, 3, start=0, shift=0) == expected


RACKS = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def test_a_placement_by_racks_is_kafkas() -> None:
    """The example in the documentation of Kafka's AdminUtils."""
    expected: Placement = {
        0: [0, 3, 1],
        1: [3, 1, 5],
        2: [1, 5, 4],
        3: [5, 4, 2],
        4: [4, 2, 0],
        5: [2, 0, 3],
    }
    assert place(range(6), 6, 3, start=0, shift=0, racks=RACKS) == expected


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("factor", [1, 2, 3, 4, 6])
def test_no_rack_gets_a_second_replica_while_another_has_none(factor: int, seed: int) -> None:
    for replicas in place(range(6), 18, factor, start=seed, shift=5 - seed, racks=RACKS).values():
        assert len(set(replicas)) == factor
        counts = Counter(RACKS[replica] for replica in replicas)
        assert len(counts) == min(factor, 3)


def test_brokers_with_a_rack_beside_some_without_are_refused() -> None:
    with pytest.raises(TopicRefused, match="Not all brokers have rack information") as refused:
        place(range(6), 1, 1, start=0, shift=0, racks={0: "rack1"})
    assert refused.value.error is ErrorCode.UNKNOWN_SERVER_ERROR

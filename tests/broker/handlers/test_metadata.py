from collections.abc import Callable

import pytest

from harness.broker.administration.topic_creation import TopicCreator
from harness.broker.configs.config import BrokerConfig
from harness.broker.handlers.metadata import MetadataHandlers
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    DescribeClusterRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataResponse,
)
from harness.simulation.zookeeper.ensemble import Ensemble

BOTH = ("PLAINTEXT", "REPL")
Context = Callable[..., RequestContext]
Tell = Callable[..., None]


@pytest.fixture
def handlers(config: BrokerConfig, creator: TopicCreator) -> MetadataHandlers:
    return MetadataHandlers(config, "cluster", creator.metadata, creator, offsets_partitions=2, state_partitions=2)


def asks(*topics: str, create: bool = True) -> MetadataRequest:
    topic = MetadataRequest.MetadataRequestTopic
    return MetadataRequest(topics=[topic(name=name) for name in topics], allow_auto_topic_creation=create)


def codes(response: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


async def test_everything_that_is_known_is_told(handlers: MetadataHandlers, context: Context, tell: Tell) -> None:
    tell(handlers.metadata, {1: BOTH, 2: BOTH}, {"t": {0: (1, [1, 2]), 1: (2, [2, 1])}})
    response = await handlers.describe(MetadataRequest(topics=None), context(8))
    assert [(broker.node_id, broker.host, broker.port) for broker in response.brokers] == [
        (1, "h1", 9000),
        (2, "h2", 9000),
    ]
    assert (response.cluster_id, response.controller_id) == ("cluster", 2)
    assert [(p.partition_index, p.leader_id, p.leader_epoch) for p in response.topics[0].partitions] == [
        (0, 1, 4),
        (1, 2, 4),
    ]
    response.encode(version=8)


async def test_a_broker_is_listed_with_the_listener_that_was_asked(
    handlers: MetadataHandlers, context: Context, tell: Tell
) -> None:
    tell(handlers.metadata, {1: BOTH, 2: ("REPL",)}, {})
    response = await handlers.describe(MetadataRequest(topics=None), context(8))
    assert [broker.node_id for broker in response.brokers] == [1]
    response = await handlers.describe(MetadataRequest(topics=None), context(8, listener="REPL"))
    assert [broker.port for broker in response.brokers] == [9001, 9000]


@pytest.mark.parametrize(
    ("version", "topics", "expected"),
    [
        pytest.param(0, [], ["t", "u"], id="no topics mean all of them in version 0"),
        pytest.param(1, [], [], id="and none later"),
        pytest.param(1, None, ["t", "u"], id="null means all of them"),
        pytest.param(8, ["u", "u"], ["u"], id="a topic named twice is told once"),
    ],
)
async def test_which_topics_are_told(
    handlers: MetadataHandlers,
    context: Context,
    tell: Tell,
    version: int,
    topics: list[str] | None,
    expected: list[str],
) -> None:
    tell(handlers.metadata, {1: BOTH}, {"t": {0: (1, [1])}, "u": {0: (1, [1])}})
    request = MetadataRequest(topics=None) if topics is None else asks(*topics)
    assert list(codes(await handlers.describe(request, context(version)))) == expected


@pytest.mark.parametrize(
    ("version", "leader", "listeners", "error", "told_leader"),
    [
        pytest.param(8, 1, BOTH, ErrorCode.NONE, 1, id="a leader that is there"),
        pytest.param(8, -1, BOTH, ErrorCode.LEADER_NOT_AVAILABLE, -1, id="no leader"),
        pytest.param(8, 9, BOTH, ErrorCode.LEADER_NOT_AVAILABLE, -1, id="a leader that is dead"),
        pytest.param(6, 1, ("REPL",), ErrorCode.LISTENER_NOT_FOUND, -1, id="a leader without the client's listener"),
        pytest.param(5, 1, ("REPL",), ErrorCode.LEADER_NOT_AVAILABLE, -1, id="for which there was no code before"),
        pytest.param(1, 1, BOTH, ErrorCode.NONE, 1, id="a dead follower is no error"),
        pytest.param(0, 1, BOTH, ErrorCode.REPLICA_NOT_AVAILABLE, 1, id="but it was in version 0"),
    ],
)
async def test_a_partition_whose_leader_cannot_be_reached_is_an_error(
    handlers: MetadataHandlers,
    context: Context,
    tell: Tell,
    version: int,
    leader: int,
    listeners: tuple[str, ...],
    error: ErrorCode,
    told_leader: int,
) -> None:
    tell(handlers.metadata, {1: listeners}, {"t": {0: (leader, [1, 9])}})
    response = await handlers.describe(asks("t"), context(version))
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (error, told_leader, 4)
    assert partition.replica_nodes == ([1] if version == 0 else [1, 9])
    assert partition.offline_replicas == [9]
    response.encode(version=version)


async def test_an_unknown_topic_is_created_and_the_client_told_to_come_again(
    handlers: MetadataHandlers, context: Context, tell: Tell, zookeeper: Ensemble
) -> None:
    tell(handlers.metadata, {1: BOTH}, {})
    for _ in range(2):
        response = await handlers.describe(asks("new"), context(8))
        assert codes(response) == {"new": ErrorCode.LEADER_NOT_AVAILABLE}
    assert len(zookeeper.names("/brokers/topics")) == 1


@pytest.mark.parametrize(
    ("auto_create", "version", "may_create", "error"),
    [
        pytest.param(True, 4, False, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="the client does not want it created"),
        pytest.param(True, 3, False, ErrorCode.LEADER_NOT_AVAILABLE, id="which it could not say before version 4"),
        pytest.param(False, 8, True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="the broker does not create topics"),
    ],
)
async def test_who_decides_about_creation(
    handlers: MetadataHandlers,
    context: Context,
    tell: Tell,
    auto_create: bool,
    version: int,
    may_create: bool,
    error: ErrorCode,
) -> None:
    tell(handlers.metadata, {1: BOTH}, {})
    handlers.config = BrokerConfig({**handlers.config.values, "auto.create.topics.enable": auto_create})
    request = MetadataRequest.decode(asks("new", create=may_create).encode(version=version), version=version)
    assert codes(await handlers.describe(request, context(version))) == {"new": error}


async def test_an_invalid_name_is_not_created(
    handlers: MetadataHandlers, context: Context, tell: Tell, zookeeper: Ensemble
) -> None:
    tell(handlers.metadata, {1: BOTH}, {})
    assert codes(await handlers.describe(asks("a b"), context(8))) == {"a b": ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert zookeeper.names("/brokers/topics") == []


async def test_the_first_question_for_a_coordinator_creates_the_offsets_topic(
    handlers: MetadataHandlers, context: Context, tell: Tell, zookeeper: Ensemble
) -> None:
    tell(handlers.metadata, {1: BOTH, 2: BOTH, 3: BOTH}, {})
    response = await handlers.find_coordinator(FindCoordinatorRequest(key="g", key_type=0), context(2))
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert b'"cleanup.policy":"compact"' in zookeeper.data("/config/topics/__consumer_offsets")
    tell(handlers.metadata, {1: BOTH}, {"__consumer_offsets": {0: (9, [9]), 1: (1, [1])}})
    answers = {
        group: await handlers.find_coordinator(FindCoordinatorRequest(key=group, key_type=0), context(2))
        for group in ("a", "b")
    }
    assert (answers["a"].error_code, answers["a"].node_id, answers["a"].port) == (ErrorCode.NONE, 1, 9000)
    assert answers["b"].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE, "its leader is dead"
    answers["a"].encode(version=2)


async def test_several_coordinators_are_found_at_once_each_with_its_own_error(
    handlers: MetadataHandlers, context: Context, tell: Tell
) -> None:
    tell(handlers.metadata, {1: BOTH}, {"__consumer_offsets": {0: (9, [9]), 1: (1, [1])}})
    response = await handlers.find_coordinator(
        FindCoordinatorRequest(key_type=0, coordinator_keys=["a", "b"]), context(4)
    )
    assert [(each.key, each.error_code, each.node_id, each.port) for each in response.coordinators] == [
        ("a", ErrorCode.NONE, 1, 9000),
        ("b", ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, -1),
    ]
    response.encode(version=4)


async def test_version_0_can_only_ask_for_a_groups_coordinator(
    handlers: MetadataHandlers, context: Context, tell: Tell
) -> None:
    tell(handlers.metadata, {1: BOTH}, {"__consumer_offsets": {0: (1, [1]), 1: (1, [1])}})
    request = FindCoordinatorRequest.decode(FindCoordinatorRequest(key="g", key_type=1).encode(version=0), version=0)
    response = await handlers.find_coordinator(request, context(0))
    assert (response.error_code, response.node_id) == (ErrorCode.NONE, 1)


async def test_with_too_few_brokers_the_offsets_topic_is_not_created(
    handlers: MetadataHandlers, context: Context, tell: Tell, zookeeper: Ensemble
) -> None:
    tell(handlers.metadata, {1: BOTH, 2: BOTH}, {})
    response = await handlers.find_coordinator(FindCoordinatorRequest(key="g", key_type=0), context(2))
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert zookeeper.names("/brokers/topics") == []
    answer = await handlers.describe(asks("__consumer_offsets"), context(8))
    assert codes(answer) == {"__consumer_offsets": ErrorCode.INVALID_REPLICATION_FACTOR}


async def test_transactions_have_a_topic_of_their_own(
    handlers: MetadataHandlers, context: Context, tell: Tell, zookeeper: Ensemble
) -> None:
    tell(handlers.metadata, {1: BOTH, 2: BOTH, 3: BOTH}, {})
    request = FindCoordinatorRequest(key="a", key_type=1)
    assert (await handlers.find_coordinator(request, context(2))).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert b'"cleanup.policy":"compact"' in zookeeper.data("/config/topics/__transaction_state")
    tell(handlers.metadata, {1: BOTH}, {"__transaction_state": {0: (9, [9]), 1: (1, [1])}})
    response = await handlers.find_coordinator(request, context(2))
    assert (response.error_code, response.node_id) == (ErrorCode.NONE, 1)


async def test_a_kind_of_key_that_does_not_exist(handlers: MetadataHandlers, context: Context) -> None:
    response = await handlers.find_coordinator(FindCoordinatorRequest(key="x", key_type=7), context(2))
    assert response.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("name", "error"),
    [
        pytest.param("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="that could exist"),
        pytest.param("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION, id="that never can"),
        pytest.param("", ErrorCode.INVALID_TOPIC_EXCEPTION, id="without a name"),
    ],
)
async def test_an_unknown_topic(handlers: MetadataHandlers, context: Context, name: str, error: ErrorCode) -> None:
    assert codes(await handlers.describe(asks(name, create=False), context(8))) == {name: error}


# --- DescribeCluster ---


@pytest.mark.parametrize("version", [0, 1])
async def test_a_cluster_is_described_as_its_metadata_has_it(
    handlers: MetadataHandlers, context: Context, tell: Tell, version: int
) -> None:
    tell(handlers.metadata, {1: BOTH, 2: BOTH, 3: ("REPL",)}, {})
    response = await handlers.describe_cluster(
        DescribeClusterRequest(include_cluster_authorized_operations=False), context(version)
    )
    assert [(broker.broker_id, broker.host, broker.port) for broker in response.brokers] == [
        (1, "h1", 9000),
        (2, "h2", 9000),
    ]
    assert (response.error_code, response.cluster_id, response.controller_id) == (0, "cluster", 2)
    assert bytes(response.encode(version=version))[-5:] == (-(2**31)).to_bytes(4, signed=True) + b"\0"


async def test_whoever_asks_may_do_everything_with_a_cluster(handlers: MetadataHandlers, context: Context) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = await handlers.describe_cluster(request, context(1))
    assert bytes(response.encode(version=1))[-5:] == (8096).to_bytes(4) + b"\0"


@pytest.mark.parametrize(("endpoint_type", "error"), [(2, 114), (7, 115)], ids=["controllers", "an unknown type"])
async def test_only_brokers_are_described(
    handlers: MetadataHandlers, context: Context, endpoint_type: int, error: int
) -> None:
    response = await handlers.describe_cluster(DescribeClusterRequest(endpoint_type=endpoint_type), context(1))
    assert (response.error_code, response.brokers) == (error, [])
    response.encode(version=1)

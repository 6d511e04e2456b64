import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.broker.administration.config_entries import ConfigView
from harness.broker.administration.topic_configs import BrokerLayers
from harness.broker.administration.topic_creation import TopicCreator
from harness.broker.controller.errors import BrokerNotAvailableError, ControllerMovedError, StaleBrokerEpochError
from harness.broker.handlers.admin import AdminHandlers
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import ControlledShutdownRequest, CreateTopicsRequest, CreateTopicsResponse
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.simulation.zookeeper.ensemble import Ensemble
from tests.broker.sessions import simulated

Context = Callable[..., RequestContext]
Tell = Callable[..., None]
BOTH = ("PLAINTEXT", "REPL")


@dataclass
class FakeController:
    is_active: bool = True
    error: Exception | None = None
    requests: list[tuple[int, int]] = field(default_factory=list)

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> list[tuple[str, int]]:
        self.requests.append((broker_id, broker_epoch))
        if self.error is not None:
            raise self.error
        return [("t", 3)]


@pytest.fixture
def handlers(creator: TopicCreator, tell: Tell) -> AdminHandlers:
    tell(creator.metadata, {1: BOTH, 2: BOTH}, {})
    view = ConfigView(config=creator.config, layers=BrokerLayers())
    return AdminHandlers(FakeController(), creator, view.topic)


def asks(*names: str, timeout_ms: int = 1000, validate_only: bool = False, **fields: Any) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic
    values: dict[str, Any] = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []} | fields
    return CreateTopicsRequest(
        topics=[topic(name=name, **values) for name in names], timeout_ms=timeout_ms, validate_only=validate_only
    )


async def create(handlers: AdminHandlers, context: Context, request: CreateTopicsRequest) -> dict[str, int]:
    response = await handlers.create_topics(request, context(4))
    response.encode(version=4)
    return {topic.name: topic.error_code for topic in response.topics}


async def test_only_the_controller_creates(handlers: AdminHandlers, context: Context, zookeeper: Ensemble) -> None:
    handlers.controller = FakeController(is_active=False)
    assert await create(handlers, context, asks("a", "b")) == {
        "a": ErrorCode.NOT_CONTROLLER,
        "b": ErrorCode.NOT_CONTROLLER,
    }
    assert zookeeper.names("/brokers/topics") == []


async def test_the_answer_waits_for_the_leaders(handlers: AdminHandlers, context: Context, tell: Tell) -> None:
    asking = asyncio.create_task(create(handlers, context, asks("t", num_partitions=2)))
    for partitions in ({0: (1, [1])}, {1: (-1, [2])}):
        for _ in range(10):
            await asyncio.sleep(0)
        tell(handlers.creator.metadata, {1: BOTH, 2: BOTH}, {"t": partitions})
        handlers.creator.metadata_changed(["t"])
    for _ in range(10):
        await asyncio.sleep(0)
    assert not asking.done()
    tell(handlers.creator.metadata, {1: BOTH, 2: BOTH}, {"t": {1: (2, [2])}})
    handlers.creator.metadata_changed(["t"])
    assert await asking == {"t": ErrorCode.NONE}


@pytest.mark.parametrize("timeout_ms", [0, 1])
async def test_a_topic_without_leaders_in_time_is_timed_out_and_exists(
    handlers: AdminHandlers, context: Context, zookeeper: Ensemble, timeout_ms: int
) -> None:
    assert await create(handlers, context, asks("t", timeout_ms=timeout_ms)) == {"t": ErrorCode.REQUEST_TIMED_OUT}
    assert zookeeper.names("/brokers/topics") == ["t"]


async def test_validation_alone_creates_nothing_and_does_not_wait(
    handlers: AdminHandlers, context: Context, zookeeper: Ensemble
) -> None:
    answer = await create(handlers, context, asks("t", "a b", validate_only=True))
    assert answer == {"t": ErrorCode.NONE, "a b": ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert zookeeper.names("/brokers/topics") == []


async def test_the_answer_says_what_the_topic_is_like(handlers: AdminHandlers, context: Context) -> None:
    """KIP-525."""
    config = CreateTopicsRequest.CreatableTopic.CreatableTopicConfig(name="retention.ms", value="5")
    request = asks("t", num_partitions=-1, replication_factor=2, configs=[config], validate_only=True)
    request.topics += asks("a b").topics
    response = await handlers.create_topics(request, context(5))
    made, refused = CreateTopicsResponse.decode(response.encode(version=5), version=5).topics
    assert (made.error_code, made.num_partitions, made.replication_factor) == (ErrorCode.NONE, 3, 2)
    lines = {line.name: (line.value, line.config_source) for line in made.configs}
    assert (lines["retention.ms"], lines["segment.bytes"]) == (("5", 1), ("1073741824", 5))
    assert (refused.num_partitions, refused.replication_factor, refused.configs) == (-1, -1, [])


async def test_a_topic_named_twice_is_not_created(
    handlers: AdminHandlers, context: Context, zookeeper: Ensemble
) -> None:
    response = await handlers.create_topics(asks("t", "t"), context(5))
    assert [(each.name, each.error_code) for each in response.topics] == [("t", ErrorCode.INVALID_REQUEST)] * 2
    assert zookeeper.names("/brokers/topics") == []


async def test_a_property_without_a_value_refuses_a_topic_whatever_follows(
    handlers: AdminHandlers, context: Context
) -> None:
    config = CreateTopicsRequest.CreatableTopic.CreatableTopicConfig
    configs = [config(name="retention.ms", value=value) for value in (None, "5")]
    assert await create(handlers, context, asks("t", configs=configs)) == {"t": ErrorCode.INVALID_CONFIG}


async def test_a_topic_that_zookeeper_has_exists_even_when_metadata_does_not_know(
    handlers: AdminHandlers, context: Context, zookeeper: Ensemble
) -> None:
    zookeeper.put("/brokers/topics/t", b"{}")
    assert await create(handlers, context, asks("t")) == {"t": ErrorCode.TOPIC_ALREADY_EXISTS}


async def test_a_placement_by_hand_is_written_as_given(
    handlers: AdminHandlers, context: Context, zookeeper: Ensemble
) -> None:
    placed = CreateTopicsRequest.CreatableTopic.CreatableReplicaAssignment
    config = CreateTopicsRequest.CreatableTopic.CreatableTopicConfig
    request = asks(
        "t",
        timeout_ms=0,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[placed(partition_index=1, broker_ids=[2, 9]), placed(partition_index=0, broker_ids=[9, 2])],
        configs=[config(name="min.insync.replicas", value="2")],
    )
    assert await create(handlers, context, request) == {"t": ErrorCode.REQUEST_TIMED_OUT}
    assert b'"partitions":{"0":[9,2],"1":[2,9]}' in zookeeper.data("/brokers/topics/t")
    assert b'{"min.insync.replicas":"2"}' in zookeeper.data("/config/topics/t")


async def test_a_lost_session_refuses_without_a_crash(
    handlers: AdminHandlers, context: Context, session: ZooKeeperSession
) -> None:
    simulated(session.current).expire()
    assert await create(handlers, context, asks("t")) == {"t": ErrorCode.UNKNOWN_SERVER_ERROR}


async def test_a_broker_that_stops_hears_what_it_still_leads(handlers: AdminHandlers, context: Context) -> None:
    response: Any = await handlers.controlled_shutdown(
        ControlledShutdownRequest(broker_id=2, broker_epoch=77), context(3)
    )
    assert isinstance(handlers.controller, FakeController)
    assert handlers.controller.requests == [(2, 77)]
    assert response.error_code == ErrorCode.NONE
    assert [(p.topic_name, p.partition_index) for p in response.remaining_partitions] == [("t", 3)]
    response.encode(version=3)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(ControllerMovedError(), ErrorCode.STALE_CONTROLLER_EPOCH, id="another broker is controller"),
        pytest.param(StaleBrokerEpochError(), ErrorCode.STALE_BROKER_EPOCH, id="an earlier life of the broker asks"),
        pytest.param(BrokerNotAvailableError(), ErrorCode.BROKER_NOT_AVAILABLE, id="the broker is not alive"),
    ],
)
async def test_a_refused_controlled_shutdown_has_its_code(
    handlers: AdminHandlers, context: Context, error: Exception, code: ErrorCode
) -> None:
    handlers.controller = FakeController(error=error)
    response: Any = await handlers.controlled_shutdown(
        ControlledShutdownRequest(broker_id=2, broker_epoch=1), context(3)
    )
    assert response.error_code == code

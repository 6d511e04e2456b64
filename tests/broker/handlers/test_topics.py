import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from harness.broker.administration.topic_changes import TopicChanges
from harness.broker.administration.topic_creation import TopicCreator
from harness.broker.configs.config import BrokerConfig, parse_config
from harness.broker.handlers.topics import TopicHandlers
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import CreatePartitionsRequest, DeleteTopicsRequest
from harness.broker.zookeeper.registration import ensure_persistent_paths
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.znodes import TopicAssignment
from harness.simulation.zookeeper.ensemble import Ensemble
from tests.broker.sessions import simulated

Context = Callable[..., RequestContext]
Tell = Callable[..., None]
BOTH = ("PLAINTEXT", "REPL")
BROKERS = {1: BOTH, 2: BOTH}
Wanted = CreatePartitionsRequest.CreatePartitionsTopic


@dataclass
class FakeController:
    is_active: bool = True
    deleting: set[str] = field(default_factory=set)

    def is_deleting(self, topic: str) -> bool:
        return topic in self.deleting


@pytest.fixture
async def handlers(
    config: BrokerConfig, creator: TopicCreator, session: ZooKeeperSession, zookeeper: Ensemble, tell: Tell
) -> TopicHandlers:
    await ensure_persistent_paths(session.current)
    tell(creator.metadata, BROKERS, {"t": {0: (1, [1, 2])}})
    zookeeper.put("/brokers/topics/t", TopicAssignment(partitions={0: (1, 2)}, topic_id="id").encode())
    return TopicHandlers(config, FakeController(), TopicChanges(creator.metadata, session), creator)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def delete(
    handlers: TopicHandlers, context: Context, *names: str, version: int = 3, timeout_ms: int = 1000
) -> dict[str | None, int]:
    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)
    response = await handlers.delete_topics(request, context(version))
    response.encode(version=version)
    return {result.name: result.error_code for result in response.responses}


async def grow(
    handlers: TopicHandlers, context: Context, *topics: Wanted, timeout_ms: int = 0, validate_only: bool = False
) -> dict[str, int]:
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)
    response = await handlers.create_partitions(request, context(1))
    response.encode(version=1)
    return {result.name: result.error_code for result in response.results}


def partitions(zookeeper: Ensemble) -> dict[int, tuple[int, ...]]:
    return dict(TopicAssignment.decode("t", zookeeper.data("/brokers/topics/t")).partitions)


async def test_deletion_is_answered_when_the_broker_has_forgotten_the_topic(
    handlers: TopicHandlers, context: Context, zookeeper: Ensemble, tell: Tell
) -> None:
    asking = asyncio.create_task(delete(handlers, context, "t", "unknown"))
    await settle()
    assert zookeeper.names("/admin/delete_topics") == ["t"]
    assert not asking.done()
    tell(handlers.creator.metadata, BROKERS, {"t": {0: (-2, [])}})
    handlers.creator.metadata_changed(["t"])
    assert await asking == {"t": ErrorCode.NONE, "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize("timeout_ms", [0, 1])
async def test_a_topic_that_is_not_forgotten_in_time_is_timed_out_and_goes_all_the_same(
    handlers: TopicHandlers, context: Context, zookeeper: Ensemble, timeout_ms: int
) -> None:
    for _ in range(2):
        assert await delete(handlers, context, "t", timeout_ms=timeout_ms) == {"t": ErrorCode.REQUEST_TIMED_OUT}
        assert zookeeper.names("/admin/delete_topics") == ["t"]


@pytest.mark.parametrize(("version", "error"), [(3, ErrorCode.TOPIC_DELETION_DISABLED), (2, ErrorCode.INVALID_REQUEST)])
async def test_deletion_that_is_switched_off_is_refused(
    handlers: TopicHandlers, context: Context, config: BrokerConfig, zookeeper: Ensemble, version: int, error: ErrorCode
) -> None:
    properties = {"broker.id": "1", "listeners": "PLAINTEXT://h:2", "log.dir": "/d", "zookeeper.connect": "z"}
    handlers.config = parse_config(properties | {"delete.topic.enable": "false"})
    assert await delete(handlers, context, "t", version=version) == {"t": error}
    assert zookeeper.names("/admin/delete_topics") == []


async def test_only_the_controller_changes_topics(handlers: TopicHandlers, context: Context) -> None:
    handlers.controller = FakeController(is_active=False)
    assert await delete(handlers, context, "t") == {"t": ErrorCode.NOT_CONTROLLER}
    assert await grow(handlers, context, Wanted(name="t", count=2, assignments=None)) == {"t": ErrorCode.NOT_CONTROLLER}


async def test_added_partitions_are_answered_when_they_have_leaders(
    handlers: TopicHandlers, context: Context, zookeeper: Ensemble, tell: Tell
) -> None:
    wanted = Wanted(name="t", count=2, assignments=[Wanted.CreatePartitionsAssignment(broker_ids=[2, 1])])
    asking = asyncio.create_task(grow(handlers, context, wanted, timeout_ms=1000))
    await settle()
    assert partitions(zookeeper) == {0: (1, 2), 1: (2, 1)}
    assert b'"topic_id":"id"' in zookeeper.data("/brokers/topics/t")
    assert not asking.done()
    tell(handlers.creator.metadata, BROKERS, {"t": {0: (1, [1, 2]), 1: (2, [2, 1])}})
    handlers.creator.metadata_changed(["t"])
    assert await asking == {"t": ErrorCode.NONE}


async def test_partitions_are_not_added_over_a_reassignment_that_begins_meanwhile(
    handlers: TopicHandlers, context: Context, zookeeper: Ensemble
) -> None:
    moving = TopicAssignment(partitions={0: (3, 1, 2)}, topic_id="id", adding={0: (3,)}, removing={0: (1, 2)})
    zookeeper.before_write = lambda _: zookeeper.put("/brokers/topics/t", moving.encode())
    answer = await grow(handlers, context, Wanted(name="t", count=2, assignments=None))
    assert answer == {"t": ErrorCode.REASSIGNMENT_IN_PROGRESS}
    assert TopicAssignment.decode("t", zookeeper.data("/brokers/topics/t")) == moving


async def test_partitions_are_placed_where_nobody_says_where(
    handlers: TopicHandlers, context: Context, zookeeper: Ensemble
) -> None:
    answer = await grow(handlers, context, Wanted(name="t", count=3, assignments=None))
    assert answer == {"t": ErrorCode.REQUEST_TIMED_OUT}
    assert partitions(zookeeper) == {0: (1, 2), 1: (2, 1), 2: (1, 2)}


@pytest.mark.parametrize(
    ("names", "deleting", "error"),
    [
        pytest.param(["t", "t"], set(), ErrorCode.INVALID_REQUEST, id="named twice"),
        pytest.param(["t"], {"t"}, ErrorCode.INVALID_TOPIC_EXCEPTION, id="on its way out"),
        pytest.param(["x"], set(), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="unknown"),
    ],
)
async def test_a_topic_that_may_not_grow(
    handlers: TopicHandlers, context: Context, names: list[str], deleting: set[str], error: ErrorCode
) -> None:
    handlers.controller = FakeController(deleting=deleting)
    topics = [Wanted(name=name, count=2, assignments=None) for name in names]
    assert await grow(handlers, context, *topics) == {names[0]: error}


async def test_a_topic_that_is_being_reassigned_may_not_grow(
    handlers: TopicHandlers, context: Context, zookeeper: Ensemble
) -> None:
    moving = TopicAssignment(partitions={0: (1, 2)}, adding={0: (2,)}, removing={})
    zookeeper.put("/brokers/topics/t", moving.encode())
    answer = await grow(handlers, context, Wanted(name="t", count=2, assignments=None))
    assert answer == {"t": ErrorCode.REASSIGNMENT_IN_PROGRESS}


async def test_validation_alone_writes_nothing(handlers: TopicHandlers, context: Context, zookeeper: Ensemble) -> None:
    wanted = Wanted(name="t", count=2, assignments=None)
    assert await grow(handlers, context, wanted, validate_only=True) == {"t": ErrorCode.NONE}
    assert partitions(zookeeper) == {0: (1, 2)}


async def test_a_lost_session_refuses_without_a_crash(
    handlers: TopicHandlers, context: Context, session: ZooKeeperSession
) -> None:
    simulated(session.current).expire()
    assert await delete(handlers, context, "t") == {"t": ErrorCode.UNKNOWN_SERVER_ERROR}
    wanted = Wanted(name="t", count=2, assignments=None)
    assert await grow(handlers, context, wanted) == {"t": ErrorCode.UNKNOWN_SERVER_ERROR}

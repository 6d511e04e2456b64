import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from harness.broker.administration.config_changes import ConfigChanges, Operation, Resource
from harness.broker.administration.topic_configs import TopicConfigs
from harness.broker.configs.config import parse_config
from harness.broker.configs.topic_properties import parse_topic_config
from harness.broker.handlers.configs import ConfigHandlers
from harness.broker.metadata_cache import MetadataCache
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import AlterConfigsRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest
from harness.broker.zookeeper.registration import ensure_persistent_paths
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.znodes import decode_config, encode_config
from harness.simulation.zookeeper.ensemble import Ensemble
from tests.broker.sessions import simulated

Context = Callable[..., RequestContext]
TOPIC, BROKER = Resource.TOPIC, Resource.BROKER
SET, DELETE, APPEND, SUBTRACT = Operation.SET, Operation.DELETE, Operation.APPEND, Operation.SUBTRACT
CONFIG = parse_config(
    {
        "broker.id": "1",
        "listeners": "PLAINTEXT://h:2",
        "log.dir": "/d",
        "zookeeper.connect": "z",
        "min.insync.replicas": "2",
    }
)

Described = dict[str, tuple[str | None, int, bool, list[tuple[str, str | None, int]]]]


@pytest.fixture
async def handlers(
    session: ZooKeeperSession, zookeeper: Ensemble, tell: Callable[..., None]
) -> AsyncIterator[ConfigHandlers]:
    await ensure_persistent_paths(session.current)
    zookeeper.put("/config/topics/t", encode_config({"retention.ms": "5"}))
    zookeeper.put("/brokers/topics/t", b"{}")
    metadata = MetadataCache()
    tell(metadata, {1: ("REPL",)}, {"t": {0: (1, [1])}})
    configs = TopicConfigs(CONFIG, session)
    await configs.start()
    yield ConfigHandlers(ConfigChanges(CONFIG, metadata, configs, session))
    await configs.stop()


async def alter(
    handlers: ConfigHandlers, context: Context, kind: int, name: str, settings: Mapping[str, str | None], **more: Any
) -> int:
    resource = AlterConfigsRequest.AlterConfigsResource
    configs = [resource.AlterableConfig(name=key, value=value) for key, value in settings.items()]
    changed = resource(resource_type=kind, resource_name=name, configs=configs)
    request = AlterConfigsRequest(resources=[changed], validate_only=False, **more)
    response = await handlers.alter(request, context(1))
    response.encode(version=1)
    return response.responses[0].error_code


async def amend(
    handlers: ConfigHandlers, context: Context, kind: int, name: str, *steps: tuple[str, int, str | None]
) -> int:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [resource.AlterableConfig(name=key, config_operation=done, value=value) for key, done, value in steps]
    changed = resource(resource_type=kind, resource_name=name, configs=configs)
    response = await handlers.incremental_alter(
        IncrementalAlterConfigsRequest(resources=[changed], validate_only=False), context(0)
    )
    response.encode(version=0)
    return response.responses[0].error_code


async def describe(
    handlers: ConfigHandlers, context: Context, kind: int, name: str, *names: str
) -> tuple[int, Described]:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    described = resource(resource_type=kind, resource_name=name, configuration_keys=list(names) or None)
    response = await handlers.describe(DescribeConfigsRequest(resources=[described], include_synonyms=True), context(3))
    response.encode(version=3)
    (result,) = response.results
    return result.error_code, {
        line.name: (
            line.value,
            line.config_source,
            line.read_only,
            [(s.name, s.value, s.source) for s in line.synonyms],
        )
        for line in result.configs
    }


def stored(zookeeper: Ensemble, path: str = "/config/topics/t") -> dict[str, str]:
    return decode_config(path, zookeeper.data(path))


async def test_a_whole_configuration_is_replaced_and_every_broker_is_notified(
    handlers: ConfigHandlers, context: Context, zookeeper: Ensemble
) -> None:
    assert await alter(handlers, context, TOPIC, "t", {"min.insync.replicas": "1"}) == ErrorCode.NONE
    assert stored(zookeeper) == {"min.insync.replicas": "1"}
    (name,) = zookeeper.names("/config/changes")
    assert name == "config_change_0000000000"
    assert zookeeper.data(f"/config/changes/{name}") == b'{"version":2,"entity_path":"topics/t"}'


@pytest.mark.parametrize(
    ("kind", "name", "settings", "error"),
    [
        pytest.param(TOPIC, "t", {"retention.m": "1"}, ErrorCode.INVALID_CONFIG, id="a property that is unknown"),
        pytest.param(TOPIC, "t", {"retention.ms": "x"}, ErrorCode.INVALID_CONFIG, id="a number that is none"),
        pytest.param(TOPIC, "t", {"segment.bytes": "1"}, ErrorCode.INVALID_CONFIG, id="a number out of bounds"),
        pytest.param(TOPIC, "t", {"retention.ms": None}, ErrorCode.INVALID_REQUEST, id="no value"),
        pytest.param(TOPIC, "x", {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="a topic that is unknown"),
        pytest.param(TOPIC, "", {}, ErrorCode.INVALID_REQUEST, id="a topic without a name"),
        pytest.param(BROKER, "7", {}, ErrorCode.INVALID_REQUEST, id="another broker"),
        pytest.param(BROKER, "x", {}, ErrorCode.INVALID_REQUEST, id="a broker that is no number"),
        pytest.param(BROKER, "1", {"broker.rack": "r"}, ErrorCode.INVALID_REQUEST, id="only in the properties file"),
        pytest.param(BROKER, "1", {"no.such": "r"}, ErrorCode.INVALID_REQUEST, id="an unknown broker property"),
        pytest.param(BROKER, "", {"log.retention.ms": "x"}, ErrorCode.INVALID_REQUEST, id="malformed for all brokers"),
        pytest.param(99, "t", {}, ErrorCode.INVALID_REQUEST, id="neither topic nor broker"),
    ],
)
async def test_what_may_not_be_set_is_refused_and_nothing_is_written(
    handlers: ConfigHandlers,
    context: Context,
    zookeeper: Ensemble,
    kind: int,
    name: str,
    settings: dict[str, str | None],
    error: ErrorCode,
) -> None:
    assert await alter(handlers, context, kind, name, settings) == error
    assert stored(zookeeper) == {"retention.ms": "5"}
    assert zookeeper.names("/config/changes") == []


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        pytest.param([("segment.ms", SET, "9")], {"retention.ms": "5", "segment.ms": "9"}, id="set"),
        pytest.param([("retention.ms", DELETE, None)], {}, id="deleted"),
        pytest.param([("segment.ms", DELETE, None)], {"retention.ms": "5"}, id="deleted though not set"),
        pytest.param(
            [("cleanup.policy", APPEND, "compact")],
            {"cleanup.policy": "delete,compact", "retention.ms": "5"},
            id="appended to what is inherited",
        ),
        pytest.param(
            [("cleanup.policy", APPEND, "delete")],
            {"cleanup.policy": "delete", "retention.ms": "5"},
            id="there already",
        ),
    ],
)
async def test_single_properties_change_and_the_others_stay(
    handlers: ConfigHandlers,
    context: Context,
    zookeeper: Ensemble,
    steps: list[tuple[str, int, str | None]],
    left: dict[str, str],
) -> None:
    assert await amend(handlers, context, TOPIC, "t", *steps) == ErrorCode.NONE
    assert stored(zookeeper) == left


async def test_a_word_is_taken_out_of_a_list(handlers: ConfigHandlers, context: Context, zookeeper: Ensemble) -> None:
    assert await amend(handlers, context, TOPIC, "t", ("cleanup.policy", SET, "compact,delete")) == ErrorCode.NONE
    for word, left in (("delete", "compact"), ("compact", "")):
        assert await amend(handlers, context, TOPIC, "t", ("cleanup.policy", SUBTRACT, word)) == ErrorCode.NONE
        assert stored(zookeeper)["cleanup.policy"] == left


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        pytest.param([("retention.ms", APPEND, "5")], ErrorCode.INVALID_CONFIG, id="appended to no list"),
        pytest.param([("x", SUBTRACT, "5")], ErrorCode.INVALID_CONFIG, id="taken from nothing known"),
        pytest.param(
            [("retention.ms", SET, "5"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST, id="named twice"
        ),
        pytest.param([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST, id="no value"),
        pytest.param([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST, id="an unknown operation"),
        pytest.param([("x", SET, "1")], ErrorCode.INVALID_CONFIG, id="an unknown property"),
    ],
)
async def test_a_change_that_cannot_be_is_refused(
    handlers: ConfigHandlers,
    context: Context,
    zookeeper: Ensemble,
    steps: list[tuple[str, int, str | None]],
    error: ErrorCode,
) -> None:
    assert await amend(handlers, context, TOPIC, "t", *steps) == error
    assert stored(zookeeper) == {"retention.ms": "5"}


async def test_a_value_is_told_with_all_that_would_hold_without_it(handlers: ConfigHandlers, context: Context) -> None:
    """As real Kafka 3.9 answered."""
    assert await amend(handlers, context, BROKER, "1", ("log.retention.ms", SET, "77")) == ErrorCode.NONE
    assert await amend(handlers, context, BROKER, "", ("log.segment.bytes", SET, "1000000")) == ErrorCode.NONE
    configs = handlers.changes.configs
    for _ in range(100):
        if configs.of("t")["segment.bytes"] == 1_000_000:
            break
        await asyncio.sleep(0)
    error, lines = await describe(
        handlers, context, TOPIC, "t", "retention.ms", "segment.bytes", "min.insync.replicas", "cleanup.policy"
    )
    assert error == ErrorCode.NONE
    assert lines == {
        "cleanup.policy": ("delete", 5, False, [("log.cleanup.policy", "delete", 5)]),
        "min.insync.replicas": ("2", 4, False, [("min.insync.replicas", "2", 4), ("min.insync.replicas", "1", 5)]),
        "retention.ms": (
            "5",
            1,
            False,
            [("retention.ms", "5", 1), ("log.retention.ms", "77", 2), ("log.retention.hours", "168", 5)],
        ),
        "segment.bytes": (
            "1000000",
            3,
            False,
            [("log.segment.bytes", "1000000", 3), ("log.segment.bytes", "1073741824", 5)],
        ),
    }
    assert await describe(handlers, context, BROKER, "") == (
        ErrorCode.NONE,
        {"log.segment.bytes": ("1000000", 3, False, [("log.segment.bytes", "1000000", 3)])},
    )
    _, broker = await describe(handlers, context, BROKER, "1", "log.retention.ms", "broker.id", "log.roll.ms")
    assert broker["log.retention.ms"][:3] == ("77", 2, False)
    assert broker["broker.id"][:3] == ("1", 4, True)
    assert broker["log.roll.ms"][:2] == (None, 5)


async def test_what_a_topic_has_is_told_as_it_may_be_written(handlers: ConfigHandlers, context: Context) -> None:
    """Inherited or not: a flag is true or false, a list has commas; the topic's own parser takes what was told."""
    _, lines = await describe(handlers, context, TOPIC, "t")
    texts = {name: value for name, (value, *_) in lines.items() if value is not None}
    assert (texts["unclean.leader.election.enable"], texts["preallocate"]) == ("false", "false")
    of_t = handlers.changes.configs.of("t")
    read = parse_topic_config(texts)
    assert {name: read[name] for name in texts} == {name: of_t[name] for name in texts}
    _, broker = await describe(handlers, context, BROKER, "1", "auto.create.topics.enable", "log.cleaner.enable")
    assert [value for value, *_ in broker.values()] == ["true", "true"]


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        pytest.param(TOPIC, "x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="a topic that is unknown"),
        pytest.param(TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION, id="a name that no topic can have"),
        pytest.param(BROKER, "7", ErrorCode.INVALID_REQUEST, id="another broker"),
        pytest.param(99, "t", ErrorCode.INVALID_REQUEST, id="neither topic nor broker"),
    ],
)
async def test_what_cannot_be_described(
    handlers: ConfigHandlers, context: Context, kind: int, name: str, error: ErrorCode
) -> None:
    assert await describe(handlers, context, kind, name) == (error, {})


async def test_a_topic_that_is_deleted_is_refused_although_metadata_still_knows_it(
    handlers: ConfigHandlers, context: Context, zookeeper: Ensemble
) -> None:
    zookeeper.remove("/brokers/topics/t")
    zookeeper.remove("/config/topics/t")
    assert await alter(handlers, context, TOPIC, "t", {}) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await amend(handlers, context, TOPIC, "t") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert zookeeper.names("/config/topics") == []


async def test_a_lost_session_refuses_without_a_crash(
    handlers: ConfigHandlers, context: Context, session: ZooKeeperSession
) -> None:
    simulated(session.current).expire()
    assert await alter(handlers, context, TOPIC, "t", {}) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert await amend(handlers, context, TOPIC, "t") == ErrorCode.UNKNOWN_SERVER_ERROR
    assert await describe(handlers, context, TOPIC, "t") == (ErrorCode.UNKNOWN_SERVER_ERROR, {})

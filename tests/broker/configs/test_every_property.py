"""Every property of Kafka 3.9 works, does not matter, or is refused by name; what works has a test of its effect."""

import ast
import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.broker.configs.config import PROPERTIES, parse_config
from harness.broker.configs.config_types import ConfigError, Property
from harness.broker.configs.refused import REFUSED, REFUSED_FAMILIES, refusal
from harness.broker.configs.topic_properties import TOPIC_PROPERTIES, TopicProperty, parse_topic_config
from tests.broker.configs.effects import OF_BROKERS, OF_TOPICS
from tests.broker.configs.server_properties import ORDINARY, PRODUCTION, UNUSABLE
from tests.broker.whole_cluster import WholeCluster

ROOT = Path(__file__).parents[3]
KAFKA = json.loads((Path(__file__).parent / "kafka-3.9.json").read_text())
"""What a broker of Kafka 3.9.1 answers to DescribeConfigs, for itself and for a topic."""
OURS = {
    "log.initial.task.delay.ms",
    "producer.id.expiration.check.interval.ms",
    "prometheus.host",
    "prometheus.port",
    "replication.profile",
    "selector.profile",
}
"""Two are Kafka's that DescribeConfigs does not show, four are this broker's own."""
AT_HOME = {"inter.broker.protocol.version", "zookeeper.connection.timeout.ms", "listeners"}
"""Their default is another one here."""


def working(properties: Iterable[Property | TopicProperty]) -> set[str]:
    return {prop.name for prop in properties if not prop.idle}


def test_every_property_that_works_names_the_test_that_shows_it() -> None:
    assert working(PROPERTIES) == OF_BROKERS.keys()
    assert working(TOPIC_PROPERTIES) == OF_TOPICS.keys()


@pytest.mark.parametrize(("name", "test"), sorted({*OF_BROKERS.items(), *OF_TOPICS.items()}))
def test_the_test_exists_and_names_the_property_itself(name: str, test: str) -> None:
    module, _, function = test.partition("::")
    text = (ROOT / module).read_text()
    (node,) = (
        each
        for each in ast.parse(text).body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == function
    )
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    of_its_own = "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    assert re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])|(?<![a-z]){name.replace('.', '_')}(?![a-z])", of_its_own)


@pytest.mark.parametrize(
    "prop", [*PROPERTIES, *TOPIC_PROPERTIES], ids=lambda prop: f"{type(prop).__name__} {prop.name}"
)
def test_nothing_is_both_accepted_and_refused(prop: Property | TopicProperty) -> None:
    assert prop.name not in REFUSED
    assert bool(prop.idle) or refusal(prop.name) is None


@pytest.mark.parametrize("kind", ["broker", "topic"])
def test_every_property_of_kafka_3_9_is_known(kind: str) -> None:
    ours = {prop.name for prop in (PROPERTIES if kind == "broker" else TOPIC_PROPERTIES)}
    kafkas = {row["name"] for row in KAFKA[kind]}
    unknown = {name for name in kafkas - ours if refusal(name) is None}
    assert unknown == set()
    assert ours - kafkas == (OURS if kind == "broker" else set())


def test_types_and_defaults_of_a_broker_are_kafkas() -> None:
    ours = {prop.name: prop for prop in PROPERTIES}
    for row in KAFKA["broker"]:
        if row["name"] in ours.keys() - AT_HOME:
            assert ours[row["name"]].parse.code == row["type"], row["name"]
            if row["default"] is not None:
                assert ours[row["name"]].default == row["default"], row["name"]


def test_every_default_is_accepted_when_it_is_written_out() -> None:
    config = parse_config(ORDINARY | {prop.name: prop.default for prop in PROPERTIES if prop.default})
    assert config["num.partitions"] == 1


@pytest.mark.parametrize("name", sorted({*REFUSED, *(f"{family}x" for family in REFUSED_FAMILIES)}))
def test_what_cannot_be_honoured_is_refused_by_name_with_what_to_do(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{re.escape(name)} is refused: .*(remove the line|set )"):
        parse_config(ORDINARY | {name: "x"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("leader.replication.throttled.replicas", "0:1"),
        ("follower.replication.throttled.replicas", "*"),
        ("preallocate", "true"),
        ("remote.storage.enable", "true"),
        ("compression.zstd.level", "19"),
    ],
)
def test_a_topic_gets_nothing_that_is_not_there(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"{re.escape(name)}=.*remove the line"):
        parse_topic_config({name: text})


def test_the_ordinary_file_of_the_release_is_taken_as_it_is() -> None:
    config = parse_config(ORDINARY)
    assert [(endpoint.name, endpoint.port) for endpoint in config.endpoints] == [("PLAINTEXT", 9092)]
    assert config.peer_endpoint.host == "127.0.0.1"  # the broker listens on no more than its file says
    assert (config.broker_id, config.log_dirs) == (0, ("/tmp/kafka-logs",))


async def test_the_ordinary_file_starts_a_broker() -> None:
    async with WholeCluster() as cluster:
        elsewhere = {"broker.id", "zookeeper.connect", "log.dirs"}
        broker = cluster.prepare(1, **{name: text for name, text in ORDINARY.items() if name not in elsewhere})
        cluster.brokers[1] = broker
        await broker.start()

        async def leads() -> bool:
            return await cluster.controller(1) == 1

        await cluster.until(leads, "a controller")
        assert await cluster.create("t", [1]) == 0


def test_a_file_of_production_names_each_line_that_cannot_be_honoured() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config(PRODUCTION | UNUSABLE)
    assert sorted(part.split("=")[0].split(" ")[0] for part in str(refused.value).split("; ")) == sorted(UNUSABLE)
    assert parse_config(PRODUCTION)["min.insync.replicas"] == 2

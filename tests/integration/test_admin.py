"""A third-party admin client, against a cluster as `chaos cluster up` starts it."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
)

pytestmark = pytest.mark.cluster

DELAY_MS = 500
TIMEOUT_S = 120


def chaos(*arguments: str) -> str:
    """Run `chaos cluster …` and return what it prints."""
    command = [sys.executable, "-m", "harness", "cluster", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A cluster that removes deleted logs soon."""
    folder = str(tmp_path_factory.mktemp("cluster") / "c")
    chaos("up", "--dir", folder, "--property", f"log.segment.delete.delay.ms={DELAY_MS}")
    try:
        yield json.loads(chaos("status", "--dir", folder, "--json"))
    finally:
        chaos("down", "--dir", folder)


@pytest.fixture
def admin(cluster: dict[str, Any]) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster["bootstrap_servers"]})


def until(seen: Callable[[], bool]) -> None:
    """Wait until something outside has become true."""
    deadline = time.monotonic() + TIMEOUT_S
    while not seen():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.05)


def setting(admin: AdminClient, resource: ConfigResource, name: str) -> tuple[str, int]:
    entries = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    return entries[name].value, entries[name].source


def code_of(answer: "Future[Any]") -> int:
    """Return the code with which something is refused."""
    with pytest.raises(KafkaException) as refused:
        answer.result(TIMEOUT_S)
    return int(refused.value.args[0].code())


def test_a_topic_is_created_grows_is_configured_and_deleted(cluster: dict[str, Any], admin: AdminClient) -> None:
    admin.create_topics([NewTopic("t", 2, 3, config={"segment.bytes": "100000"})])["t"].result(TIMEOUT_S)
    admin.create_partitions([NewPartitions("t", 4)])["t"].result(TIMEOUT_S)
    until(lambda: len(admin.list_topics("t", TIMEOUT_S).topics["t"].partitions) == 4)  # whichever broker is asked
    producer = Producer({"bootstrap.servers": cluster["bootstrap_servers"], "acks": "all"})
    for partition in range(4):
        producer.produce("t", b"x", partition=partition)
    assert producer.flush(TIMEOUT_S) == 0

    topic = ConfigResource(ConfigResource.Type.TOPIC, "t")
    assert setting(admin, topic, "segment.bytes") == ("100000", ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
    change = ConfigEntry("max.message.bytes", "100", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ConfigResource.Type.TOPIC, "t", incremental_configs=[change])
    admin.incremental_alter_configs([changed])[changed].result(TIMEOUT_S)
    assert setting(admin, topic, "max.message.bytes")[0] == "100"

    refused: list[KafkaError | None] = []

    def is_refused() -> bool:
        producer.produce("t", b"x" * 200, partition=0, on_delivery=lambda error, _: refused.append(error))
        producer.flush(TIMEOUT_S)
        error = refused[-1]
        return error is not None and error.code() == KafkaError.MSG_SIZE_TOO_LARGE

    until(is_refused)
    admin.delete_topics(["t"])["t"].result(TIMEOUT_S)
    data = [Path(broker["log_dir"]) for broker in cluster["brokers"]]
    until(lambda: not [path for folder in data for path in folder.glob("t-*")])


def test_what_is_wrong_is_refused_with_kafkas_code(admin: AdminClient) -> None:
    admin.create_topics([NewTopic("wrong", 1, 1)])["wrong"].result(TIMEOUT_S)
    unknown = ConfigResource(
        ConfigResource.Type.TOPIC,
        "wrong",
        incremental_configs=[ConfigEntry("retention.m", "1", incremental_operation=AlterConfigOpType.SET)],
    )
    assert code_of(admin.create_partitions([NewPartitions("wrong", 1)])["wrong"]) == KafkaError.INVALID_PARTITIONS
    assert code_of(admin.delete_topics(["nothing"])["nothing"]) == KafkaError.UNKNOWN_TOPIC_OR_PART
    # any broker is asked, and may not have heard of the topic yet
    until(lambda: code_of(admin.incremental_alter_configs([unknown])[unknown]) == KafkaError.INVALID_CONFIG)


def test_a_broker_is_configured_while_it_runs(admin: AdminClient) -> None:
    change = ConfigEntry("log.retention.ms", "12345", incremental_operation=AlterConfigOpType.SET)
    broker = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[change])
    admin.incremental_alter_configs([broker])[broker].result(TIMEOUT_S)
    expected = ("12345", ConfigSource.DYNAMIC_BROKER_CONFIG.value)
    until(lambda: setting(admin, ConfigResource(ConfigResource.Type.BROKER, "1"), "log.retention.ms") == expected)

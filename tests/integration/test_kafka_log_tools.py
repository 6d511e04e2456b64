"""Kafka's own tools for logs, against a cluster as `chaos cluster up` starts it."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.kafka_tools import dumps, kafka_tool, needs_kafka, payloads, takes_turns

pytestmark = [pytest.mark.cluster, needs_kafka, takes_turns]


@pytest.fixture
def topic(cluster: dict[str, Any]) -> str:
    """A fresh topic of one partition and small segments, with 300 records a second apart."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster["bootstrap_servers"]})
    config = {"segment.bytes": "2000", "retention.ms": "-1"}
    admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=3, config=config)])[name].result(120)
    producer = Producer({"bootstrap.servers": cluster["bootstrap_servers"], "acks": "all", "batch.num.messages": 10})
    for number in range(300):
        producer.produce(name, f"value-{number}", timestamp=1_000_000_000_000 + number * 1000)
    assert producer.flush(120) == 0
    return name


def offset(cluster: dict[str, Any], topic: str, time: str) -> str:
    """Return what GetOffsetShell says about partition 0."""
    servers = cluster["bootstrap_servers"]
    shell = "org.apache.kafka.tools.GetOffsetShell"
    return kafka_tool(shell, "--bootstrap-server", servers, "--topic", topic, "--time", time).strip()


def test_offsets_are_found_deleted_and_dumped(cluster: dict[str, Any], topic: str, tmp_path: Path) -> None:
    assert offset(cluster, topic, "latest") == f"{topic}:0:300"
    assert offset(cluster, topic, "1000000123000") == f"{topic}:0:123"
    assert offset(cluster, topic, "1000000122001") == f"{topic}:0:123"

    wanted = tmp_path / "delete.json"
    wanted.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": 150}], "version": 1}))
    servers = ["--bootstrap-server", cluster["bootstrap_servers"]]
    output = kafka_tool("org.apache.kafka.tools.DeleteRecordsCommand", *servers, "--offset-json-file", str(wanted))
    assert f"partition: {topic}-0\tlow_watermark: 150" in output
    assert offset(cluster, topic, "earliest") == f"{topic}:0:150"
    assert offset(cluster, topic, "1000000000000") == f"{topic}:0:150"

    described = kafka_tool("org.apache.kafka.tools.LogDirsCommand", *servers, "--describe", "--topic-list", topic)
    directories = json.loads(described.splitlines()[-1])["brokers"]
    assert len(directories) == 3
    for broker in directories:
        ((partition,),) = [directory["partitions"] for directory in broker["logDirs"]]
        assert (partition["partition"], partition["offsetLag"]) == (f"{topic}-0", 0)
        assert partition["size"] > 3_000

    # Segments before the log's start go when the broker looks at them next: only later ones are sure to be there.
    folders = [Path(broker["log_dir"], f"{topic}-0") for broker in cluster["brokers"]]
    segments = [file for folder in folders for file in sorted(folder.glob("*.log")) if int(file.stem) >= 150]
    dumped = dumps(segments)
    for folder in folders:
        of_broker = [file for file in segments if file.parent == folder]
        values = [value for file in of_broker for value in payloads(dumped[file])]
        assert values == [f"value-{number}" for number in range(int(of_broker[0].stem), 300)]

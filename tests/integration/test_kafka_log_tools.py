"""Kafka's own tools for logs, against a cluster as `chaos cluster up` starts it."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

KAFKA_LIBS = Path(os.environ.get("KAFKA_LIBS", Path(__file__).parents[2] / ".kafka-libs"))

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not any(KAFKA_LIBS.glob("kafka_2.13-*.jar")), reason="no jars of real Kafka: make kafka-libs"),
]


def run(command: list[str], timeout_s: float = 120) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=True).stdout


def tool(name: str, *arguments: str) -> str:
    """Run one of Kafka's tools and return what it prints."""
    return run(["java", "-Xmx128m", "-cp", f"{KAFKA_LIBS}/*", name, *arguments])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A cluster that stays, as `chaos cluster status --json` describes it."""
    chaos = [sys.executable, "-m", "harness", "cluster"]
    folder = str(tmp_path_factory.mktemp("cluster") / "c")
    run([*chaos, "up", "--dir", folder])
    try:
        yield json.loads(run([*chaos, "status", "--dir", folder, "--json"]))
    finally:
        run([*chaos, "down", "--dir", folder])


@pytest.fixture
def topic(cluster: dict[str, Any]) -> str:
    """A fresh topic of one partition and small segments, with 300 records a second apart."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster["bootstrap_servers"]})
    config = {"segment.bytes": "2000", "retention.ms": "-1"}
    admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=3, config=config)])[name].result(30)
    producer = Producer({"bootstrap.servers": cluster["bootstrap_servers"], "acks": "all", "batch.num.messages": 10})
    for number in range(300):
        producer.produce(name, f"value-{number}", timestamp=1_000_000_000_000 + number * 1000)
    assert producer.flush(30) == 0
    return name


def offset(cluster: dict[str, Any], topic: str, time: str) -> str:
    """Return what GetOffsetShell says about partition 0."""
    servers = cluster["bootstrap_servers"]
    shell = "org.apache.kafka.tools.GetOffsetShell"
    return tool(shell, "--bootstrap-server", servers, "--topic", topic, "--time", time).strip()


def test_offsets_are_found_deleted_and_dumped(cluster: dict[str, Any], topic: str, tmp_path: Path) -> None:
    assert offset(cluster, topic, "latest") == f"{topic}:0:300"
    assert offset(cluster, topic, "1000000123000") == f"{topic}:0:123"
    assert offset(cluster, topic, "1000000122001") == f"{topic}:0:123"

    wanted = tmp_path / "delete.json"
    wanted.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": 150}], "version": 1}))
    servers = ["--bootstrap-server", cluster["bootstrap_servers"]]
    said = tool("org.apache.kafka.tools.DeleteRecordsCommand", *servers, "--offset-json-file", str(wanted))
    assert f"partition: {topic}-0\tlow_watermark: 150" in said
    assert offset(cluster, topic, "earliest") == f"{topic}:0:150"
    assert offset(cluster, topic, "1000000000000") == f"{topic}:0:150"

    described = tool("org.apache.kafka.tools.LogDirsCommand", *servers, "--describe", "--topic-list", topic)
    directories = json.loads(described.splitlines()[-1])["brokers"]
    assert len(directories) == 3
    for broker in directories:
        ((partition,),) = [directory["partitions"] for directory in broker["logDirs"]]
        assert (partition["partition"], partition["offsetLag"]) == (f"{topic}-0", 0)
        assert partition["size"] > 3_000

    for broker in cluster["brokers"]:
        # Segments before the log's start go when the broker looks at them next: only later ones are sure to be there.
        files = sorted(Path(broker["log_dir"], f"{topic}-0").glob("*.log"))
        segments = [file for file in files if int(file.stem) >= 150]
        assert segments
        dumped = tool("kafka.tools.DumpLogSegments", "--print-data-log", "--files", ",".join(map(str, segments)))
        values = [line.rpartition("payload: ")[2] for line in dumped.splitlines() if "payload: " in line]
        assert values == [f"value-{number}" for number in range(int(segments[0].stem), 300)]

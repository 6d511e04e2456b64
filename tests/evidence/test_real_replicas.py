import asyncio
import json

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from harness.cluster.driver import ClusterRequest, ClusterStatus
from harness.cluster.processes.driver import ProcessDriver
from harness.evidence.replicas import dump_replicas
from harness.store.folder import RunFolder
from harness.store.history import ReplicaState, read_jsonl

pytestmark = pytest.mark.cluster

TOPIC = "written"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
VALUES = [f"{codec}-{number}" for codec in CODECS for number in range(100)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, ClusterStatus]:
    """A stopped cluster that an independent client wrote to before."""
    root = tmp_path_factory.mktemp("run")
    driver = ProcessDriver(root, "written")
    try:
        status = asyncio.run(driver.start(ClusterRequest(brokers=3, properties={})))
        write(status.bootstrap_servers)
    finally:
        asyncio.run(driver.stop())
    return RunFolder(root), status


def write(bootstrap_servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for created in admin.create_topics([NewTopic(TOPIC, num_partitions=1, replication_factor=3)]).values():
        created.result(120)
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", "compression.type": codec})
        for value in VALUES:
            if value.startswith(codec):
                producer.produce(TOPIC, key=b"k", value=value, partition=0)
        assert producer.flush(120) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "readers", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 42)], asynchronous=False)
    consumer.close()


def dumps(cluster: tuple[RunFolder, ClusterStatus]) -> list[ReplicaState]:
    folder, status = cluster
    return [state for broker in status.brokers for state in dump_replicas(folder, broker.broker_id, broker.log_dir)]


def test_every_replica_is_whole_and_holds_what_was_written_in_the_order_of_offsets(
    cluster: tuple[RunFolder, ClusterStatus],
) -> None:
    states = [state for state in dumps(cluster) if state.topic == TOPIC]
    assert [(state.broker, state.log_end_offset, state.damage) for state in states] == [
        (broker, len(VALUES), "") for broker in range(3)
    ]
    assert {state.leader_epochs[0] for state in states} == {(0, 0)}
    for broker in range(3):
        records = list(read_jsonl(cluster[0].replica_dump(broker, TOPIC, 0)))[1:]
        assert [record["offset"] for record in records] == list(range(len(VALUES)))
        assert [record["value"] for record in records] == VALUES


def test_the_committed_offset_can_be_read(cluster: tuple[RunFolder, ClusterStatus]) -> None:
    folder, _ = cluster
    committed = [
        (json.loads(record["key"]), json.loads(record["value"])["offset"])
        for state in dumps(cluster)
        if state.topic == "__consumer_offsets"
        for record in list(read_jsonl(folder.replica_dump(state.broker, state.topic, state.partition)))[1:]
    ]
    assert committed == [({"type": "offset", "group": "readers", "topic": TOPIC, "partition": 0}, 42)] * 3

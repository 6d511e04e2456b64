"""What real brokers show to Prometheus, against what they say on their state-change logs that they did."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from harness.cluster.driver import ClusterRequest, ClusterStatus
from harness.cluster.processes.driver import ProcessDriver
from harness.system.waiting import until

pytestmark = pytest.mark.cluster

RECORDS = 200
BYTES_IN = "kafka_server_brokertopicmetrics_bytesin_total"
BYTES_COPIED = "kafka_server_brokertopicmetrics_replicationbytesin_total"
ISR_EXPANDS = "kafka_server_replicamanager_isrexpands_total"
ISR_SHRINKS = "kafka_server_replicamanager_isrshrinks_total"
UNDER_REPLICATED = "kafka_server_replicamanager_underreplicatedpartitions"
OFFLINE = "kafka_controller_kafkacontroller_offlinepartitionscount"
ACTIVE = "kafka_controller_kafkacontroller_activecontrollercount"
REQUESTS = "kafka_network_requestmetrics_totaltime_seconds_count"


@pytest.fixture
async def driver(tmp_path: Path) -> AsyncIterator[ProcessDriver]:
    """The driver of a cluster of this test's own, not started."""
    driver = ProcessDriver(tmp_path, "metrics")
    yield driver
    await driver.stop()
    assert await driver.residue() == []


def scrape(status: ClusterStatus, broker_id: int) -> dict[str, float]:
    """Return what a broker shows, by name and the value of the label if there is one."""
    url = status.broker(broker_id).metrics_url
    assert url is not None
    text = httpx.get(url, timeout=120).raise_for_status().text
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def events_of(status: ClusterStatus, broker_id: int, ev: str) -> list[dict[str, object]]:
    """Return the events of one kind that a broker has written."""
    lines = status.broker(broker_id).state_change_log.read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["ev"] == ev]


def produce(status: ClusterStatus, records: int, *, acks: str) -> None:
    producer = Producer({"bootstrap.servers": status.bootstrap_servers, "acks": acks, "linger.ms": 0})
    for number in range(records):
        producer.produce("orders", f"value-{number}", partition=0)
    assert producer.flush(120) == 0


def accepted(status: ClusterStatus, kind: str) -> int:
    """Return how many ISR changes of one kind the leader says that ZooKeeper accepted."""
    return sum((e["kind"], e["result"]) == (kind, "ok") for e in events_of(status, 0, "isr_result"))


async def test_metrics_agree_with_the_state_change_logs(driver: ProcessDriver) -> None:
    # a follower that a busy machine holds up for a second or two stays in the ISR
    request = ClusterRequest(
        brokers=2, properties={"replica.lag.time.max.ms": "6000", "zookeeper.session.timeout.ms": "20000"}, metrics=True
    )
    status = await driver.start(request)
    admin = AdminClient({"bootstrap.servers": status.bootstrap_servers})
    admin.create_topics([NewTopic("orders", num_partitions=1, replica_assignment=[[0, 1]])])["orders"].result(120)
    produce(status, RECORDS, acks="all")

    leader, follower = scrape(status, 0), scrape(status, 1)
    assert leader["kafka_server_brokertopicmetrics_messagesin_total"] == RECORDS
    assert leader[BYTES_IN] == follower[BYTES_COPIED] == leader["kafka_log_size_bytes"] > 0
    assert leader[f"{REQUESTS} Produce"] == len(events_of(status, 0, "produce_resp"))
    assert follower.get(f"{REQUESTS} Produce", 0) == 0
    assert leader[ACTIVE] + follower[ACTIVE] == 1
    assert leader[UNDER_REPLICATED] == follower[UNDER_REPLICATED] == leader[OFFLINE] + follower[OFFLINE] == 0
    elected = Counter(broker_id for broker_id in (0, 1) for _ in events_of(status, broker_id, "controller_elected"))
    assert {0: leader[ACTIVE], 1: follower[ACTIVE]} == {0: elected[0], 1: elected[1]}

    await driver.pause_broker(1, at_most_s=60)
    produce(status, 1, acks="1")  # a follower that lacks nothing stays in the ISR

    async def look() -> dict[str, float]:
        return scrape(status, 0)

    alone = await until(look, lambda seen: seen[UNDER_REPLICATED] == 1, what="a smaller ISR", timeout_s=120)
    assert alone[ISR_SHRINKS] == accepted(status, "shrink") == 1
    await driver.resume_broker(1)
    whole = await until(look, lambda seen: seen[UNDER_REPLICATED] == 0, what="the ISR whole again", timeout_s=120)
    assert whole[ISR_EXPANDS] == accepted(status, "expand") == 1

"""Real clients accept what the server advertises: they connect, read metadata, write magic-2 batches, read them back.

The cluster behind the server is one partition in a list, so that nothing but the wire is tested.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaProducer

from harness.broker.configs.config import Endpoint
from harness.broker.handlers.apis import APIS
from harness.broker.wire.dispatch import Dispatcher, RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    ApiKey,
    FetchResponse,
    FindCoordinatorResponse,
    ListOffsetsResponse,
    MetadataResponse,
    ProduceResponse,
)
from harness.broker.wire.server import SocketServer

pytestmark = pytest.mark.real_time("real clients, with threads and sockets of their own")

TOPIC = "canned"
PATIENCE_S = 120
MAGIC_AT, CODEC_AT, LAST_OFFSET_DELTA_AT = 16, 22, 23
LZ4 = 3


@dataclass
class OnePartition:
    """Answers as a broker that leads the only partition there is; remembers the versions it was asked in."""

    port: int = 0
    batches: list[tuple[int, bytes]] = field(default_factory=list)
    end: int = 0
    requests: set[tuple[ApiKey, int]] = field(default_factory=set)
    more: asyncio.Event = field(default_factory=asyncio.Event)

    def handlers(self) -> dict[ApiKey, Any]:
        return {
            ApiKey.METADATA: self.metadata,
            ApiKey.PRODUCE: self.produce,
            ApiKey.FETCH: self.fetch,
            ApiKey.LIST_OFFSETS: self.list_offsets,
            ApiKey.FIND_COORDINATOR: self.find_coordinator,
        }

    async def metadata(self, request: Any, context: RequestContext) -> Any:
        self.requests.add((context.api_key, context.api_version))
        topic = MetadataResponse.MetadataResponseTopic
        partition = topic.MetadataResponsePartition(leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1])
        return MetadataResponse(
            brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)],
            cluster_id="canned",
            controller_id=1,
            topics=[topic(error_code=0, name=TOPIC, is_internal=False, partitions=[partition])],
        )

    async def produce(self, request: Any, context: RequestContext) -> Any:
        self.requests.add((context.api_key, context.api_version))
        records = request.topic_data[0].partition_data[0].records
        base = self.end
        self.batches.append((base, base.to_bytes(8) + records[8:]))
        self.end += int.from_bytes(records[LAST_OFFSET_DELTA_AT : LAST_OFFSET_DELTA_AT + 4]) + 1
        self.more.set()
        topic = ProduceResponse.TopicProduceResponse
        partition = topic.PartitionProduceResponse(index=0, error_code=0, base_offset=base)
        return ProduceResponse(responses=[topic(name=TOPIC, partition_responses=[partition])])

    async def fetch(self, request: Any, context: RequestContext) -> Any:
        self.requests.add((context.api_key, context.api_version))
        wanted = request.topics[0].partitions[0].fetch_offset if request.topics else self.end
        if wanted >= self.end:
            self.more.clear()
            try:
                async with asyncio.timeout(request.max_wait_ms / 1000):
                    await self.more.wait()
            except TimeoutError:
                pass
        topic = FetchResponse.FetchableTopicResponse
        partition = topic.PartitionData(
            partition_index=0,
            error_code=0,
            high_watermark=self.end,
            last_stable_offset=self.end,
            log_start_offset=0,
            aborted_transactions=None,
            preferred_read_replica=-1,
            records=b"".join(batch for base, batch in self.batches if base >= wanted),
        )
        return FetchResponse(responses=[topic(topic=TOPIC, partitions=[partition])] if request.topics else [])

    async def list_offsets(self, request: Any, context: RequestContext) -> Any:
        self.requests.add((context.api_key, context.api_version))
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        offset = 0 if request.topics[0].partitions[0].timestamp == -2 else self.end
        partition = topic.ListOffsetsPartitionResponse(
            partition_index=0, error_code=0, timestamp=-1, offset=offset, leader_epoch=0
        )
        return ListOffsetsResponse(topics=[topic(name=TOPIC, partitions=[partition])])

    async def find_coordinator(self, request: Any, context: RequestContext) -> Any:
        """Never asked for here; librdkafka compresses with lz4 only where the API is advertised."""
        return FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, node_id=-1, host="", port=-1)


@pytest.fixture
async def broker() -> Any:
    canned = OnePartition()
    server = SocketServer(Dispatcher(APIS, canned.handlers()))
    canned.port = server.bind(Endpoint(name="CLIENT", host="127.0.0.1", port=0))
    await server.serve()
    yield canned
    await server.stop()


def write_and_read_with_confluent(bootstrap: str) -> list[bytes]:
    failures: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4", "error_cb": failures.append})
    for number in range(3):
        producer.produce(TOPIC, value=f"value {number}" * 50, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,  # there is no coordinator
            "error_cb": failures.append,
        }
    )
    consumer.assign([ConfluentPartition(TOPIC, 0, 0)])
    values: list[bytes] = []
    for _ in range(3):
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        values.append(message.value() or b"")
    consumer.close()
    assert not failures
    return values


async def test_confluent_kafka_writes_and_reads(broker: OnePartition) -> None:
    values = await asyncio.to_thread(write_and_read_with_confluent, f"127.0.0.1:{broker.port}")

    assert values == [f"value {number}".encode() * 50 for number in range(3)]
    assert {batch[MAGIC_AT] for _, batch in broker.batches} == {2}
    assert {batch[CODEC_AT] & 7 for _, batch in broker.batches} == {LZ4}
    assert broker.requests >= {(ApiKey.METADATA, 9), (ApiKey.PRODUCE, 10), (ApiKey.FETCH, 12)}


async def test_aiokafka_writes_and_reads_an_assigned_partition(broker: OnePartition) -> None:
    bootstrap = f"127.0.0.1:{broker.port}"
    async with asyncio.timeout(PATIENCE_S):
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait(TOPIC, b"value", partition=0)
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        consumer.assign([TopicPartition(TOPIC, 0)])
        async with consumer:
            message = await consumer.getone()

    assert (message.offset, message.value) == (0, b"value")
    assert {batch[MAGIC_AT] for _, batch in broker.batches} == {2}


async def test_kafka_python_writes(broker: OnePartition) -> None:
    def write() -> Any:
        producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{broker.port}", enable_idempotence=False)
        try:
            return producer.send(TOPIC, b"value", partition=0).get(PATIENCE_S)
        finally:
            producer.close(PATIENCE_S)

    written = await asyncio.to_thread(write)

    assert written.offset == 0
    assert (ApiKey.PRODUCE, 9) in broker.requests
    assert {batch[MAGIC_AT] for _, batch in broker.batches} == {2}

"""Which version a request is sent in, and what becomes of records on the way to and from a broker that is older."""

from dataclasses import dataclass, field

import pytest
from kafka.record.legacy_records import LegacyRecordBatch

from harness.broker.log.batch import build_batch
from harness.broker.log.records import Record
from harness.broker.wire.messages import ApiKey, ApiVersionsResponse, MetadataRequest, ProduceRequest
from harness.broker.wire.transport import Connection, Message
from harness.experiment.version_negotiation import NegotiatingTransport, last_offsets, messages_of

RECORDS = [Record(key=b"k", value=b"a", timestamp_ms=5), Record(key=None, value=b"bc", timestamp_ms=6)]
BATCH = bytes(build_batch(RECORDS))


@dataclass
class Broker:
    """Implements Transport and Connection: a broker that knows its APIs up to these versions, and hears all."""

    latest: dict[int, int]
    heard: list[tuple[Message, int]] = field(default_factory=list)
    closed: bool = False

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> Connection:
        return self

    async def request(self, message: Message, version: int, *, timeout_s: float) -> Message:
        if message.API_KEY == ApiKey.API_VERSIONS:
            known = ApiVersionsResponse.ApiVersion
            return ApiVersionsResponse(
                api_keys=[known(api_key=key, min_version=0, max_version=last) for key, last in self.latest.items()]
            )
        self.heard.append((message, version))
        return None

    def close(self) -> None:
        self.closed = True


def produce() -> ProduceRequest:
    data = ProduceRequest.TopicProduceData
    partition = data.PartitionProduceData(index=0, records=BATCH)
    return ProduceRequest(topic_data=[data(name="orders", partition_data=[partition])])


async def sent(message: Message, version: int, latest: int) -> tuple[Message, int]:
    """Return what arrives, in which version, at a broker that knows this API up to `latest`."""
    broker = Broker({message.API_KEY: latest})
    connection = await NegotiatingTransport(broker).connect("h", 1, client_id="c", timeout_s=1)
    await connection.request(message, version, timeout_s=1)
    connection.close()
    assert connection.closed
    (heard,) = broker.heard
    return heard


@pytest.mark.parametrize(
    ("wanted", "latest", "version"),
    [
        pytest.param(8, 2, 2, id="an older broker is asked in its latest version"),
        pytest.param(8, 12, 8, id="a newer one in ours"),
    ],
)
async def test_the_latest_version_that_both_know_is_used(wanted: int, latest: int, version: int) -> None:
    assert (await sent(MetadataRequest(topics=[]), wanted, latest))[1] == version


@pytest.mark.parametrize(
    ("latest", "batches"),
    [pytest.param(2, False, id="messages until 0.10"), pytest.param(3, True, id="batches since 0.11")],
)
async def test_records_are_sent_as_the_broker_takes_them(latest: int, batches: bool) -> None:
    message, _ = await sent(produce(), 8, latest)
    assert message.topic_data[0].partition_data[0].records == (BATCH if batches else messages_of(BATCH))


def test_messages_are_what_another_parser_reads() -> None:
    data = messages_of(BATCH)
    size = 12 + int.from_bytes(data[8:12], "big")
    read = [LegacyRecordBatch(part, 1) for part in (data[:size], data[size:])]
    assert all(message.validate_crc() for message in read)
    records = [record for message in read for record in message]
    assert [(each.key, each.value, each.timestamp) for each in records] == [(b"k", b"a", 5), (None, b"bc", 6)]


@pytest.mark.parametrize(
    ("records", "offsets"),
    [
        pytest.param(BATCH + BATCH[:-1], [1], id="batches, the last one cut short"),
        pytest.param(messages_of(BATCH) + messages_of(BATCH)[:20], [0, 0], id="messages, the last one cut short"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_how_far_the_answer_to_a_fetch_goes(records: bytes, offsets: list[int]) -> None:
    assert list(last_offsets(records)) == offsets

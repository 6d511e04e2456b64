"""Every message survives encoding and decoding in every version served, and nothing malformed gets through."""

import tracemalloc
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from harness.broker.handlers.apis import APIS
from harness.broker.wire.codec import (
    MalformedMessage,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from harness.broker.wire.messages import (
    ApiKey,
    ApiMessage,
    DeleteGroupsRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    ProduceRequest,
)

SERVED = [
    pytest.param(key, version, id=f"{key.name} v{version}")
    for key, api in APIS.items()
    for version in range(api.versions.served_min, api.versions.max + 1)
]


def filled(fields: Any, data_class: Any, version: int, numbers: Iterator[int]) -> Any:
    """An instance with a value of its own in every field of the version, two elements in every array."""
    instance = data_class(version=version)
    for field in fields.untagged_fields(version):
        kind = field.type_str.removeprefix("[]") if field.is_array() and not field.is_struct_array() else field.type_str

        def value(field: Any = field, kind: str = kind) -> Any:
            if field.is_struct_array():
                return filled(field, field.data_class, version, numbers)
            number = next(numbers)
            match kind:
                case "string":
                    return f"name {number} ünïcode"
                case "bytes" | "records":
                    return bytes([number % 256]) * 300
                case "bool":
                    return number % 2 == 1
                case "bitfield":
                    return {number % 31}
                case "int8":
                    return number % 127
                case _:
                    return number

        setattr(instance, field.name, [value(), value()] if field.is_array() else value())
    return instance


def example(message_class: type[ApiMessage], version: int) -> Any:
    return filled(message_class._struct, message_class, version, count(1))


def request_frame(key: ApiKey, version: int) -> bytes:
    return bytes(encode_request(example(APIS[key].request, version), version, correlation_id=7, client_id="tester"))[4:]


@pytest.mark.parametrize(("key", "version"), SERVED)
def test_request_survives_the_round_trip(key: ApiKey, version: int) -> None:
    header = decode_request_header(request_frame(key, version))

    assert (header.api_key, header.api_version, header.correlation_id, header.client_id) == (key, version, 7, "tester")
    assert decode_request(APIS[key].request, header) == example(APIS[key].request, version)


@pytest.mark.parametrize(("key", "version"), SERVED)
def test_response_survives_the_round_trip(key: ApiKey, version: int) -> None:
    response = example(APIS[key].response, version)
    if key is ApiKey.API_VERSIONS:
        response.error_code = 0  # with an error the body is always version 0

    frame = bytes(encode_response(response, version, correlation_id=9))

    assert int.from_bytes(frame[:4]) == len(frame) - 4
    assert decode_response(key, version, frame[4:], correlation_id=9) == response


@pytest.mark.parametrize(("key", "version"), SERVED)
def test_request_cut_anywhere_is_refused(key: ApiKey, version: int) -> None:
    frame = request_frame(key, version)

    for length in range(len(frame)):
        with pytest.raises(MalformedMessage):
            decode_request(APIS[key].request, decode_request_header(frame[:length]))


@pytest.mark.parametrize(("key", "version"), SERVED)
def test_trailing_bytes_of_a_request_are_ignored(key: ApiKey, version: int) -> None:
    header = decode_request_header(request_frame(key, version) + b"\x00\xff")

    assert decode_request(APIS[key].request, header) == example(APIS[key].request, version)


@pytest.mark.parametrize(("key", "version"), SERVED)
def test_response_cut_anywhere_is_refused(key: ApiKey, version: int) -> None:
    frame = bytes(encode_response(example(APIS[key].response, version), version, correlation_id=9))[4:]

    for length in range(len(frame)):
        with pytest.raises(MalformedMessage):
            decode_response(key, version, frame[:length], correlation_id=9)


def test_response_to_another_request_is_refused() -> None:
    frame = encode_response(MetadataResponse(version=1, brokers=[], topics=[]), 1, correlation_id=5)

    with pytest.raises(MalformedMessage, match="response to request 5, expected one to 6"):
        decode_response(ApiKey.METADATA, 1, bytes(frame[4:]), correlation_id=6)


def test_response_can_be_encoded_again_in_another_version() -> None:
    response = FetchResponse(error_code=0, session_id=0, responses=[])

    first = encode_response(response, 11, correlation_id=1)
    encode_response(response, 4, correlation_id=2)

    assert encode_response(response, 11, correlation_id=1) == first


def test_a_large_message_leaves_no_large_buffer_behind() -> None:
    topic = FetchResponse.FetchableTopicResponse
    partition = topic.PartitionData(partition_index=0, error_code=0, high_watermark=1, records=bytes(20_000_000))
    response = FetchResponse(responses=[topic(topic="t", partitions=[partition])])
    tracemalloc.start()
    try:
        assert len(encode_response(response, 11, correlation_id=1)) > 20_000_000
        left_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left_bytes < 1_000_000


def test_null_client_id_is_an_empty_one() -> None:
    frame = b"\x00\x03\x00\x01\x00\x00\x00\x07\xff\xff\xff\xff\xff\xff"

    header = decode_request_header(frame)

    assert header.client_id == ""
    assert decode_request(MetadataRequest, header).topics is None


TOPIC = ProduceRequest.TopicProduceData
NULL: Any = None
"""Whatever the annotation of a field says."""
COMMIT_TOPIC = OffsetCommitRequest.OffsetCommitRequestTopic


@pytest.mark.parametrize(
    ("request_", "version", "field"),
    [
        pytest.param(ProduceRequest(acks=1, topic_data=NULL), 8, "topic_data", id="array of topics"),
        pytest.param(
            ProduceRequest(acks=1, topic_data=[TOPIC(name=NULL, partition_data=[])]), 8, "name", id="name of a topic"
        ),
        pytest.param(
            ProduceRequest(acks=1, topic_data=[TOPIC(name="t", partition_data=NULL)]),
            8,
            "partition_data",
            id="array of partitions",
        ),
        pytest.param(OffsetCommitRequest(group_id=NULL, topics=[]), 7, "group_id", id="group"),
        pytest.param(
            OffsetCommitRequest(group_id="g", topics=[COMMIT_TOPIC(name="t", partitions=NULL)]),
            7,
            "partitions",
            id="partitions of the second level",
        ),
        pytest.param(DeleteGroupsRequest(groups_names=["g", NULL]), 1, "one of groups_names", id="one of some texts"),
        pytest.param(DeleteGroupsRequest(groups_names=["g", NULL]), 2, "one of groups_names", id="the same, compact"),
    ],
)
def test_null_is_refused_where_the_protocol_has_none(request_: Any, version: int, field: str) -> None:
    frame = bytes(encode_request(request_, version, correlation_id=1, client_id="c"))[4:]

    with pytest.raises(MalformedMessage, match=f"v{version}: {field} is null"):
        decode_request(type(request_), decode_request_header(frame))


def test_null_records_pass_because_the_protocol_allows_them() -> None:
    partition = TOPIC.PartitionProduceData(index=0, records=None)
    request = ProduceRequest(acks=1, topic_data=[TOPIC(name="t", partition_data=[partition])])

    frame = bytes(encode_request(request, 8, correlation_id=1, client_id="c"))[4:]

    decoded = decode_request(ProduceRequest, decode_request_header(frame))
    assert decoded.topic_data[0].partition_data[0].records is None

"""Which requests are answered, how an unknown ApiVersions is, and that no bytes at all bring the dispatcher down."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.broker.handlers.apis import APIS
from harness.broker.wire.codec import decode_response, encode_request
from harness.broker.wire.dispatch import CloseConnection, Dispatcher, RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    ApiKey,
    ApiVersionsRequest,
    FetchRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)


async def no_brokers(request: Any, context: RequestContext) -> Any:
    return MetadataResponse(brokers=[], topics=[])


async def silent(request: Any, context: RequestContext) -> None:
    return None


def dispatcher() -> Dispatcher:
    return Dispatcher(APIS, {ApiKey.METADATA: no_brokers, ApiKey.PRODUCE: silent})


def every_api() -> Dispatcher:
    async def answer(request: Any, context: RequestContext) -> Any:
        repr(request)
        return APIS[context.api_key].response(version=context.api_version)

    return Dispatcher(APIS, dict.fromkeys(ApiKey, answer))


def frame(request: Any, version: int, client_id: str = "tester") -> bytes:
    return bytes(encode_request(request, version, correlation_id=7, client_id=client_id))[4:]


def header(api_key: int, version: int) -> bytes:
    return api_key.to_bytes(2, signed=True) + version.to_bytes(2, signed=True) + b"\0\0\0\x07" + b"\0\x01c"


def software(name: str, version: str) -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


async def api_versions(data: bytes, body_version: int) -> Any:
    response = await dispatcher().dispatch(data, "CLIENT", "peer:1")
    assert response is not None
    return decode_response(ApiKey.API_VERSIONS, body_version, bytes(response[4:]), correlation_id=7)


def ranges(response: Any) -> dict[int, tuple[int, int]]:
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}


async def test_handler_gets_the_request_and_who_sent_it() -> None:
    seen: list[Any] = []

    async def remember(request: Any, context: RequestContext) -> Any:
        seen.extend((request, context))
        return MetadataResponse(brokers=[], topics=[])

    data = frame(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), 8)
    await Dispatcher(APIS, {ApiKey.METADATA: remember}).dispatch(data, "REPL", "127.0.0.1:5")

    assert [topic.name for topic in seen[0].topics] == ["t"]
    assert seen[1] == RequestContext(
        api_key=ApiKey.METADATA,
        api_version=8,
        correlation_id=7,
        client_id="tester",
        listener="REPL",
        peer="127.0.0.1:5",
    )


async def test_response_carries_the_correlation_id_and_the_version_of_the_request() -> None:
    response = await dispatcher().dispatch(frame(MetadataRequest(topics=None), 1), "CLIENT", "peer:1")

    assert response is not None
    assert decode_response(ApiKey.METADATA, 1, bytes(response[4:]), correlation_id=7).version == 1


async def test_a_request_without_response_gets_none() -> None:
    assert await dispatcher().dispatch(frame(ProduceRequest(acks=0, topic_data=[]), 8), "CLIENT", "peer:1") is None


@pytest.mark.parametrize("version", range(5))
async def test_only_apis_with_a_handler_are_advertised(version: int) -> None:
    response = await api_versions(frame(software("chaos", "1.0"), version), version)

    assert response.error_code == ErrorCode.NONE
    assert ranges(response) == {0: (0, 11), 3: (0, 9), 18: (0, 4)}


async def test_the_versions_of_each_row_are_advertised() -> None:
    response = await every_api().dispatch(frame(software("chaos", "1.0"), 3), "CLIENT", "peer:1")

    assert response is not None
    answer = decode_response(ApiKey.API_VERSIONS, 3, bytes(response[4:]), correlation_id=7)
    assert ranges(answer) == {key: (api.versions.advertised_min, api.versions.max) for key, api in APIS.items()}


async def test_a_flexible_response_of_api_versions_has_no_tagged_fields_in_its_header() -> None:
    response = await dispatcher().dispatch(frame(software("chaos", "1.0"), 3), "CLIENT", "peer:1")

    assert response is not None
    # length, correlation id, error, then at once the compact array of three APIs
    assert response[4:].startswith(b"\0\0\0\x07\0\0\x04\0\0\0\0\0\x0b\0")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(header(18, 5) + b"\0\x02a\x021\0", id="v5"),
        pytest.param(header(18, 5), id="v5 with nothing after the client id"),
        pytest.param(header(18, 32767) + b"\xff" * 9, id="the highest version, and no such body"),
        pytest.param(header(18, -1), id="negative version"),
    ],
)
async def test_unknown_version_of_api_versions_is_answered_in_version_0(data: bytes) -> None:
    response = await api_versions(data, 0)

    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert ranges(response) == {18: (0, 4)}


@pytest.mark.parametrize(
    ("name", "version", "error"),
    [
        pytest.param("kafka-python", "3.0.12", ErrorCode.NONE, id="name and version"),
        pytest.param("a", "1", ErrorCode.NONE, id="one character each"),
        pytest.param("", "1", ErrorCode.INVALID_REQUEST, id="empty name"),
        pytest.param("a", "", ErrorCode.INVALID_REQUEST, id="empty version"),
        pytest.param("-a", "1", ErrorCode.INVALID_REQUEST, id="name starts with a dash"),
        pytest.param("a", "1.", ErrorCode.INVALID_REQUEST, id="version ends with a dot"),
        pytest.param("a b", "1", ErrorCode.INVALID_REQUEST, id="blank in the name"),
        pytest.param("a\n", "1", ErrorCode.INVALID_REQUEST, id="newline after the name"),
        pytest.param("ä", "1", ErrorCode.INVALID_REQUEST, id="letter beyond ASCII"),
    ],
)
async def test_client_must_name_its_software(name: str, version: str, error: ErrorCode) -> None:
    response = await api_versions(frame(software(name, version), 3), 3)

    assert response.error_code == error
    assert bool(response.api_keys) == (error == ErrorCode.NONE)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(header(18, 3) + b"\0\x02a\x021\x01\x05\x02hi", id="unknown tagged field in the body"),
        pytest.param(header(18, 3) + b"\x02\x00\x01x\x80\x01\x00\x02a\x021\0", id="unknown ones in the header"),
        pytest.param(header(18, 3) + b"\0\x02a\x021\0more", id="trailing bytes"),
        pytest.param(b"\0\x12\0\x03\0\0\0\x07\xff\xff\0\x02a\x021\0", id="null client id"),
    ],
)
async def test_what_kafka_tolerates_is_tolerated(data: bytes) -> None:
    assert (await api_versions(data, 3)).error_code == ErrorCode.NONE


CLOSED = [
    pytest.param(b"", "ends inside its header", id="nothing"),
    pytest.param(b"\0\x03\0\x08\0\0", "ends inside its header", id="half a header"),
    pytest.param(b"\0\x03\0\x08\0\0\0\x07\0\x09abc", "client id of 9 bytes", id="client id longer than the frame"),
    pytest.param(b"\0\x03\0\x08\0\0\0\x07\0\x02\xff\xfe", "not UTF-8", id="client id that is no text"),
    pytest.param(header(999, 0), "unknown API key 999", id="unknown API key"),
    pytest.param(header(-1, 0), "unknown API key -1", id="negative API key"),
    pytest.param(frame(FetchRequest(topics=[]), 11), "unknown API key 1", id="API without a handler"),
    pytest.param(frame(MetadataRequest(topics=[]), 10), "METADATA v10 is not served", id="version above the range"),
    pytest.param(header(3, -1), "METADATA v-1 is not served", id="negative version"),
    pytest.param(header(0, 2) + b"\0\0" + bytes(8), "PRODUCE v2 is not served", id="an old Produce without acks"),
    pytest.param(header(0, 2) + b"\0\x01", "API 0 v2", id="an old Produce that ends too early"),
    pytest.param(
        header(0, 2) + b"\0\x01" + bytes(4) + b"\0\0\0\x01\0\x01t" + b"\0\0\0\x01" + bytes(4) + b"\xff" * 4,
        "-1 bytes",
        id="an old Produce with records of a negative size",
    ),
    pytest.param(header(3, 8), "MetadataRequest v8", id="no body"),
    pytest.param(header(3, 8) + b"\0\0\0\x05\0\x01t", "MetadataRequest v8", id="array longer than the body"),
    pytest.param(header(3, 4) + b"\0\0\0\x01\xff\xff\0", "name is null", id="null name of a topic"),
    pytest.param(header(18, 3) + b"\xff\xff\xff\xff\xff\xff", "longer than five bytes", id="endless tag count"),
    pytest.param(header(18, 3) + b"\x01\x00\x7fx", "longer than the frame", id="header's tagged field too long"),
]


TOPIC = b"\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\x05"
"""One topic with one partition, the fifth."""
REFUSED = [
    pytest.param(
        0, 0, b"\0\x01" + bytes(4) + TOPIC + b"\0\0\0\x02ab", TOPIC + b"\0\x23" + b"\xff" * 8, id="Produce v0"
    ),
    pytest.param(
        0,
        2,
        b"\xff\xff" + bytes(4) + TOPIC + bytes(4),
        TOPIC + b"\0\x23" + b"\xff" * 16 + bytes(4),
        id="Produce v2, of the Java client 0.10",
    ),
    pytest.param(1, 0, bytes(12) + TOPIC + bytes(12), TOPIC + b"\0\x23" + b"\xff" * 8 + bytes(4), id="Fetch v0"),
    pytest.param(
        1,
        3,
        bytes(16) + TOPIC + bytes(12),
        bytes(4) + TOPIC + b"\0\x23" + b"\xff" * 8 + bytes(4),
        id="Fetch v3, of the Java client 0.10",
    ),
]


@pytest.mark.parametrize(("api_key", "version", "body", "answer"), REFUSED)
async def test_a_client_from_before_record_batches_learns_that_its_version_is_not_supported(
    api_key: int, version: int, body: bytes, answer: bytes
) -> None:
    response = await every_api().dispatch(header(api_key, version) + body, "CLIENT", "peer:1")
    assert response is not None
    assert response == (4 + len(answer)).to_bytes(4) + header(api_key, version)[4:8] + answer


@pytest.mark.parametrize(("data", "reason"), CLOSED)
async def test_connection_is_to_be_closed(data: bytes, reason: str) -> None:
    with pytest.raises(CloseConnection, match=reason):
        await dispatcher().dispatch(data, "CLIENT", "peer:1")


async def answered_or_refused(data: bytes) -> None:
    try:
        response = await every_api().dispatch(data, "CLIENT", "peer:1")
    except CloseConnection:
        return
    assert response is not None
    assert len(response) >= 8


@given(data=st.binary(max_size=200))
@settings(max_examples=300)
async def test_random_bytes_never_crash_the_dispatcher(data: bytes) -> None:
    await answered_or_refused(data)


@given(
    api=st.sampled_from([(key, version) for key in ApiKey for version in range(APIS[key].versions.max + 1)]),
    body=st.one_of(
        st.binary(max_size=100),
        st.lists(st.sampled_from([b"\0", b"\0\0\0\x01", b"\xff\xff", b"\x02", b"\x01t", b"\xff" * 4]), max_size=30).map(
            b"".join
        ),
    ),
)
@settings(max_examples=500)
async def test_random_bodies_never_crash_the_dispatcher(api: tuple[ApiKey, int], body: bytes) -> None:
    await answered_or_refused(header(*api) + body)

"""Each request and response is what kafka-python's codec makes of the same values, in every version that is sent."""

import itertools
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from harness.broker.wire.codec import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from harness.broker.wire.messages import API_KEYS
from harness.experiment.service_probe import LATEST
from harness.kafka.apis import DESCRIBE_LOG_DIRS, FETCH, FIND_COORDINATOR, METADATA, OFFSET_COMMIT, PRODUCE
from harness.kafka.codec import BOOL, INT8, STRING, Api, Field, Fields, Malformed, Values, decode, encode

FIRST = {PRODUCE: 3, FETCH: 4, METADATA: 1, OFFSET_COMMIT: 2, FIND_COORDINATOR: 0, DESCRIBE_LOG_DIRS: 0}
VERSIONS = [
    pytest.param(api, version, id=f"{api.name} {version}")
    for api, first in FIRST.items()
    for version in range(first, LATEST[api.key] + 1)
]
REQUESTS = {int(key): kind for kind, key in API_KEYS.items() if kind.type == "request"}
HEAD = struct.pack(">i", 9)
"""Correlation id."""


def filled(fields: Fields, version: int, numbers: Iterator[int]) -> Values:
    """Return values of which no two are equal, with two elements in each array."""

    def value(field: Field) -> Any:
        if isinstance(field.type, tuple):
            return [filled(field.type, version, numbers) for _ in range(2)]
        number = next(numbers)
        if field.type is BOOL:
            return True
        if field.type is INT8:
            return number % 2
        if isinstance(field.type, struct.Struct):
            return number
        return f"text-{number}" if field.type == STRING else b"bytes-%d" % number

    return {field.name: value(field) for field in fields if field.since <= version <= field.until}


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_a_request_is_what_the_library_makes_of_it(api: Api, version: int) -> None:
    values = filled(api.request, version, itertools.count(100))
    body = encode(api.request, values, version)
    frame = struct.pack(">hhih", api.key, version, 9, 2) + b"me" + body
    message = decode_request(REQUESTS[api.key], decode_request_header(frame))
    message._header = None  # the library makes none when it decodes
    assert encode_request(message, version, correlation_id=9, client_id="me")[4:] == frame
    assert decode(api.request, body, version) == values


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_a_response_is_read_as_the_library_reads_it(api: Api, version: int) -> None:
    values = filled(api.response, version, itertools.count(100))
    frame = HEAD + encode(api.response, values, version)
    message = decode_response(api.key, version, frame, correlation_id=9)
    assert bytes(encode_response(message, version, correlation_id=9)[4:]) == frame
    assert decode(api.response, frame[4:], version) == values


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"\0\0\0", "unpack_from", id="a number is cut off"),
        pytest.param(b"\0\0\0\0\0\5ab", "name has 5 bytes, of which 2 are there", id="a text is cut off"),
        pytest.param(b"\0\0\0\0\0\1a\0", "1 bytes more than its fields", id="more than the fields"),
        pytest.param(b"\0\0\0\0\0\1\xff", "utf-8", id="no text"),
    ],
)
def test_bytes_that_are_no_message_are_refused(data: bytes, reason: str) -> None:
    fields = (Field("number", struct.Struct(">i")), Field("name", STRING))
    with pytest.raises(Malformed, match=reason):
        decode(fields, data, 0)

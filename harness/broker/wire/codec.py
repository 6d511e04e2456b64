"""Bytes to messages and back: request and response frames without their length prefix in, with it out.

kafka-python decodes the fields of a body. It does not detect a body that ends inside its last string, a null where the
protocol allows none, or a text longer than Kafka's, which flexible versions could hold. All are checked here: a handler
never sees such a message.
"""

import struct
from dataclasses import dataclass
from functools import cache
from typing import Any

from kafka.protocol.schemas.fields.codecs.encode_buffer import EncodeBufferPool

from harness.broker.wire.messages import RESPONSES, ApiKey, ApiMessage
from harness.broker.wire.transport import Message

_HEADER = struct.Struct(">hhih")
_MAX_BUFFER_BYTES = 1024 * 1024
MAX_TEXT_BYTES = 2**15 - 1
_DECODE_ERRORS = (struct.error, IndexError, ValueError, OverflowError, AssertionError)

Nulls = tuple[tuple[str, bool, "Nulls | None"], ...]
"""Fields that can be null: the name, whether the protocol allows it, and the same for the fields of its elements.

None if no code reads the elements; none of them may be null.
"""


Texts = tuple[tuple[str, "Texts"], ...]
"""Fields that are texts or have some: the name, and the same for the fields of its elements."""


class MalformedMessage(Exception):
    """The bytes are not a valid message."""


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """The header before every request's body."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    """Empty when the client sent null."""
    body: memoryview
    """The rest of the frame; in a flexible version the header's tagged fields come first."""


def decode_request_header(frame: bytes) -> RequestHeader:
    """Return the header of a request, up to its client id.

    Raises:
        MalformedMessage: the frame ends inside the header.
    """
    try:
        api_key, api_version, correlation_id, length = _HEADER.unpack_from(frame)
    except struct.error:
        raise MalformedMessage(f"a request of {len(frame)} bytes ends inside its header") from None
    end = _HEADER.size + max(length, 0)
    if end > len(frame):
        raise MalformedMessage(f"client id of {length} bytes in a request of {len(frame)}")
    try:
        client_id = frame[_HEADER.size : end].decode()
    except UnicodeDecodeError:
        raise MalformedMessage("client id is not UTF-8") from None
    return RequestHeader(api_key, api_version, correlation_id, client_id, memoryview(frame)[end:])


def decode_request(request_class: type[ApiMessage], header: RequestHeader) -> Message:
    """Return the request that follows the header; unknown tagged fields and trailing bytes are ignored.

    Raises:
        MalformedMessage: the bytes are no such request.
    """
    body = header.body
    if _flexible(request_class, header.api_version):
        body = body[_end_of_tagged_fields(body) :]
    return _decode(request_class, header.api_version, body)


def encode_request(request: Message, version: int, *, correlation_id: int, client_id: str) -> bytearray:
    """Return the request as a frame with its length prefix."""
    request.API_VERSION = version
    request.with_header(correlation_id=correlation_id, client_id=client_id)
    return _encoded(request)


def encode_response(response: Message, version: int, *, correlation_id: int) -> bytearray:
    """Return the response as a frame with its length prefix."""
    response._header = None  # left by an earlier encoding; the version cannot be set while there is one
    response.API_VERSION = version
    response.with_header(correlation_id=correlation_id)
    return _encoded(response)


def _encoded(message: Message) -> bytearray:
    """Return the message as a frame; the package's buffer is given up when it has grown large, as it would stay so."""
    frame: bytearray = message.encode(header=True, framed=True)
    if len(frame) > _MAX_BUFFER_BYTES:
        EncodeBufferPool._local.buf = None
    return frame


def decode_response(api_key: int, version: int, frame: bytes, *, correlation_id: int) -> Message:
    """Return the response in a frame.

    Raises:
        MalformedMessage: the bytes are no such response, or answer another request.
    """
    response_class = RESPONSES[api_key]
    if len(frame) < 4:
        raise MalformedMessage(f"a response of {len(frame)} bytes ends inside its header")
    answered = int.from_bytes(frame[:4], signed=True)
    if answered != correlation_id:
        raise MalformedMessage(f"response to request {answered}, expected one to {correlation_id}")
    body = memoryview(frame)[4:]
    if _flexible(response_class, version) and api_key != ApiKey.API_VERSIONS:
        body = body[_end_of_tagged_fields(body) :]
    return _decode(response_class, version, body)


def _flexible(message_class: Any, version: int) -> bool:
    return bool(message_class.flexible_version_q(version))


def _decode(message_class: Any, version: int, body: memoryview) -> Message:
    """Return the message; `ApiMessage.decode` would do, but does not return where in `body` it stopped."""
    flexible = _flexible(message_class, version)
    decode = message_class._struct.compiled_decode_from(  # kafka-python is pinned to the exact version
        version, compact=flexible, tagged=flexible, data_class=message_class
    )
    try:
        message, end = decode(body, 0)
    except _DECODE_ERRORS as error:
        raise MalformedMessage(f"{message_class.name} v{version}: {error}") from error
    if end > len(body):
        raise MalformedMessage(f"{message_class.name} v{version} ends {end - len(body)} bytes too early")
    where = f"{message_class.name} v{version}"
    _refuse_nulls(message, _nulls(message_class, version), where)
    if flexible and len(body) > MAX_TEXT_BYTES:
        _refuse_long_texts(message, _texts_of(message_class._struct, version), where)
    return message


def _end_of_tagged_fields(data: memoryview) -> int:
    """Return where the tagged fields at the start of `data` end; a header has none of its own (KIP-482)."""
    count, position = _unsigned_varint(data, 0)
    for _ in range(count):
        _, position = _unsigned_varint(data, position)
        size, position = _unsigned_varint(data, position)
        position += size
        if position > len(data):
            raise MalformedMessage("a tagged field of the header is longer than the frame")
    return position


def _unsigned_varint(data: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if position >= len(data):
            raise MalformedMessage("the frame ends inside the header's tagged fields")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise MalformedMessage("a number of the header's tagged fields is longer than five bytes")


@cache
def _nulls(message_class: Any, version: int) -> Nulls:
    return _nulls_of(message_class._struct, version)


def _nulls_of(fields: Any, version: int) -> Nulls:
    nulls = []
    for field in fields.untagged_fields(version):
        allowed = field.nullable_for_version_q(version)
        of_elements = _nulls_of(field, version) if field.is_struct_array() else ()
        looked_into = bool(of_elements) or field.type_str == "[]string"
        can_be_null = field.is_array() or field.type_str in ("string", "bytes", "records")
        if looked_into or (can_be_null and not allowed):
            nulls.append((field.name, allowed, of_elements if looked_into else None))
    return tuple(nulls)


def _refuse_nulls(item: Message, nulls: Nulls, where: str) -> None:
    for name, allowed, of_elements in nulls:
        value = getattr(item, name)
        if value is None and not allowed:
            raise MalformedMessage(f"{where}: {name} is null")
        if value and of_elements is not None:
            for element in value:
                if element is None:
                    raise MalformedMessage(f"{where}: one of {name} is null")
                _refuse_nulls(element, of_elements, where)


def _texts_of(fields: Any, version: int) -> Texts:
    texts = []
    for field in fields.untagged_fields(version):
        of_elements = _texts_of(field, version) if field.is_struct_array() else ()
        if of_elements or field.type_str in ("string", "[]string"):
            texts.append((field.name, of_elements))
    return tuple(texts)


def _refuse_long_texts(item: Message, texts: Texts, where: str) -> None:
    for name, of_elements in texts:
        value = getattr(item, name) or ()
        for each in [value] if isinstance(value, str) else value:
            if not isinstance(each, str):
                _refuse_long_texts(each, of_elements, where)
            elif len(each.encode()) > MAX_TEXT_BYTES:
                raise MalformedMessage(f"{where}: a {name} of {len(each.encode())} bytes")

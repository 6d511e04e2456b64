"""What is the answer to a version of Produce or Fetch from before record batches: Produce v0 to v2, Fetch v0 to v3?

UNSUPPORTED_VERSION for each partition, as Kafka 4 answers such Produce requests (KIP-896). A closed connection tells a
client nothing: a producer sends again, and a consumer waits. The package of messages has no such versions, so their few
fields are read and written here.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from harness.broker.wire.codec import MalformedMessage, RequestHeader
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import ApiKey

_Topics = list[tuple[bytes, list[int]]]
_ACKS, _INT16, _INT32 = struct.Struct(">hi"), struct.Struct(">h"), struct.Struct(">i")
_FETCH_HEAD, _FETCH_HEAD_V3 = struct.Struct(">iii"), struct.Struct(">iiii")
_FETCHED = struct.Struct(">iqi")
_PRODUCE_ANSWER, _FETCH_ANSWER = struct.Struct(">ihq"), struct.Struct(">ihqi")
_UNKNOWN = -1


def refusal(header: RequestHeader) -> bytes | None:
    """Return the body of the response that refuses a request; None if no response can say that.

    Raises:
        MalformedMessage: the bytes are no such request.
    """
    cursor = _Cursor(header.body)
    try:
        match header.api_key, header.api_version:
            case ApiKey.PRODUCE, 0 | 1 | 2 as version:
                return _refused_produce(cursor, version)
            case ApiKey.FETCH, 0 | 1 | 2 | 3 as version:
                return _refused_fetch(cursor, version)
    except struct.error as error:
        raise MalformedMessage(f"API {header.api_key} v{header.api_version}: {error}") from error
    return None


def _refused_produce(cursor: "_Cursor", version: int) -> bytes | None:
    (acks, _timeout_ms) = cursor.take(_ACKS)
    if acks == 0:
        return None
    topics = cursor.topics(_index_of_produced)
    log_append_time = struct.pack(">q", _UNKNOWN) if version > 1 else b""
    body = _body(
        topics, lambda index: _PRODUCE_ANSWER.pack(index, ErrorCode.UNSUPPORTED_VERSION, _UNKNOWN) + log_append_time
    )
    return body + (_INT32.pack(0) if version > 0 else b"")


def _refused_fetch(cursor: "_Cursor", version: int) -> bytes:
    cursor.take(_FETCH_HEAD if version < 3 else _FETCH_HEAD_V3)
    topics = cursor.topics(lambda cursor: int(cursor.take(_FETCHED)[0]))
    body = _body(topics, lambda index: _FETCH_ANSWER.pack(index, ErrorCode.UNSUPPORTED_VERSION, _UNKNOWN, 0))
    return (_INT32.pack(0) if version > 0 else b"") + body


def _index_of_produced(cursor: "_Cursor") -> int:
    (index,) = cursor.take(_INT32)
    cursor.skip(int(cursor.take(_INT32)[0]))
    return int(index)


def _body(topics: _Topics, answer: Callable[[int], bytes]) -> bytes:
    parts = [_INT32.pack(len(topics))]
    for name, indexes in topics:
        parts += [_INT16.pack(len(name)), name, _INT32.pack(len(indexes)), *map(answer, indexes)]
    return b"".join(parts)


@dataclass(slots=True)
class _Cursor:
    """Reads fields one after the other; raises struct.error where the bytes end."""

    data: memoryview
    at: int = 0

    def take(self, fields: struct.Struct) -> tuple[int, ...]:
        taken = fields.unpack_from(self.data, self.at)
        self.at += fields.size
        return taken

    def skip(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise struct.error(f"{size} bytes at {self.at} of {len(self.data)}")
        self.at += size
        return bytes(self.data[self.at - size : self.at])

    def topics(self, index: Callable[["_Cursor"], int]) -> _Topics:
        topics: _Topics = []
        for _ in range(self.take(_INT32)[0]):
            name = self.skip(self.take(_INT16)[0])
            topics.append((name, [index(self) for _ in range(self.take(_INT32)[0])]))
        return topics

"""Speaks to brokers of any release: each request in the latest version that both sides know (KIP-35).

Brokers before 0.11 take and give records in message format v1 (KIP-32), which has an offset and a CRC a record.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping

from harness.broker.log.batch import MAGIC, MAGIC_AT, iter_batches, parse_records
from harness.broker.wire.messages import ApiKey, ApiVersionsRequest
from harness.broker.wire.transport import Connection, Message, Transport

ADVERTISED_SINCE = 0
"""Version of ApiVersions that every broker knows."""
BATCHES_SINCE = 3
"""Version of Produce whose records are batches."""
_ENTRY = struct.Struct(">qi")
"""Offset, and how many bytes follow."""
_MESSAGE = struct.Struct(">bbq")
"""Format, attributes, timestamp."""
_FORMAT = 1


class NegotiatingTransport:
    """Implements Transport over another one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> Connection:
        """Connect to a broker and ask what it knows; raises PeerError."""
        connection = await self._transport.connect(host, port, client_id=client_id, timeout_s=timeout_s)
        answer = await connection.request(ApiVersionsRequest(), ADVERTISED_SINCE, timeout_s=timeout_s)
        return _Negotiated(connection, {each.api_key: each.max_version for each in answer.api_keys})


class _Negotiated:
    """A connection to a broker of which the latest version of every API is known."""

    def __init__(self, connection: Connection, latest: Mapping[int, int]) -> None:
        self._connection = connection
        self._latest = latest

    @property
    def closed(self) -> bool:
        """Whether either side has closed it, as far as is known here."""
        return self._connection.closed

    async def request(self, message: Message, version: int, *, timeout_s: float) -> Message:
        """Send a request, in an earlier version if the broker knows no later one, and return the response."""
        version = min(version, self._latest.get(message.API_KEY, version))
        if message.API_KEY == ApiKey.PRODUCE and version < BATCHES_SINCE:
            for topic in message.topic_data:
                for partition in topic.partition_data:
                    partition.records = messages_of(partition.records)
        return await self._connection.request(message, version, timeout_s=timeout_s)

    def close(self) -> None:
        """Drop the connection at once."""
        self._connection.close()


def messages_of(batches: bytes) -> bytes:
    """Return the records of batches as messages of format v1."""
    return b"".join(
        _message(record.timestamp_ms, record.key, record.value)
        for _, batch in iter_batches(batches)
        for record in parse_records(batch)
    )


def _message(timestamp_ms: int, key: bytes | None, value: bytes | None) -> bytes:
    body = _MESSAGE.pack(_FORMAT, 0, timestamp_ms)
    for part in (key, value):
        body += struct.pack(">i", -1 if part is None else len(part)) + (part or b"")
    checked = struct.pack(">I", zlib.crc32(body)) + body
    return _ENTRY.pack(0, len(checked)) + checked


def last_offsets(records: bytes) -> Iterator[int]:
    """Yield the last offset of each whole batch, or message, in the answer to a fetch."""
    if len(records) > MAGIC_AT and records[MAGIC_AT] == MAGIC:
        yield from (header.last_offset for header, _ in iter_batches(records))
        return
    position = 0
    while position + _ENTRY.size <= len(records):
        offset, size = _ENTRY.unpack_from(records, position)
        position += _ENTRY.size + size
        if position <= len(records):
            yield offset

"""Which brokers does a broker list? One Metadata request, encoded by hand, so that it shares no code with clients."""

import asyncio
import struct
from collections.abc import Iterable

from harness.errors import ClusterError

METADATA_KEY = 3
METADATA_VERSION = 1
VERSION_WITH_ID = 2
"""Of Metadata; its answer has the cluster's id after the brokers."""
CORRELATION_ID = 1
CLIENT_ID = b"chaos-probe"
NO_TOPICS = 0
LENGTH_LIMIT_BYTES = 1 << 20


async def listed_brokers(host: str, port: int, *, timeout_s: float) -> dict[int, str]:
    """Return the brokers that a broker lists as alive: host:port by broker id.

    Raises:
        ClusterError: it does not answer within `timeout_s`, or not with metadata.
    """
    response = await _metadata_of(host, port, METADATA_VERSION, timeout_s)
    return _decode(response, f"{host}:{port}")[0]


async def described_cluster(addresses: Iterable[str], *, timeout_s: float) -> tuple[str, dict[int, str]]:
    """Return a cluster's id and its brokers as the first of some addresses that answers tells them.

    Raises:
        ClusterError: none answers.
    """
    problems = []
    for address in addresses:
        host, _, port = address.strip().rpartition(":")
        try:
            response = await _metadata_of(host, int(port), VERSION_WITH_ID, timeout_s)
            brokers, position = _decode(response, address)
            (length,) = struct.unpack_from(">h", response, position)
            return response[position + 2 : position + 2 + max(length, 0)].decode(), brokers
        except (ClusterError, ValueError, struct.error) as error:
            problems.append(str(error))
    raise ClusterError("; ".join(problems))


async def _metadata_of(host: str, port: int, version: int, timeout_s: float) -> bytes:
    request = struct.pack(
        f">hhih{len(CLIENT_ID)}si", METADATA_KEY, version, CORRELATION_ID, len(CLIENT_ID), CLIENT_ID, NO_TOPICS
    )
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(struct.pack(">i", len(request)) + request)
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                if not 0 < length <= LENGTH_LIMIT_BYTES:
                    raise ClusterError(f"{host}:{port} answered with a frame of {length} bytes")
                return await reader.readexactly(length)
            finally:
                writer.close()
    except (OSError, EOFError, TimeoutError, struct.error) as error:
        raise ClusterError(f"{host}:{port} does not answer a Metadata request: {error!r}") from error


def _decode(response: bytes, address: str) -> tuple[dict[int, str], int]:
    """Return the addresses by broker id out of a Metadata response of version 1 or 2, and where they end.

    Raises:
        ClusterError: it is none.
    """
    try:
        _, count = struct.unpack_from(">ii", response)
        position = 8
        brokers = {}
        for _ in range(count):
            broker_id, length = struct.unpack_from(">ih", response, position)
            host = response[position + 6 : position + 6 + length].decode()
            position += 6 + length
            port, rack_length = struct.unpack_from(">ih", response, position)
            position += 6 + max(rack_length, 0)
            brokers[broker_id] = f"{host}:{port}"
    except (struct.error, UnicodeDecodeError) as error:
        raise ClusterError(f"{address} does not answer a Metadata request: {error!r}") from error
    return brokers, position

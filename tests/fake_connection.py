"""Connections to brokers in memory: one that takes requests, and one that takes bytes."""

import asyncio
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from harness.broker.wire.messages import (
    AlterPartitionReassignmentsResponse,
    ApiVersionsResponse,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
)
from harness.broker.wire.transport import Message

API_VERSIONS = 18
TOPIC = 2
LARGEST_READ = 65536


class Administered(Protocol):
    """What a connection changes."""

    deaf: set[str]
    configs: dict[tuple[int, str], dict[str, str]]
    moving: dict[tuple[str, int], tuple[int, ...]]
    assignments: dict[tuple[str, int], tuple[int, ...]]


@dataclass
class FakeConnection:
    """Answers at once; what it is told to change it does not when the cluster is deaf to that."""

    broker_id: int
    cluster: Administered
    closed: bool = False

    def close(self) -> None:
        self.closed = True

    async def request(self, message: Message, version: int, *, timeout_s: float) -> Message:
        self.closed = "hold" in self.cluster.deaf
        match message.name:
            case "DescribeConfigsRequest":
                return self._described(message)
            case "IncrementalAlterConfigsRequest":
                return self._altered(message)
            case "AlterPartitionReassignmentsRequest":
                return self._cancelled(message)
        return ApiVersionsResponse()

    def _described(self, message: Message) -> Message:
        (resource,) = message.resources
        own = self.cluster.configs.get((resource.resource_type, resource.resource_name), {})
        result = DescribeConfigsResponse.DescribeConfigsResult
        lines = [
            result.DescribeConfigsResourceResult(
                name=name, value=value, config_source=1 if resource.resource_type == TOPIC else 2
            )
            for name, value in own.items()
        ]
        return DescribeConfigsResponse(results=[result(error_code=0, configs=lines)])

    def _altered(self, message: Message) -> Message:
        (resource,) = message.resources
        result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
        if "refuse" in self.cluster.deaf:
            error = result(error_code=40, error_message="invalid")
            return IncrementalAlterConfigsResponse(responses=[error])
        if "expired once" in self.cluster.deaf:
            self.cluster.deaf -= {"expired once"}
            error = result(error_code=-1, error_message="SessionExpired")
            return IncrementalAlterConfigsResponse(responses=[error])
        if "alter" not in self.cluster.deaf:
            own = self.cluster.configs.setdefault((resource.resource_type, resource.resource_name), {})
            for step in resource.configs:
                if step.value is None:
                    own.pop(step.name, None)
                else:
                    own[step.name] = step.value
        return IncrementalAlterConfigsResponse(responses=[result(error_code=0)])

    def _cancelled(self, message: Message) -> Message:
        response = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
        (topic,) = message.topics
        (partition,) = topic.partitions
        key = (topic.name, partition.partition_index)
        under_way = key in self.cluster.moving
        if under_way and "cancel" not in self.cluster.deaf:
            self.cluster.assignments[key] = self.cluster.moving.pop(key)
        error = response.ReassignablePartitionResponse(error_code=0 if under_way else 85)
        return AlterPartitionReassignmentsResponse(error_code=0, responses=[response(partitions=[error])])


class _End(asyncio.Transport):
    """One end of a connection, without a socket: written data is available at the other end at once."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__()
        self._reader = reader
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._closing:
            self._reader.feed_data(bytes(data))

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._reader.feed_eof()

    abort = close


def _ends() -> Iterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield both ends of a connection."""
    loop, readers = asyncio.get_running_loop(), (asyncio.StreamReader(), asyncio.StreamReader())
    for own, others in (readers, readers[::-1]):
        yield own, asyncio.StreamWriter(_End(others), asyncio.StreamReaderProtocol(own, loop=loop), own, loop)


async def stream(
    *, closes: bool, serves: bool, produce_error: int = 10
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection to a server that answers ApiVersions, if it `serves`, and `closes` on anything else.

    A Produce request that is larger than a batch may be is answered with an error.
    """
    (near_reader, near_writer), (reader, writer) = _ends()

    async def serve() -> None:
        try:
            first = await reader.read(LARGEST_READ)
            if len(first) >= LARGEST_READ:
                await reader.readexactly(struct.unpack_from(">i", first)[0] + 4 - len(first))
                writer.write(_produced("orders", produce_error))
                return
            asks_versions = len(first) > 8 and struct.unpack_from(">h", first, 4) == (API_VERSIONS,)
            if asks_versions and serves:
                writer.write(struct.pack(">i", 4) + first[8:12])
            if not (asks_versions or closes):
                await reader.read()  # until the client leaves
        finally:
            writer.close()

    serving = asyncio.create_task(serve())
    SERVING.add(serving)
    serving.add_done_callback(SERVING.discard)
    return near_reader, near_writer


def _produced(topic: str, error: int) -> bytes:
    """Return the beginning of an answer to Produce (version 7)."""
    name = topic.encode()
    answer = struct.pack(f">iih{len(name)}siih", 1, 1, len(name), name, 1, 0, error)
    return struct.pack(">i", len(answer)) + answer


SERVING: set[asyncio.Task[None]] = set()
"""Tasks that nothing else refers to."""

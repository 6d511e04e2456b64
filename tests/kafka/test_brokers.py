import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from harness.errors import ClusterError
from harness.kafka.brokers import described_cluster, listed_brokers


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


TWO = (
    struct.pack(">ii", 1, 2)
    + struct.pack(">i", 5)
    + text("a.example")
    + struct.pack(">i", 9092)
    + text("rack")
    + struct.pack(">i", 6)
    + text("b")
    + struct.pack(">ih", 9093, -1)
    + struct.pack(">ii", 5, 0)
)


@asynccontextmanager
async def answering(answer: Callable[[bytes], bytes]) -> AsyncIterator[int]:
    """The port of a server that answers one request so."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        writer.write(answer(await reader.readexactly(length)))
        writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def framed(body: bytes) -> Callable[[bytes], bytes]:
    return lambda request: struct.pack(">i", len(body)) + body


async def test_brokers_are_listed_with_their_addresses() -> None:
    async with answering(framed(TWO)) as port:
        assert await listed_brokers("127.0.0.1", port, timeout_s=120) == {5: "a.example:9092", 6: "b:9093"}


async def test_a_cluster_is_described_by_the_first_of_its_brokers_that_answers() -> None:
    described = TWO[:-8] + text("its-id") + struct.pack(">ii", 5, 0)
    async with answering(framed(described)) as port:
        addresses = ["127.0.0.1:1", f"127.0.0.1:{port}"]
        assert await described_cluster(addresses, timeout_s=120) == ("its-id", {5: "a.example:9092", 6: "b:9093"})


@pytest.mark.parametrize(
    ("addresses", "text_"),
    [
        pytest.param(["127.0.0.1:1"], "127.0.0.1:1 does not answer a Metadata request", id="no broker is there"),
        pytest.param(["127.0.0.1:kafka"], "invalid literal", id="a port that is none"),
    ],
)
async def test_a_cluster_that_nobody_describes_is_an_error(addresses: list[str], text_: str) -> None:
    with pytest.raises(ClusterError, match=text_):
        await described_cluster(addresses, timeout_s=120)


async def test_the_request_asks_for_no_topics() -> None:
    requests = []

    def answer(request: bytes) -> bytes:
        requests.append(request)
        return framed(TWO)(request)

    async with answering(answer) as port:
        await listed_brokers("127.0.0.1", port, timeout_s=120)
    assert requests == [struct.pack(">hhi", 3, 1, 1) + text("chaos-probe") + struct.pack(">i", 0)]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(lambda _: b"", "does not answer", id="a closed connection"),
        pytest.param(framed(TWO[:30]), "does not answer", id="half an answer"),
        pytest.param(lambda _: b"HTTP/1.1 400", "a response frame of 1213486160 bytes", id="another protocol"),
    ],
)
async def test_an_answer_that_is_no_metadata_is_a_cluster_error(answer: Callable[[bytes], bytes], message: str) -> None:
    async with answering(answer) as port:
        with pytest.raises(ClusterError, match=message):
            await listed_brokers("127.0.0.1", port, timeout_s=120)


async def test_nobody_listening_is_a_cluster_error() -> None:
    with pytest.raises(ClusterError, match="does not answer a Metadata request"):
        await listed_brokers("127.0.0.1", 1, timeout_s=120)

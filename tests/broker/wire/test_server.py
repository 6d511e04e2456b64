"""The server on a real loopback port: order, sizes, and that one broken connection leaves the others alone."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from harness.broker.configs.config import Endpoint
from harness.broker.handlers.apis import APIS
from harness.broker.wire.codec import decode_response, encode_request
from harness.broker.wire.connections import take_in
from harness.broker.wire.dispatch import CloseConnection, Dispatcher, RequestContext
from harness.broker.wire.messages import ApiKey, FetchRequest, FetchResponse, MetadataRequest, MetadataResponse
from harness.broker.wire.server import SocketServer

pytestmark = pytest.mark.real_time("real sockets; what is waited for is a state")

LOGGER = "harness.broker.wire.server"

Serve = Callable[[Mapping[ApiKey, Any]], Awaitable[int]]
Connect = Callable[[int], Awaitable[Any]]


def metadata(correlation_id: int, topic: str = "t") -> bytes:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
    return bytes(encode_request(request, 1, correlation_id=correlation_id, client_id="tester"))


async def echo(request: Any, context: RequestContext) -> Any:
    topic = MetadataResponse.MetadataResponseTopic
    return MetadataResponse(
        topics=[topic(name=requested.name, error_code=0, partitions=[]) for requested in request.topics]
    )


HANDLERS = {ApiKey.METADATA: echo}


def echoed(frame: bytes, correlation_id: int) -> list[str]:
    response = decode_response(ApiKey.METADATA, 1, frame, correlation_id=correlation_id)
    return [topic.name for topic in response.topics]


async def test_pipelined_requests_are_answered_in_order(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve(HANDLERS))

    client.send(b"".join(metadata(number, f"topic-{number}") for number in range(200)))

    for number in range(200):
        assert echoed(await client.frame(), number) == [f"topic-{number}"]


async def test_next_request_is_read_only_after_the_response_to_the_one_before(serve: Serve, connect: Connect) -> None:
    started: list[str] = []
    may_answer = asyncio.Event()
    entered = asyncio.Event()

    async def hold(request: Any, context: RequestContext) -> Any:
        started.append(request.topics[0].name)
        entered.set()
        await may_answer.wait()
        return await echo(request, context)

    port = await serve({ApiKey.METADATA: hold})
    client, other = await connect(port), await connect(port)
    client.send(metadata(1, "first") + metadata(2, "second"))
    await entered.wait()
    entered.clear()
    other.send(metadata(3, "other"))
    await entered.wait()

    assert started == ["first", "other"]
    may_answer.set()
    assert echoed(await client.frame(), 1) == ["first"]
    assert echoed(await client.frame(), 2) == ["second"]


async def test_a_request_may_arrive_byte_by_byte(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve(HANDLERS))

    for byte in metadata(1):
        client.send(bytes([byte]))
        await client.writer.drain()

    assert echoed(await client.frame(), 1) == ["t"]


async def test_response_larger_than_any_socket_buffer_arrives_whole(serve: Serve, connect: Connect) -> None:
    topic = FetchResponse.FetchableTopicResponse
    records = bytes(range(256)) * 100_000

    async def fetch(request: Any, context: RequestContext) -> Any:
        partition = topic.PartitionData(partition_index=0, error_code=0, high_watermark=1, records=records)
        return FetchResponse(responses=[topic(topic="t", partitions=[partition])])

    client = await connect(await serve({ApiKey.FETCH: fetch}))
    for number in (1, 2):
        client.send(bytes(encode_request(FetchRequest(topics=[]), 11, correlation_id=number, client_id="c")))

    for number in (1, 2):
        response = decode_response(ApiKey.FETCH, 11, await client.frame(), correlation_id=number)
        assert response.responses[0].partitions[0].records == records


async def test_request_far_above_the_read_ahead_arrives_whole(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve(HANDLERS))
    topics = [MetadataRequest.MetadataRequestTopic(name=f"{number:030000}") for number in range(300)]

    client.send(bytes(encode_request(MetadataRequest(topics=topics), 1, correlation_id=1, client_id="c")))

    assert echoed(await client.frame(), 1) == [topic.name for topic in topics]


async def test_no_response_is_sent_where_none_is_expected(serve: Serve, connect: Connect) -> None:
    async def first_is_silent(request: Any, context: RequestContext) -> Any:
        return None if request.topics[0].name == "silent" else await echo(request, context)

    client = await connect(await serve({ApiKey.METADATA: first_is_silent}))

    client.send(metadata(1, "silent") + metadata(2, "loud"))

    assert echoed(await client.frame(), 2) == ["loud"]


BAD_FRAMES = [
    pytest.param(b"\0\0\0\0", "a frame of 0 bytes", id="empty frame"),
    pytest.param(b"\xff\xff\xff\xff", "a frame of -1 bytes", id="negative length"),
    pytest.param(b"\x80\0\0\0", "a frame of -2147483648 bytes", id="most negative length"),
    pytest.param(b"\x06\x40\0\x01" + b"x" * 50, "a frame of 104857601 bytes", id="one byte above 100 MiB"),
    pytest.param(b"GET / HTTP/1.1\r\n\r\n", "a frame of 1195725856 bytes", id="HTTP"),
    pytest.param(b"\0\0\0\x01x", "ends inside its header", id="one byte"),
    pytest.param(b"\0\0\0\x0a\x7f\xff\0\0\0\0\0\x01\0\0", "unknown API key 32767", id="unknown API key"),
    pytest.param(b"\0\0\0\x0a\0\x03\0\x63\0\0\0\x01\0\0", "METADATA v99 is not served", id="unsupported version"),
    pytest.param(b"\0\0\0\x0e\0\x03\0\x01\0\0\0\x01\0\0\0\0\0\x09", "MetadataRequest v1", id="malformed body"),
]


@pytest.mark.parametrize(("data", "reason"), BAD_FRAMES)
async def test_bad_frame_closes_its_connection_and_no_other(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture, data: bytes, reason: str
) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)
    port = await serve(HANDLERS)
    good, bad = await connect(port), await connect(port)
    bad.send(metadata(1))
    assert echoed(await bad.frame(), 1) == ["t"]

    bad.send(data)

    assert await bad.closed()
    good.send(metadata(2))
    assert echoed(await good.frame(), 2) == ["t"]
    [line] = [record for record in caplog.records if record.name == LOGGER]
    assert line.levelno == logging.INFO
    assert reason in line.getMessage()


async def test_handler_may_close_the_connection(serve: Serve, connect: Connect) -> None:
    async def refuse(request: Any, context: RequestContext) -> Any:
        raise CloseConnection("not today")

    client = await connect(await serve({ApiKey.METADATA: refuse}))
    client.send(metadata(1))

    assert await client.closed()


async def test_error_of_a_handler_is_logged_with_its_traceback(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(request: Any, context: RequestContext) -> Any:
        if request.topics[0].name == "bad":
            raise KeyError("a mistake of ours")
        return await echo(request, context)

    port = await serve({ApiKey.METADATA: fail})
    good, bad = await connect(port), await connect(port)
    bad.send(metadata(1, "bad"))

    assert await bad.closed()
    good.send(metadata(2))
    assert echoed(await good.frame(), 2) == ["t"]
    [line] = [record for record in caplog.records if record.exc_info]
    assert line.levelno == logging.ERROR
    assert line.exc_info is not None
    assert "a mistake of ours" in str(line.exc_info[1])


async def test_client_that_leaves_in_the_middle_of_a_frame_is_forgotten(serve: Serve, connect: Connect) -> None:
    port = await serve(HANDLERS)
    leaving, staying = await connect(port), await connect(port)

    leaving.send(metadata(1)[:9])
    leaving.writer.transport.abort()

    staying.send(metadata(2))
    assert echoed(await staying.frame(), 2) == ["t"]


async def test_responses_leave_at_once() -> None:
    """Nagle's algorithm is off."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        with socket.create_connection(listening.getsockname()):
            accepted, _ = await loop.sock_accept(listening)
            connection = await take_in("CLIENT", accepted, read_ahead_bytes=1)
            taken = connection.writer.get_extra_info("socket")
            no_delay = taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            connection.close()
            await asyncio.sleep(0)
    assert no_delay


async def test_each_listener_names_itself() -> None:
    names: list[str] = []

    async def remember(request: Any, context: RequestContext) -> Any:
        names.append(context.listener)
        return await echo(request, context)

    server = SocketServer(Dispatcher(APIS, {ApiKey.METADATA: remember}))
    ports = [server.bind(Endpoint(name=name, host="127.0.0.1", port=0)) for name in ("CLIENT", "REPL")]
    await server.serve()
    for port in ports:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(metadata(1))
        await reader.readexactly(4)
        writer.transport.abort()
    await server.stop()

    assert names == ["CLIENT", "REPL"]


async def test_a_listener_has_an_address_of_ipv6() -> None:
    seen: list[tuple[str, str]] = []

    async def remember(request: Any, context: RequestContext) -> Any:
        seen.append((context.listener, context.peer))
        return await echo(request, context)

    server = SocketServer(Dispatcher(APIS, {ApiKey.METADATA: remember}))
    try:
        port = server.bind(Endpoint.parsed("CLIENT://[::1]:0"))
    except OSError as error:
        pytest.skip(f"this machine has no such address: {error}")
    await server.serve()
    reader, writer = await asyncio.open_connection("::1", port)
    own_port = writer.get_extra_info("sockname")[1]
    writer.write(metadata(1))
    await reader.readexactly(4)
    writer.transport.abort()
    await server.stop()

    assert seen == [("CLIENT", f"::1:{own_port}")]


async def test_client_that_comes_before_serving_begins_waits_for_it(connect: Connect) -> None:
    server = SocketServer(Dispatcher(APIS, HANDLERS))
    port = server.bind(Endpoint(name="CLIENT", host="127.0.0.1", port=0))
    client = await connect(port)
    client.send(metadata(1))

    await server.serve()

    assert echoed(await client.frame(), 1) == ["t"]
    await server.stop()


async def test_taken_port_is_named() -> None:
    first, second = SocketServer(Dispatcher(APIS, {})), SocketServer(Dispatcher(APIS, {}))
    port = first.bind(Endpoint(name="CLIENT", host="127.0.0.1", port=0))

    with pytest.raises(OSError, match=f"cannot listen on CLIENT://127.0.0.1:{port}: Address already in use"):
        second.bind(Endpoint(name="CLIENT", host="127.0.0.1", port=port))
    await first.stop()


async def test_stop_frees_the_port_drops_connections_and_cancels_requests(connect: Connect) -> None:
    entered = asyncio.Event()
    cancelled = asyncio.Event()

    async def hang(request: Any, context: RequestContext) -> Any:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    server = SocketServer(Dispatcher(APIS, {ApiKey.METADATA: hang}))
    port = server.bind(Endpoint(name="CLIENT", host="127.0.0.1", port=0))
    await server.serve()
    busy, idle = await connect(port), await connect(port)
    busy.send(metadata(1))
    await entered.wait()

    await server.stop()

    assert cancelled.is_set()
    assert await busy.closed()
    assert await idle.closed()
    again = SocketServer(Dispatcher(APIS, HANDLERS))
    assert again.bind(Endpoint(name="CLIENT", host="127.0.0.1", port=port)) == port
    await again.stop()

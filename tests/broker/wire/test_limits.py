"""What one client, or many, can take of a broker: each limit on real sockets."""

import asyncio
import socket
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from harness.broker.configs.config import Endpoint, parse_config
from harness.broker.handlers.apis import APIS
from harness.broker.wire.codec import encode_request
from harness.broker.wire.dispatch import Dispatcher, RequestContext
from harness.broker.wire.limits import ServerLimits, server_limits
from harness.broker.wire.messages import ApiKey, FetchRequest, FetchResponse, MetadataRequest, MetadataResponse
from harness.broker.wire.server import READ_AHEAD_BYTES, SocketServer

pytestmark = pytest.mark.real_time("real sockets; what is waited for is a state")

PATIENCE_S = 120
MB = 1_000_000
BATCH = 100_000
"""What the handler sends at least."""

Serve = Callable[..., Awaitable[int]]
Connect = Callable[..., Awaitable[Any]]
_Topic = FetchResponse.FetchableTopicResponse


async def answer(request: Any, context: RequestContext) -> Any:
    return MetadataResponse(brokers=[], topics=[])


async def fetch(request: Any, context: RequestContext) -> Any:
    """As many bytes as are asked for and there is room, at least one batch."""
    records = bytes(max(BATCH, min(request.max_bytes, context.room())))
    partition = _Topic.PartitionData(partition_index=0, error_code=0, high_watermark=1, records=records)
    return FetchResponse(responses=[_Topic(topic="t", partitions=[partition])])


HANDLERS = {ApiKey.METADATA: answer, ApiKey.FETCH: fetch}


def metadata(correlation_id: int = 1, *, name: str = "t") -> bytes:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)])
    return bytes(encode_request(request, 1, correlation_id=correlation_id, client_id="c"))


def fetching(max_bytes: int) -> bytes:
    return bytes(encode_request(FetchRequest(max_bytes=max_bytes, topics=[]), 11, correlation_id=1, client_id="c"))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  what is waited for happens in the server, which has no events for tests
            await asyncio.sleep(0)


async def served(client: Any) -> bool:
    """Whether a request is answered; False when the connection is closed instead."""
    client.send(metadata())
    try:
        await client.frame()
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return False
    return True


@pytest.fixture
async def server() -> AsyncIterator[Callable[..., Awaitable[tuple[SocketServer, list[int]]]]]:
    """Starts servers with a listener for clients and one for brokers; returns each with its ports."""
    running: list[SocketServer] = []

    async def start(handlers: Any, limits: ServerLimits) -> tuple[SocketServer, list[int]]:
        made = SocketServer(Dispatcher(APIS, handlers), limits)
        running.append(made)
        ports = [made.bind(Endpoint(name=name, host="127.0.0.1", port=0)) for name in ("CLIENT", "REPL")]
        await made.serve()
        return made, ports

    yield start
    for each in running:
        await each.stop()


# --- sizes ---


async def test_a_request_larger_than_allowed_closes_its_connection(serve: Serve, connect: Connect) -> None:
    port = await serve(HANDLERS, ServerLimits(max_request_bytes=len(metadata()) - 4))
    fits, larger = await connect(port), await connect(port)

    larger.send(metadata(name="tt"))

    assert await larger.closed()
    assert await served(fits)


# --- connections ---


async def test_one_connection_too_many_from_an_address_is_closed(serve: Serve, connect: Connect) -> None:
    port = await serve(HANDLERS, ServerLimits(max_connections_per_address=2, addresses={"127.0.0.2": 1}))
    first, second = await connect(port), await connect(port)
    assert await served(first)
    assert await served(second)

    assert await (await connect(port)).closed()
    assert await served(await connect(port, "127.0.0.2"))
    assert await (await connect(port, "127.0.0.2")).closed()
    assert await served(await connect(port, "127.0.0.3"))


async def test_a_closed_connection_makes_room_for_another_of_its_address(server: Any, connect: Connect) -> None:
    made, (port, _) = await server(HANDLERS, ServerLimits(max_connections_per_address=1))
    first = await connect(port)
    assert await served(first)
    first.writer.transport.abort()
    await until(lambda: len(made.connections) == 0)

    assert await served(await connect(port))


async def test_a_connection_without_a_place_waits_until_one_is_free(server: Any, connect: Connect) -> None:
    made, (port, _) = await server(HANDLERS, ServerLimits(max_connections=2))
    clients = [await connect(port) for _ in range(3)]
    assert await served(clients[0])
    assert await served(clients[1])
    clients[2].send(metadata())
    assert await served(clients[0])
    assert len(made.connections) == 2

    clients[0].writer.transport.abort()

    await clients[2].frame()
    assert await served(clients[1])


async def test_a_broker_is_let_in_at_the_cost_of_who_was_silent_longest(server: Any, connect: Connect) -> None:
    made, (for_clients, for_brokers) = await server(
        HANDLERS, ServerLimits(max_connections=3, protected_listener="REPL")
    )
    broker, silent, busy = await connect(for_brokers), await connect(for_clients), await connect(for_clients)
    for client in (broker, silent, busy):
        assert await served(client)

    another = await connect(for_brokers)

    assert await served(another)
    assert await silent.closed()
    assert await served(busy)
    assert await served(broker)
    assert len(made.connections) == 3


# --- silence ---


async def test_an_idle_connection_is_closed_and_a_busy_one_is_not(serve: Serve, connect: Connect) -> None:
    port = await serve(HANDLERS, ServerLimits(max_idle_s=1.0))
    idle, busy = await connect(port), await connect(port)
    assert await served(idle)
    closing = asyncio.create_task(idle.closed())

    while not closing.done():
        assert await served(busy)

    assert closing.result()


@pytest.mark.parametrize("sent", [b"", b"\0\0", metadata()[:9]], ids=["nothing", "half a length", "half a request"])
async def test_who_stops_in_the_middle_of_a_request_is_idle(serve: Serve, connect: Connect, sent: bytes) -> None:
    client = await connect(await serve(HANDLERS, ServerLimits(max_idle_s=0.05)))
    client.send(sent)
    assert await client.closed()


async def test_a_request_in_progress_does_not_keep_a_connection(serve: Serve, connect: Connect) -> None:
    """As in Kafka; the request itself goes on."""
    entered, may_answer, answered = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hold(request: Any, context: RequestContext) -> Any:
        entered.set()
        await may_answer.wait()
        answered.set()
        return await answer(request, context)

    client = await connect(await serve({ApiKey.METADATA: hold}, ServerLimits(max_idle_s=0.5)))
    client.send(metadata())
    await entered.wait()
    assert await client.closed()
    may_answer.set()
    await answered.wait()


async def test_without_a_limit_nobody_is_too_idle(server: Any, connect: Connect) -> None:
    made, (port, _) = await server(HANDLERS, ServerLimits(max_idle_s=-0.001))
    client = await connect(port)
    assert await served(client)
    await made.connections.close_idle()  # returns, as there is nothing to watch
    assert await served(client)


async def test_who_does_not_take_a_response_is_closed(server: Any, connect: Connect) -> None:
    made, (port, _) = await server(HANDLERS, ServerLimits(max_idle_s=1.0))
    client = await connect(port)
    client.writer.transport.pause_reading()
    client.send(fetching(30 * MB))
    await until(lambda: made.responses.held_bytes > 0)

    await until(lambda: len(made.connections) == 0)

    assert made.responses.held_bytes == 0


# --- memory ---


async def test_requests_are_read_only_while_there_is_memory(server: Any, connect: Connect) -> None:
    entered: list[str] = []
    may_answer = asyncio.Event()

    async def hold(request: Any, context: RequestContext) -> Any:
        entered.append(request.topics[0].name[:1])
        await may_answer.wait()
        return await answer(request, context)

    made, (port, _) = await server({ApiKey.METADATA: hold}, ServerLimits(queued_request_bytes=2000))
    clients = [await connect(port) for _ in range(3)]

    def has_come(name: str) -> bool:
        return name in entered or len(entered) == 2

    for name, client in zip("abc", clients, strict=True):
        client.send(metadata(name=name * 1500))
        await until(partial(has_come, name))

    for _ in range(100):
        await asyncio.sleep(0)
    assert (entered, made.requests.taken_bytes > 3000) == (["a", "b"], True)
    may_answer.set()
    for client in clients:
        await client.frame()
    assert (entered, made.requests.taken_bytes) == (["a", "b", "c"], 0)


async def test_a_client_that_leaves_in_the_middle_of_a_request_gives_its_memory_back(
    server: Any, connect: Connect
) -> None:
    made, (port, _) = await server(HANDLERS, ServerLimits(queued_request_bytes=2000))
    leaving, waiting = await connect(port), await connect(port)
    leaving.send(metadata(name="x" * 3000)[:1000])
    await until(lambda: made.requests.taken_bytes > 3000)
    waiting.send(metadata())

    leaving.writer.transport.abort()

    await waiting.frame()
    assert made.requests.taken_bytes == 0


async def test_what_a_client_sends_ahead_is_not_read(server: Any) -> None:
    entered = asyncio.Event()

    async def hang(request: Any, context: RequestContext) -> Any:
        entered.set()
        await asyncio.Event().wait()

    made, (port, _) = await server({ApiKey.METADATA: hang}, ServerLimits())
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setblocking(False)
        requests = metadata() * 1000
        sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(client, requests * 2000))
        await entered.wait()
        (connection,) = made.connections
        await until(lambda: not connection.writer.transport.is_reading())
        assert len(connection.reader._buffer) <= 2 * READ_AHEAD_BYTES + 256 * 1024
        assert not sending.done()
        sending.cancel()


@pytest.mark.parametrize("clients", [20])
async def test_clients_that_never_read_hold_no_more_than_they_may(server: Any, clients: int) -> None:
    """Each asks for 20 MB; together they get the room that there is, and then a batch each."""
    room = 30 * MB
    made, (port, _) = await server(HANDLERS, ServerLimits(untaken_response_bytes=room))
    opened = []
    tracemalloc.start()
    try:
        for _ in range(clients):
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(fetching(20 * MB))
            opened.append(client)
        reading = socket.create_connection(("127.0.0.1", port))
        reading.setblocking(False)
        opened.append(reading)
        await until(lambda: len(made.connections) == clients + 1 and made.responses.held_bytes > room - 10 * MB)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(reading, fetching(20 * MB))
        assert len(await loop.sock_recv(reading, 100)) == 100, "a reading client is served all the same"
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        for client in opened:
            client.close()
    assert made.responses.held_bytes <= room + clients * BATCH
    assert held < room + clients * BATCH + 10 * MB
    await until(lambda: len(made.connections) == 0)
    assert made.responses.held_bytes == 0


# --- what the kernel holds ---


@pytest.mark.parametrize("backlog", [1, 20])
async def test_so_many_connections_wait_to_be_accepted(backlog: int) -> None:
    server = SocketServer(Dispatcher(APIS, HANDLERS), ServerLimits(backlog=backlog))
    port = server.bind(Endpoint(name="CLIENT", host="127.0.0.1", port=0))
    with ExitStack() as clients:
        waiting = [clients.enter_context(socket.socket()) for _ in range(60)]
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        assert sum(is_connected(client) for client in waiting) == backlog + 1, "Linux takes one more"
    await server.stop()


def is_connected(client: socket.socket) -> bool:
    try:
        client.getpeername()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("size", [8_000, 60_000])
async def test_buffers_of_connections_have_the_size_that_was_asked_for(
    server: Any, connect: Connect, size: int
) -> None:
    limits = ServerLimits(send_buffer_bytes=size, receive_buffer_bytes=size + 1_000)
    assert await buffers(server, connect, limits) == (2 * size, 2 * (size + 1_000)), "Linux counts its own part too"


async def test_buffers_may_be_left_to_the_kernel(server: Any, connect: Connect) -> None:
    limits = ServerLimits(send_buffer_bytes=-1, receive_buffer_bytes=-1)
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()):
        untouched, _ = listening.accept()
        with untouched:
            assert await buffers(server, connect, limits) == sizes(untouched)


async def buffers(server: Any, connect: Connect, limits: ServerLimits) -> tuple[int, int]:
    """How large the buffers of a connection to a server with these limits are, to send from and to receive into."""
    made, (port, _) = await server(HANDLERS, limits)
    assert await served(await connect(port))
    (connection,) = made.connections
    return sizes(connection.writer.get_extra_info("socket"))


def sizes(of: Any) -> tuple[int, int]:
    send, receive = (of.getsockopt(socket.SOL_SOCKET, option) for option in (socket.SO_SNDBUF, socket.SO_RCVBUF))
    return send, receive


# --- configuration ---

MINIMAL = {
    "broker.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,REPL://127.0.0.1:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,REPL:PLAINTEXT",
    "inter.broker.listener.name": "REPL",
    "log.dir": "/data",
    "zookeeper.connect": "127.0.0.1:2181",
}


def test_the_limits_are_kafkas_by_default() -> None:
    assert server_limits(parse_config(MINIMAL)) == ServerLimits(protected_listener="REPL")


def test_the_limits_are_what_the_properties_say() -> None:
    properties = {
        "socket.request.max.bytes": "1000",
        "queued.max.request.bytes": "1000",
        "max.connections": "10",
        "max.connections.per.ip": "5",
        "max.connections.per.ip.overrides": "127.0.0.2:3, localhost:7",
        "connections.max.idle.ms": "1500",
        "socket.listen.backlog.size": "7",
        "socket.receive.buffer.bytes": "8000",
        "socket.send.buffer.bytes": "-1",
        "listeners": "REPL://127.0.0.1:9093",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,REPL:PLAINTEXT",
    }
    assert server_limits(parse_config(MINIMAL | properties)) == ServerLimits(
        max_request_bytes=1000,
        queued_request_bytes=1000,
        max_connections=10,
        max_connections_per_address=5,
        addresses={"127.0.0.2": 3, "127.0.0.1": 7},
        max_idle_s=1.5,
        backlog=7,
        receive_buffer_bytes=8000,
        send_buffer_bytes=-1,
        protected_listener=None,
    )

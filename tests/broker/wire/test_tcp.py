"""Calling a peer: answers, time limits, and that a broken connection says so and stays closed."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.messages import ApiKey, ControlledShutdownRequest, ControlledShutdownResponse
from harness.broker.wire.tcp import TcpConnection, TcpTransport
from harness.broker.wire.transport import Connection, PeerError

pytestmark = pytest.mark.real_time("real sockets; what is waited for is a state")

PATIENCE_S = 120

Serve = Callable[[Mapping[ApiKey, Any]], Awaitable[int]]
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
REQUEST_VERSION = 3


@pytest.fixture
async def scripted() -> AsyncIterator[Callable[[Script], Awaitable[int]]]:
    """Starts a peer that does what the script says; returns its port."""
    servers: list[asyncio.Server] = []
    peers: list[asyncio.Task[Any]] = []

    async def start(script: Script) -> int:
        async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await script(reader, writer)
            finally:
                writer.transport.abort()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peers.append(asyncio.create_task(run(reader, writer)))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    yield start
    for server in servers:
        server.close()
    for peer in peers:
        peer.cancel()
    await asyncio.gather(*peers, return_exceptions=True)


def request(broker_id: int = 1) -> ControlledShutdownRequest:
    return ControlledShutdownRequest(broker_id=broker_id, broker_epoch=5)


async def opened(port: int) -> Connection:
    return await TcpTransport().connect("127.0.0.1", port, client_id="broker-1", timeout_s=PATIENCE_S)


async def echo_broker_id(request: Any, context: RequestContext) -> Any:
    return ControlledShutdownResponse(error_code=request.broker_id, remaining_partitions=[])


async def test_requests_are_answered_with_messages(serve: Serve) -> None:
    seen: list[str] = []

    async def handler(request: Any, context: RequestContext) -> Any:
        seen.append(context.client_id)
        return await echo_broker_id(request, context)

    connection = await opened(await serve({ApiKey.CONTROLLED_SHUTDOWN: handler}))

    for number in range(3):
        response = await connection.request(request(number), REQUEST_VERSION, timeout_s=PATIENCE_S)
        assert response.error_code == number
    assert seen == ["broker-1"] * 3
    connection.close()


async def test_requests_leave_at_once(serve: Serve) -> None:
    connection = await opened(await serve({}))

    assert isinstance(connection, TcpConnection)
    assert connection._writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    connection.close()


async def test_requests_of_several_tasks_take_turns(serve: Serve) -> None:
    in_flight = 0

    async def handler(request: Any, context: RequestContext) -> Any:
        nonlocal in_flight
        in_flight += 1
        await asyncio.sleep(0)
        assert in_flight == 1
        in_flight -= 1
        return await echo_broker_id(request, context)

    connection = await opened(await serve({ApiKey.CONTROLLED_SHUTDOWN: handler}))

    responses = await asyncio.gather(
        *(connection.request(request(number), REQUEST_VERSION, timeout_s=PATIENCE_S) for number in range(10))
    )

    assert [response.error_code for response in responses] == list(range(10))
    connection.close()


async def test_refused_connection_is_a_peer_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

    with pytest.raises(PeerError, match=f"connecting to 127.0.0.1:{port}: .*"):
        await opened(port)


async def test_connecting_gives_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", never)

    with pytest.raises(PeerError, match=r"connecting to 127.0.0.1:1: not within 0.01 s"):
        await TcpTransport().connect("127.0.0.1", 1, client_id="c", timeout_s=0.01)


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


def answer(data: bytes, *, then_close: bool = False) -> Script:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
        writer.write(data)
        await writer.drain()
        if not then_close:
            await reader.read()

    return script


@pytest.mark.parametrize(
    ("script", "timeout_s", "message"),
    [
        pytest.param(silence, 0.01, "no response within 0.01 s", id="silence"),
        pytest.param(answer(b"", then_close=True), PATIENCE_S, "closed before the response", id="peer closes"),
        pytest.param(
            answer(b"\0\0\0\x40half", then_close=True),
            PATIENCE_S,
            "closed before the response",
            id="peer closes halfway",
        ),
        pytest.param(answer(b"\xff\xff\xff\xff"), PATIENCE_S, "a response frame of -1 bytes", id="negative length"),
        pytest.param(answer(b"\x06\x40\0\x01"), PATIENCE_S, "a response frame of 104857601", id="too long"),
        pytest.param(answer(b"\0\0\0\x02xx"), PATIENCE_S, "ends inside its header", id="too short"),
        pytest.param(
            answer(b"\0\0\0\x09\0\0\0\x63\0\0\0\x01\0"), PATIENCE_S, "to request 99, expected one to 1", id="stray"
        ),
        pytest.param(
            answer(b"\0\0\0\x07\0\0\0\x01\0\0\0"), PATIENCE_S, "ControlledShutdownResponse v3", id="malformed response"
        ),
    ],
)
async def test_trouble_is_a_peer_error_and_closes_the_connection(
    scripted: Callable[[Script], Awaitable[int]], script: Script, timeout_s: float, message: str
) -> None:
    connection = await opened(await scripted(script))

    with pytest.raises(PeerError, match=message):
        await connection.request(request(), REQUEST_VERSION, timeout_s=timeout_s)

    with pytest.raises(PeerError, match="the connection is closed"):
        await connection.request(request(), REQUEST_VERSION, timeout_s=timeout_s)


async def hanging(serve: Serve) -> tuple[Connection, asyncio.Task[Any]]:
    """Return a connection, and a request on it that has come to a server that does not answer."""
    entered = asyncio.Event()

    async def hang(request: Any, context: RequestContext) -> Any:
        entered.set()
        await asyncio.Event().wait()

    connection = await opened(await serve({ApiKey.CONTROLLED_SHUTDOWN: hang}))
    pending = asyncio.create_task(connection.request(request(), REQUEST_VERSION, timeout_s=PATIENCE_S))
    await entered.wait()
    return connection, pending


async def test_closing_fails_the_pending_request(serve: Serve) -> None:
    connection, pending = await hanging(serve)
    connection.close()
    with pytest.raises(PeerError, match="closed before the response"):
        await pending


async def test_cancelled_request_closes_the_connection(serve: Serve) -> None:
    connection, pending = await hanging(serve)
    pending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pending
    with pytest.raises(PeerError, match="the connection is closed"):
        await connection.request(request(), REQUEST_VERSION, timeout_s=PATIENCE_S)

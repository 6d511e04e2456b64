"""A server on a loopback port, and a client that sends it whatever bytes a test likes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

import pytest

from harness.broker.configs.config import Endpoint
from harness.broker.handlers.apis import APIS
from harness.broker.wire.dispatch import Dispatcher, Handler
from harness.broker.wire.limits import ServerLimits
from harness.broker.wire.messages import ApiKey
from harness.broker.wire.server import SocketServer

PATIENCE_S = 120

Serve = Callable[..., Awaitable[int]]


class RawClient:
    """Sends and receives frames as they are."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def frame(self) -> bytes:
        """The next response, without its length."""
        async with asyncio.timeout(PATIENCE_S):
            size = int.from_bytes(await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def closed(self) -> bool:
        """Whether the server closes the connection without sending anything more."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                return await self.reader.read(1) == b""
            except ConnectionResetError:
                return True


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts servers with the given handlers; each call returns its port."""
    async with AsyncExitStack() as running:

        async def start(handlers: Mapping[ApiKey, Handler], limits: ServerLimits | None = None) -> int:
            server = SocketServer(Dispatcher(APIS, handlers), limits)
            port = server.bind(Endpoint(name="CLIENT", host="127.0.0.1", port=0))
            running.push_async_callback(server.stop)
            await server.serve()
            return port

        yield start


@pytest.fixture
async def connect() -> AsyncIterator[Callable[..., Awaitable[RawClient]]]:
    """Opens raw connections to a port."""
    async with AsyncExitStack() as opened:

        async def open_one(port: int, address: str = "127.0.0.1") -> RawClient:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))

            async def close() -> None:
                writer.transport.abort()
                await asyncio.sleep(0)

            opened.push_async_callback(close)
            return RawClient(reader, writer)

        yield open_one

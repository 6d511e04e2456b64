"""Serves requests on TCP: any number of listeners, one task a connection, one request at a time on each.

A request is read only when the response to the one before it is on its way, so a client that pipelines gets its
responses in order and a slow reader costs its own connection only.
"""

import asyncio
import logging
import socket
from functools import partial

from harness.broker.config import Endpoint
from harness.broker.wire.dispatch import CloseConnection, Dispatcher

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 100 * 1024 * 1024
_READ_AHEAD_BYTES = 1024 * 1024
_BACKLOG = 128


class SocketServer:
    """Owns the listening sockets and every connection that came in by them."""

    def __init__(self, dispatcher: Dispatcher, *, max_request_bytes: int = MAX_REQUEST_BYTES) -> None:
        self._dispatcher = dispatcher
        self._max_request_bytes = max_request_bytes
        self._sockets: list[tuple[str, socket.socket]] = []
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._stopped = False

    def bind(self, endpoint: Endpoint) -> int:
        """Take the endpoint's port and return it; port 0 takes any free one.

        Clients can connect from now on, and wait until `serve`.

        Raises:
            OSError: the port is taken or the host is not of this machine; the message names both.
        """
        family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
        try:
            listening = socket.create_server((endpoint.host, endpoint.port), family=family, backlog=_BACKLOG)
        except OSError as error:
            where = f"{endpoint.name}://{endpoint.host}:{endpoint.port}"
            raise OSError(error.errno, f"cannot listen on {where}: {error.strerror}") from error
        self._sockets.append((endpoint.name, listening))
        port: int = listening.getsockname()[1]
        return port

    async def serve(self) -> None:
        """Accept connections on every bound endpoint."""
        for listener, listening in self._sockets:
            accept = partial(self._accept, listener)
            self._servers.append(
                await asyncio.start_server(accept, sock=listening, limit=_READ_AHEAD_BYTES, backlog=_BACKLOG)
            )

    async def stop(self) -> None:
        """Give up the ports and drop every connection; requests in progress are cancelled."""
        self._stopped = True
        for server in self._servers:
            server.close()
        for _, listening in self._sockets:
            listening.close()
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()
        self._sockets.clear()

    def _accept(self, listener: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._stopped:  # asyncio had accepted it before the listening socket was closed
            writer.transport.abort()
            return
        host, port = (writer.get_extra_info("peername") or ("gone", 0))[:2]
        peer = f"{host}:{port}"
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        writer.transport.set_write_buffer_limits(high=0)  # drain() returns when the response is with the kernel
        connection = asyncio.create_task(self._converse(listener, peer, reader, writer), name=f"connection {peer}")
        self._connections.add(connection)
        connection.add_done_callback(partial(self._ended, peer))

    async def _converse(
        self, listener: str, peer: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer one request after another until either side ends it."""
        try:
            while True:
                response = await self._dispatcher.dispatch(await self._read_frame(reader), listener, peer)
                if response is not None:
                    writer.write(response)
                    del response  # a slow reader must not hold it twice: what is not sent yet is with the transport
                    await writer.drain()
        except CloseConnection as reason:
            log.info("connection.refused listener=%s peer=%s reason=%s", listener, peer, reason)
        except (asyncio.IncompleteReadError, ConnectionError) as end:
            log.debug("connection.ended listener=%s peer=%s reason=%s", listener, peer, end)
        finally:
            writer.transport.abort()

    async def _read_frame(self, reader: asyncio.StreamReader) -> bytes:
        size = int.from_bytes(await reader.readexactly(4), signed=True)
        if not 0 < size <= self._max_request_bytes:
            raise CloseConnection(f"a frame of {size} bytes, allowed are 1 to {self._max_request_bytes}")
        return await reader.readexactly(size)

    def _ended(self, peer: str, connection: asyncio.Task[None]) -> None:
        self._connections.discard(connection)
        if not connection.cancelled() and (error := connection.exception()) is not None:
            log.error("connection.failed peer=%s", peer, exc_info=error)

"""Serves requests on TCP: any number of listeners, one task a connection, one request at a time on each.

A request is read only when the response to the one before it is on its way, so a client that pipelines gets its
responses in order and a slow reader costs its own connection only.
"""

import asyncio
import logging
import socket
from collections.abc import Coroutine
from typing import Any

from harness.broker.background import begin
from harness.broker.configs.config import Endpoint
from harness.broker.wire.connections import ClientConnection, Connections, take_in
from harness.broker.wire.dispatch import CloseConnection, Dispatcher
from harness.broker.wire.limits import RequestMemory, ResponseMemory, ServerLimits

log = logging.getLogger(__name__)

READ_AHEAD_BYTES = 128 * 1024
"""Of the next requests of a connection, while one is answered: twice this and one more read at most."""
_ACCEPT_AGAIN_S = 1.0


class SocketServer:
    """Owns the listening sockets and every connection that came in by them."""

    def __init__(self, dispatcher: Dispatcher, limits: ServerLimits | None = None) -> None:
        self._dispatcher = dispatcher
        self._limits = limits or ServerLimits()
        self.connections = Connections(self._limits)
        self.requests = RequestMemory(self._limits.queued_request_bytes)
        self.responses = ResponseMemory(self._limits.untaken_response_bytes)
        self._sockets: list[tuple[str, socket.socket]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def bind(self, endpoint: Endpoint) -> int:
        """Take the endpoint's port and return it; port 0 takes any free one.

        Clients can connect from now on, and wait until `serve`.

        Raises:
            OSError: the port is taken or the host is not of this machine; the message names both.
        """
        try:
            listening = self._listening(endpoint)
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {endpoint}: {error.strerror}") from error
        listening.setblocking(False)
        self._sockets.append((endpoint.name, listening))
        port: int = listening.getsockname()[1]
        return port

    def _listening(self, endpoint: Endpoint) -> socket.socket:
        """Return a socket that listens; each connection has its buffer for what comes in from the first byte on."""
        listening = socket.socket(socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if listening.family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            _set_buffer(listening, socket.SO_RCVBUF, self._limits.receive_buffer_bytes)
            listening.bind((endpoint.host, endpoint.port))
            listening.listen(self._limits.backlog)
        except OSError:
            listening.close()
            raise
        return listening

    async def serve(self) -> None:
        """Accept connections on every bound endpoint."""
        for listener, listening in self._sockets:
            self._run(self._accept(listener, listening), f"accept {listener}")
        self._run(self.connections.close_idle(), "idle connections")

    async def stop(self) -> None:
        """Give up the ports and drop every connection; requests in progress are cancelled."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, listening in self._sockets:
            listening.close()
        self._sockets.clear()

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return begin(self._tasks, work, name)

    async def _accept(self, listener: str, listening: socket.socket) -> None:
        """Take connections in as long as there are places; in between they wait with the kernel."""
        loop = asyncio.get_running_loop()
        while True:
            await self.connections.place(listener)
            try:
                accepted, address = await loop.sock_accept(listening)
            except OSError as error:  # too many open files, or the client is gone
                log.error("server.accept failed listener=%s error=%s", listener, error)
                await asyncio.sleep(_ACCEPT_AGAIN_S)
                continue
            if self.connections.may_come(address[0]):
                await self._welcome(listener, accepted)
            else:
                log.info("connection.refused listener=%s peer=%s:%d reason=too many", listener, *address[:2])
                accepted.close()

    async def _welcome(self, listener: str, accepted: socket.socket) -> None:
        try:
            _set_buffer(accepted, socket.SO_SNDBUF, self._limits.send_buffer_bytes)
            connection = await take_in(listener, accepted, read_ahead_bytes=READ_AHEAD_BYTES)
        except OSError as error:
            log.debug("connection.ended listener=%s reason=%s", listener, error)
            accepted.close()
            return
        self.connections.add(connection)
        task = self._run(self.converse(connection), f"connection {connection.peer}")
        task.add_done_callback(lambda _: self._left(connection))  # not in the task, which may end before its first step

    def _left(self, connection: ClientConnection) -> None:
        connection.close()
        self.connections.remove(connection)

    async def converse(self, connection: ClientConnection) -> None:
        """Answer one request after another until either side ends it."""
        where = (connection.listener, connection.peer)
        try:
            while True:
                response = await self._answer(connection)
                if response is not None:
                    connection.writer.write(response)
                    del response  # a slow reader must not hold it twice: what is not sent yet is with the transport
                    connection.written_s = asyncio.get_running_loop().time()
                    await self._taken(connection)
        except CloseConnection as reason:
            log.info("connection.refused listener=%s peer=%s reason=%s", *where, reason)
        except (asyncio.IncompleteReadError, ConnectionError) as end:
            log.debug("connection.ended listener=%s peer=%s reason=%s", *where, end)

    async def _answer(self, connection: ClientConnection) -> bytearray | None:
        """Read the next request and return the response to it; its memory is taken until then."""
        size = int.from_bytes(await connection.reader.readexactly(4), signed=True)
        if not 0 < size <= self._limits.max_request_bytes:
            raise CloseConnection(f"a frame of {size} bytes, allowed are 1 to {self._limits.max_request_bytes}")
        await self.requests.take(size)
        try:
            return await self._dispatcher.dispatch(
                await connection.reader.readexactly(size), connection.listener, connection.peer, self.responses.room
            )
        finally:
            self.requests.give_back(size)

    async def _taken(self, connection: ClientConnection) -> None:
        """Return when the client has taken all of its response, or at once when the kernel has."""
        untaken_bytes = connection.writer.transport.get_write_buffer_size()
        if untaken_bytes:
            with self.responses.holding(untaken_bytes):
                await connection.writer.drain()
        else:
            await connection.writer.drain()


def _set_buffer(of: socket.socket, option: int, size_bytes: int) -> None:
    """Set a buffer's size; the kernel rounds it, and holds it within bounds of its own."""
    if size_bytes != -1:
        of.setsockopt(socket.SOL_SOCKET, option, size_bytes)

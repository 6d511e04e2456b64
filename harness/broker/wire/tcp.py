"""Calls peers over TCP: the transport of a real cluster."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from harness.broker.wire.codec import MalformedMessage, decode_response, encode_request
from harness.broker.wire.transport import Connection, Message, PeerError

log = logging.getLogger(__name__)

MAX_RESPONSE_BYTES = 100 * 1024 * 1024
_READ_AHEAD_BYTES = 1024 * 1024
_MAX_CORRELATION_ID = 2**31 - 1


class TcpConnection:
    """One connection; requests of several tasks take turns."""

    def __init__(self, peer: str, client_id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._peer = peer
        self._client_id = client_id
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0
        self._turn = asyncio.Lock()

    @property
    def closed(self) -> bool:
        """Whether either side has closed it, as far as is known here."""
        return self._writer.is_closing() or self._reader.at_eof()

    async def request(self, message: Message, version: int, *, timeout_s: float) -> Message:
        """Send a request and return the decoded response; raises PeerError, after which the connection is useless.

        The time starts when the requests before this one are answered. A cancelled request closes the connection too,
        because its response may still come.
        """
        async with self._turn:
            if self.closed:
                raise PeerError(f"{message.name} to {self._peer}: the connection is closed")
            answered = False
            try:
                async with asyncio.timeout(timeout_s):
                    response = await self._exchange(message, version)
                answered = True
            except TimeoutError:
                raise PeerError(f"{message.name} to {self._peer}: no response within {timeout_s:g} s") from None
            except asyncio.IncompleteReadError:
                raise PeerError(f"{message.name} to {self._peer}: closed before the response") from None
            except (OSError, MalformedMessage) as error:
                raise PeerError(f"{message.name} to {self._peer}: {error}") from error
            finally:
                if not answered:
                    self.close()
        return response

    def close(self) -> None:
        """Drop the connection at once; a pending request fails with PeerError."""
        self._writer.transport.abort()

    async def _exchange(self, message: Message, version: int) -> Message:
        self._correlation_id = self._correlation_id % _MAX_CORRELATION_ID + 1
        sent = self._correlation_id
        self._writer.write(encode_request(message, version, correlation_id=sent, client_id=self._client_id))
        await self._writer.drain()
        size = int.from_bytes(await self._reader.readexactly(4), signed=True)
        if not 0 < size <= MAX_RESPONSE_BYTES:
            raise MalformedMessage(f"a response frame of {size} bytes")
        frame = await self._reader.readexactly(size)
        return decode_response(message.API_KEY, version, frame, correlation_id=sent)


Open = Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connects to a host and port; raises OSError."""


async def plain(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return both ends of a connection without TLS and SASL."""
    return await asyncio.open_connection(host, port, limit=_READ_AHEAD_BYTES)


class TcpTransport:
    """Opens TCP connections; Nagle's algorithm is off, as asyncio has it."""

    def __init__(self, open_connection: Open = plain) -> None:
        self._open = open_connection

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> Connection:
        """Connect to a peer's listener; raises PeerError."""
        peer = f"{host}:{port}"
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await self._open(host, port)
        except TimeoutError:
            raise PeerError(f"connecting to {peer}: not within {timeout_s:g} s") from None
        except OSError as error:
            raise PeerError(f"connecting to {peer}: {error}") from error
        log.debug("peer.connected peer=%s client=%s", peer, client_id)
        return TcpConnection(peer, client_id, reader, writer)

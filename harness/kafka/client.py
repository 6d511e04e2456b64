"""One connection to a broker of any release: each request in the latest version that both sides know (KIP-35)."""

import asyncio
import struct
from collections.abc import Mapping
from typing import Any, Protocol

from harness.kafka.apis import API_VERSIONS
from harness.kafka.codec import STRING, Api, Field, Malformed, Values, decode, encode

_MAX_CORRELATION_ID = 2**31 - 1
_HEADER = struct.Struct(">hhi")
"""API, version, correlation id; the client's id follows."""
_CLIENT_ID = (Field("client_id", STRING),)


class NoAnswer(Exception):
    """A broker could not be reached, closed the connection, or did not answer in time."""


class Stream(Protocol):
    """Carries frames, without their length, to one broker and back, in order."""

    @property
    def closed(self) -> bool:
        """Whether either side has closed it, as far as is known here."""
        ...

    async def exchange(self, frame: bytes) -> bytes:
        """Send a frame and return the one that answers it; raises NoAnswer."""
        ...

    def close(self) -> None:
        """Drop the connection at once."""
        ...


class Network(Protocol):
    """Opens streams."""

    async def connect(self, host: str, port: int, *, timeout_s: float) -> Stream:
        """Connect to a broker; raises NoAnswer."""
        ...


class Connection:
    """A connection to one broker; requests of several tasks take turns."""

    def __init__(self, stream: Stream, peer: str, client_id: str) -> None:
        self._stream = stream
        self._peer = peer
        self._client_id = encode(_CLIENT_ID, {"client_id": client_id}, 0)
        self._latest: Mapping[int, int] = {}
        self._correlation_id = 0
        self._turn = asyncio.Lock()

    @property
    def closed(self) -> bool:
        """Whether either side has closed it, as far as is known here."""
        return self._stream.closed

    async def negotiate(self, *, timeout_s: float) -> None:
        """Ask the broker which versions it knows; raises NoAnswer."""
        answer = await self.request(API_VERSIONS, {}, 0, timeout_s=timeout_s)
        self._latest = {each["api_key"]: each["max_version"] for each in answer["api_keys"] or ()}

    def version_of(self, api: Api, latest: int) -> int:
        """Return the latest version that both sides know, ours being `latest`."""
        return min(latest, self._latest.get(api.key, latest))

    async def request(self, api: Api, values: Mapping[str, Any], latest: int, *, timeout_s: float) -> Values:
        """Send a request and return its response; raises NoAnswer, after which the connection is useless.

        The time starts when the requests before this one are answered.
        """
        version = self.version_of(api, latest)
        async with self._turn:
            what = f"{api.name} to {self._peer}"
            if self.closed:
                raise NoAnswer(f"{what}: the connection is closed")
            self._correlation_id = self._correlation_id % _MAX_CORRELATION_ID + 1
            head = _HEADER.pack(api.key, version, self._correlation_id) + self._client_id
            answered = False
            try:
                async with asyncio.timeout(timeout_s):
                    frame = await self._stream.exchange(head + encode(api.request, values, version))
                response = self._response(api, version, frame)
                answered = True
            except TimeoutError:
                raise NoAnswer(f"{what}: no response within {timeout_s:g} s") from None
            except (NoAnswer, Malformed) as error:
                raise NoAnswer(f"{what}: {error}") from error
            finally:
                if not answered:
                    self.close()
        return response

    def close(self) -> None:
        """Drop the connection at once."""
        self._stream.close()

    def _response(self, api: Api, version: int, frame: bytes) -> Values:
        if frame[:4] != self._correlation_id.to_bytes(4):
            raise Malformed(f"a response to another request than number {self._correlation_id}")
        return decode(api.response, frame[4:], version)

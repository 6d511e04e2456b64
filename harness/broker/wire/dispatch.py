"""From a request frame to the handler of its API and back to a response frame."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from harness.broker.wire.codec import (
    MalformedMessage,
    RequestHeader,
    decode_request,
    decode_request_header,
    encode_response,
)
from harness.broker.wire.limits import Room, unlimited
from harness.broker.wire.messages import API_KEYS, ApiKey, ApiMessage, ApiVersionsRequest, ApiVersionsResponse
from harness.broker.wire.refused_versions import refusal
from harness.broker.wire.transport import Message
from harness.broker.wire.versions import VersionRange, api_versions, unsupported_version
from harness.values import value_class


class CloseConnection(Exception):
    """The connection must be closed without an answer; raised by dispatch and by handlers, with the reason."""


@value_class(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """A request's context for its handler."""

    api_key: ApiKey
    api_version: int
    """Handlers answer with a message; it is encoded in this version."""
    correlation_id: int
    client_id: str
    """Empty when the client sent none."""
    listener: str
    """Name of the request's listener."""
    peer: str
    """host:port of the other end of the connection."""
    room: Room = unlimited
    """Limit of the response's size, computed when it is made."""


Handler = Callable[[Any, RequestContext], Awaitable[Message | None]]
"""Answers the requests of one API; None means that the client expects no response (Produce with acks=0)."""

Request = TypeVar("Request", bound="ApiMessage")
Response = TypeVar("Response", bound="ApiMessage")


@dataclass(frozen=True, slots=True)
class Api:
    """One API that the broker can serve: a row of `harness.broker.handlers.apis`."""

    key: ApiKey
    request: type[ApiMessage]
    response: type[ApiMessage]
    versions: VersionRange
    handler: Callable[..., Awaitable[Message | None]]
    """A method of the object that serves the API, not bound to one yet."""

    @classmethod
    def of(
        cls,
        request: type[Request],
        response: type[Response],
        versions: VersionRange,
        handler: Callable[[Any, Request, RequestContext], Awaitable[Response | None]],
    ) -> Self:
        """Return the row of a handler that takes this request; the key is Kafka's number of the request."""
        return cls(API_KEYS[request], request, response, versions, handler)


class Dispatcher:
    """Decodes requests, calls handlers, encodes responses; serves those of `apis` that have a handler.

    It answers ApiVersions itself. `answered` is called with the API of every served request and its seconds, failed or
    not.
    """

    def __init__(
        self,
        apis: Mapping[ApiKey, Api],
        handlers: Mapping[ApiKey, Handler],
        answered: Callable[[ApiKey, float], None] | None = None,
    ) -> None:
        self._handlers: dict[ApiKey, Handler] = {**handlers, ApiKey.API_VERSIONS: self.api_versions}
        self._apis: dict[int, Api] = {key: apis[key] for key in self._handlers}
        self._answered = answered

    async def dispatch(self, frame: bytes, listener: str, peer: str, room: Room = unlimited) -> bytearray | None:
        """Return the response to a request, both as frames, the response with its length prefix; None for no response.

        Raises:
            CloseConnection: Kafka would close the connection: unknown API, version not served, malformed request.
        """
        try:
            header = decode_request_header(frame)
            api = self._apis.get(header.api_key)
            if api is None:
                raise CloseConnection(f"unknown API key {header.api_key}")
            if not api.versions.serves(header.api_version):
                return _refuse_version(api, header)
            request = decode_request(api.request, header)
        except MalformedMessage as error:
            raise CloseConnection(str(error)) from error
        context = RequestContext(
            api_key=api.key,
            api_version=header.api_version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
            listener=listener,
            peer=peer,
            room=room,
        )
        del frame, header  # a request may wait for long, without needing its bytes
        response = await self.answer(request, context)
        if response is None:
            return None
        return encode_response(response, context.api_version, correlation_id=context.correlation_id)

    async def answer(self, request: Message, context: RequestContext) -> Message | None:
        """Return the response to a decoded request, as its handler made it; None for no response.

        Raises:
            CloseConnection: this API is not served, or the handler refuses to answer.
        """
        handler = self._handlers.get(context.api_key)
        if handler is None:
            raise CloseConnection(f"{context.api_key.name} is not served")
        if self._answered is None:
            return await handler(request, context)
        clock = asyncio.get_running_loop().time
        began_s = clock()
        try:
            return await handler(request, context)
        finally:
            self._answered(context.api_key, clock() - began_s)

    async def api_versions(self, request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
        """Answer ApiVersions: the APIs that have a handler."""
        return api_versions(request, context.api_version, {api.key: api.versions for api in self._apis.values()})


def _refuse_version(api: Api, header: RequestHeader) -> bytearray:
    if api.key is ApiKey.API_VERSIONS:
        return encode_response(unsupported_version(api.versions), 0, correlation_id=header.correlation_id)
    body = refusal(header)
    if body is None:
        raise CloseConnection(f"{api.key.name} v{header.api_version} is not served")
    return bytearray(struct.pack(">ii", 4 + len(body), header.correlation_id) + body)

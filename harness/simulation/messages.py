"""Kafka's messages over one connection of the simulation, and what rules make of them.

Decoded messages travel; one is encoded only when a rule asks what it names. What comes out is handled by the receiving
host in its context, so a frozen one handles it later.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context
from copy import copy
from functools import cached_property
from typing import Any

from harness.broker.wire.codec import encode_request
from harness.broker.wire.messages import ApiKey
from harness.cluster.links.conversation import Conversation, Request
from harness.kafka.requests import Head, Named, error_answer, is_answered, named_in
from harness.simulation.network import CLOSED, End, Network, SimulatedRequest, SimulatedResponse

NO_ACKS = 0


class _Sent:
    """A request, or the end of a connection."""

    def __init__(self, item: Any) -> None:
        self.item = item

    @cached_property
    def head(self) -> Head | None:
        item = self.item
        if not isinstance(item, SimulatedRequest):
            return None
        return Head(api_key=item.api_key, version=item.version, correlation_id=item.correlation_id)

    @cached_property
    def answered(self) -> bool:
        item = self.item
        if not isinstance(item, SimulatedRequest) or item.api_key is not ApiKey.PRODUCE:
            return True
        return is_answered(item.frame) if item.frame is not None else bool(item.message.acks != NO_ACKS)

    def named(self) -> Named | None:
        item = self.item
        if not isinstance(item, SimulatedRequest):
            return None
        if item.frame is not None:
            return named_in(item.frame)
        own = copy(item.message)  # encoding leaves traces
        number, client_id = item.correlation_id, item.client_id
        return named_in(bytes(encode_request(own, item.version, correlation_id=number, client_id=client_id)[4:]))


class Intercepted:
    """Implements `Wire` between the two ends of a connection, as what the network's kernels do."""

    def __init__(
        self,
        network: Network,
        ends: tuple[End, End],
        link: tuple[str, str],
        contexts: tuple[Context, Context],
        again: Callable[[Any, Callable[[], None]], None],
    ) -> None:
        """`ends` and `contexts` are the client's and the server's."""
        assert network.interceptor is not None, "messages are intercepted"
        self._client, self._server = ends
        self._of_client, self._of_server = contexts
        self._again = again
        self._conversation = Conversation(network.interceptor, link, self)
        self._loop = asyncio.get_running_loop()

    def hand_over(self, end: End, context: Context) -> None:
        """Handle what comes out at an end in another context from now on."""
        if end is self._client:
            self._of_client = context
        else:
            self._of_server = context

    def from_client(self, item: Any) -> None:
        """Take something in that came over the link from the client."""
        if item is CLOSED:
            self._conversation.client_left()
        self._conversation.request(_Sent(item))

    def from_server(self, item: Any) -> None:
        """Take something in that came over the link from the server."""
        number = item.correlation_id if isinstance(item, SimulatedResponse) else None
        self._conversation.answer(number, item)

    def to_server(self, item: Any) -> None:
        """Let something come out at the server."""
        self._loop.call_soon(self._server.arrive, item, context=self._of_server)

    def to_client(self, item: Any) -> None:
        """Let something come out at the client."""
        self._loop.call_soon(self._client.arrive, item, context=self._of_client)

    def lost(self, item: Any, *, of_client: bool) -> None:
        """Forget something: nothing counts what is on its way."""

    def reset(self) -> None:
        """Break the connection."""
        self._client.reset()

    def error(self, request: Request, error_code: int) -> SimulatedResponse:
        """Return the answer that is an error."""
        head = request.head
        assert head is not None, "a request was caught by its head"
        return SimulatedResponse(head.correlation_id, head.version, None, error_answer(head, error_code))

    def again(self, item: Any, answered: Callable[[], None]) -> None:
        """Send a request over a new connection, and drop its answer."""
        self._again(item, answered)

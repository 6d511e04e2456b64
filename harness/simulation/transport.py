"""The side of a connection that asks: a transport for brokers, with more than one request in flight for clients."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, Protocol

from harness.broker.wire.codec import MalformedMessage, decode_response, encode_request
from harness.broker.wire.messages import API_KEYS
from harness.broker.wire.transport import Message, PeerError
from harness.cluster.links.links import Pipe
from harness.simulation.messages import Intercepted
from harness.simulation.network import CLOSED, End, Network, SimulatedRequest, join


@dataclass(slots=True)
class MemoryTransport:
    """Implements the broker's `Transport`."""

    network: Network
    host: str

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> "MemoryConnection":
        """Connect to a listener; raises PeerError."""
        made = MemoryConnection(self.network, f"{host}:{port}", client_id)
        await knock(self.network, self.host, host, port, made, timeout_s)
        return made


class Client(Protocol):
    """The client's side of a connection to be."""

    end: End

    def close(self) -> None:
        """Give it up."""
        ...


async def knock(
    network: Network, near: str, host: str, port: int, made: Client, timeout_s: float, *, intercepted: bool = True
) -> None:
    """Connect the client's side to a listener; raises PeerError."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bool] = loop.create_future()
    timer = loop.call_later(timeout_s, _settle, answer, None)
    _Knock(network, (near, host), port, made, answer, copy_context(), intercepted).go()
    try:
        accepted = await answer
    except TimeoutError:
        made.close()
        raise PeerError(f"connecting to {host}:{port}: not within {timeout_s:g} s") from None
    finally:
        timer.cancel()
    if not accepted:
        raise PeerError(f"connecting to {host}:{port}: connection refused")


def _settle(answer: "asyncio.Future[bool]", outcome: bool | None) -> None:
    """Give an attempt to connect its outcome; None for none in time."""
    if answer.done():
        return
    if outcome is None:
        answer.set_exception(TimeoutError())
    else:
        answer.set_result(outcome)


@dataclass(slots=True)
class _Knock:
    """One attempt to connect: a message there, handled by the host's kernel, and one back."""

    network: Network
    hosts: tuple[str, str]
    port: int
    connection: Client
    answer: "asyncio.Future[bool]"
    context: Context
    intercepted: bool

    def go(self) -> None:
        near, far = self.hosts
        Pipe(self.network.links, near, far, self._at_server, self.network.context).put(None)

    def _at_server(self, _item: None) -> None:
        near, far = self.hosts
        server = self.network.listener(far, self.port)
        if server is not None and not self.connection.end.closed:
            peer = f"{near}:{self.network.next_port()}"
            end, context = server.context.copy().run(server.accept, self.port, peer)
            contexts, ends = (self.context, context), (self.connection.end, end)
            between = None
            if self.network.interceptor is not None and self.intercepted:
                between = Intercepted(self.network, ends, self.hosts, contexts, self._again)
            join(self.network, *ends, self.hosts, contexts, between)
        Pipe(self.network.links, far, near, self._at_client, self.context).put(server is not None)

    def _at_client(self, accepted: bool) -> None:
        _settle(self.answer, accepted)

    def _again(self, item: SimulatedRequest, answered: Callable[[], None]) -> None:
        """Send a request over a new connection between the same hosts, as a kernel that sends late would."""
        sender = _Sender(self.network, answered)
        task = asyncio.get_running_loop().create_task(
            sender.send(self.hosts, self.port, item), context=self.network.context.copy()
        )
        self.network.sending.add(task)
        task.add_done_callback(self.network.sending.discard)


AGAIN_TIMEOUT_S = 30.0


class _Sender:
    """The side of a connection that sends one request, which another connection carried before."""

    def __init__(self, network: Network, answered: Callable[[], None]) -> None:
        self._network = network
        self._answered = answered
        self.end = network.context.copy().run(End, network, self._take)

    def close(self) -> None:
        """Give it up."""
        self.end.close()

    async def send(self, hosts: tuple[str, str], port: int, item: SimulatedRequest) -> None:
        """Connect and send; nothing happens when the receiver is gone."""
        try:
            await knock(self._network, *hosts, port, self, AGAIN_TIMEOUT_S, intercepted=False)
        except PeerError:
            return
        self.end.put(item)

    def _take(self, item: Any) -> None:
        if item is not CLOSED:
            self._answered()
            self.close()


class MemoryConnection:
    """Implements the broker's `Connection`, and lets a client have more than one request in flight."""

    def __init__(self, network: Network, peer: str, client_id: str) -> None:
        self.end = End(network, self._take)
        self._through_codecs = network.through_codecs
        self._peer = peer
        self._client_id = client_id
        self._correlation_id = 0
        self._pending: deque[tuple[int, Message, int, asyncio.Future[Message]]] = deque()
        self._turn = asyncio.Lock()
        self._loop = asyncio.get_running_loop()

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self.end.closed

    def send(self, message: Message, version: int, *, answered: bool = True) -> "asyncio.Future[Message]":
        """Send a request and return its response to come, which fails with PeerError when the connection ends first.

        Responses come in the order of the requests. One that gets no response (`answered` False) is done at once.
        """
        future: asyncio.Future[Message] = self._loop.create_future()
        if self.end.closed:
            future.set_exception(PeerError(f"{message.name} to {self._peer}: the connection is closed"))
            return future
        self._correlation_id += 1
        number, frame = self._correlation_id, None
        if self._through_codecs:
            frame = bytes(encode_request(message, version, correlation_id=number, client_id=self._client_id)[4:])
        key = API_KEYS[type(message)]
        self.end.put(
            SimulatedRequest(number, version, self._client_id, key, None if frame is not None else message, frame)
        )
        if answered:
            self._pending.append((number, message, version, future))
        else:
            future.set_result(None)
        return future

    async def request(self, message: Message, version: int, *, timeout_s: float) -> Message:
        """Send a request and return the decoded response; raises PeerError, after which the connection is useless."""
        await self._turn.acquire()
        future = self.send(message, version)
        timer = self._loop.call_later(timeout_s, self._expire, future, message, timeout_s)
        try:
            return await future
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            timer.cancel()
            self._turn.release()

    def close(self) -> None:
        """Drop the connection at once; pending requests fail with PeerError."""
        self.end.close()
        self._fail("the connection is closed")

    def _expire(self, future: "asyncio.Future[Message]", message: Message, timeout_s: float) -> None:
        if not future.done():
            future.set_exception(PeerError(f"{message.name} to {self._peer}: no response within {timeout_s:g} s"))
            self.close()

    def _take(self, item: Any) -> None:
        if item is CLOSED:
            self._fail("closed before the response")
            return
        number, message, version, future = self._pending.popleft()
        assert number == item.correlation_id, "responses come in the order of the requests"
        if future.done():
            return
        if item.frame is None:
            future.set_result(item.message)
            return
        try:
            future.set_result(decode_response(message.API_KEY, version, item.frame, correlation_id=number))
        except MalformedMessage as error:
            future.set_exception(PeerError(f"{message.name} to {self._peer}: {error}"))
            self.close()

    def _fail(self, why: str) -> None:
        pending, self._pending = self._pending, deque()
        for _, message, _, future in pending:
            if not future.done():
                future.set_exception(PeerError(f"{message.name} to {self._peer}: {why}"))

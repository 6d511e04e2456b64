"""Connections in memory: what TCP gives a broker and its clients, with requests and responses in the place of bytes.

Decoded messages travel as they are, which is fast; a network that is told to sends every one through the real codecs
instead. Order is kept within a connection. An end that closes, or whose process dies, is heard of at the other end like
everything else: after a delay, and not at all while the link is cut, so that end stays half open until it speaks and is
refused.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.broker.config import Endpoint
from harness.broker.wire.codec import MalformedMessage, decode_response, encode_request
from harness.broker.wire.dispatch import CloseConnection, Dispatcher, RequestContext
from harness.broker.wire.messages import REQUESTS, ApiKey
from harness.broker.wire.transport import Message, PeerError
from harness.simulation.links import Links, Pipe
from harness.simulation.loop import Process, current_process

_API_KEYS = {request: key for key, request in REQUESTS.items()}


class Asked(NamedTuple):
    """One request on its way."""

    correlation_id: int
    version: int
    client_id: str
    api_key: ApiKey
    message: Message
    """None when there is a frame."""
    frame: bytes | None


class Answered(NamedTuple):
    """One response on its way: a message, or the frame of one."""

    correlation_id: int
    message: Message
    frame: bytes | None


class _Closed:
    """The other end is gone."""


CLOSED = _Closed()


class Network:
    """Who listens where, and all connections."""

    def __init__(self, links: Links | None = None, *, through_codecs: bool = False) -> None:
        self.links = links or Links()
        self.through_codecs = through_codecs
        self.context: Context = copy_context()
        """Of what happens outside all processes: a kernel that accepts or refuses."""
        self._listening: dict[tuple[str, int], MemoryServer] = {}
        self._ends: dict[Process, dict[_End, None]] = {}
        self._ports: Iterator[int] = itertools.count(40_000)

    def transport(self, host: str) -> "MemoryTransport":
        """Return what opens connections from a host."""
        return MemoryTransport(self, host)

    def server(self, dispatcher: Dispatcher) -> "MemoryServer":
        """Return where requests come in, for the process that runs now."""
        return MemoryServer(self, dispatcher)

    def listen(self, server: "MemoryServer", endpoint: Endpoint) -> None:
        """Give an address to a server; raises OSError when it is taken."""
        address = (endpoint.host, endpoint.port)
        if address in self._listening:
            raise OSError(98, f"cannot listen on {endpoint.name}://{endpoint.host}:{endpoint.port}: address in use")
        self._listening[address] = server

    def stop_listening(self, server: "MemoryServer") -> None:
        """Take a server's addresses back."""
        for address in [address for address, listening in self._listening.items() if listening is server]:
            del self._listening[address]

    def listener(self, host: str, port: int) -> "MemoryServer | None":
        """Return who listens there."""
        return self._listening.get((host, port))

    def opened(self, end: "_End") -> None:
        """Note an open end, for when its process dies."""
        if end.process is not None:
            self._ends.setdefault(end.process, {})[end] = None

    def closed(self, end: "_End") -> None:
        """Forget an end."""
        if end.process is not None:
            self._ends.get(end.process, {}).pop(end, None)

    def process_died(self, process: Process, *, silently: bool = False) -> None:
        """Close all that a process had open; its peers hear of it, or, when the whole host is gone, do not."""
        for address, server in list(self._listening.items()):
            if server.process is process:
                del self._listening[address]
        for end in list(self._ends.pop(process, ())):
            end.close(tell=not silently)
            end.orphaned()

    def next_port(self) -> int:
        """Return the port of the next connection's client side."""
        return next(self._ports)


class _End:
    """One end of a connection, with the pipe to the other one."""

    __slots__ = ("_network", "_take", "closed", "out", "peer", "process")

    def __init__(self, network: Network, take: Callable[[Any], None]) -> None:
        self._network = network
        self._take = take
        self.process = current_process()
        self.closed = False
        self.peer: _End | None = None
        self.out: Pipe | None = None
        network.opened(self)

    def arrive(self, item: Any) -> None:
        """Take what came in, or refuse it when this end is closed."""
        if self.closed:
            if item is not CLOSED and self.out is not None:
                self.out.put(CLOSED)
        else:
            if item is CLOSED:
                self._forget()
            self._take(item)

    def put(self, item: Any) -> None:
        """Send something to the other end."""
        if not self.closed and self.out is not None:
            self.out.put(item)

    def close(self, *, tell: bool = True) -> None:
        """Close this end; the other one hears of it."""
        if not self.closed:
            if tell:
                self.put(CLOSED)
            self._forget()

    def orphaned(self) -> None:
        """Let the kernel refuse what comes in from now on: the process that would is dead."""
        if self.peer is not None and self.peer.out is not None:
            self.peer.out.hand_over(self._network.context)

    def _forget(self) -> None:
        self.closed = True
        self._network.closed(self)


def join(
    network: Network, client: _End, server: _End, hosts: tuple[str, str], contexts: tuple[Context, Context]
) -> None:
    """Connect two ends, of these hosts; what arrives at each is handled in its context."""
    links, (near, far) = network.links, hosts
    client.peer, server.peer = server, client
    client.out = Pipe(links, near, far, server.arrive, contexts[1])
    server.out = Pipe(links, far, near, client.arrive, contexts[0])


@dataclass(slots=True, eq=False)
class MemoryServer:
    """Implements the broker's `Server`."""

    network: Network
    dispatcher: Dispatcher
    process: Process | None = field(default_factory=current_process)
    context: Context = field(default_factory=copy_context)
    _names: dict[int, str] = field(default_factory=dict)
    _serving: asyncio.Event = field(default_factory=asyncio.Event)
    _conversations: dict[asyncio.Task[None], None] = field(default_factory=dict)

    def bind(self, endpoint: Endpoint) -> int:
        """Take the endpoint's port and return it; raises OSError."""
        self.network.listen(self, endpoint)
        self._names[endpoint.port] = endpoint.name
        return endpoint.port

    async def serve(self) -> None:
        """Answer requests from now on; those that came in before are answered too."""
        self._serving.set()

    async def stop(self) -> None:
        """Give up the ports and drop every connection."""
        self.network.stop_listening(self)
        conversations = list(self._conversations)
        for task in conversations:
            task.cancel()
        await asyncio.gather(*conversations, return_exceptions=True)

    def accept(self, port: int, peer: str) -> tuple[_End, Context]:
        """Take a connection in; runs as the process that listens."""
        conversation = _Conversation(self, self._names[port], peer)
        task = asyncio.get_running_loop().create_task(conversation.run(self._serving), context=copy_context())
        self._conversations[task] = None
        task.add_done_callback(self._ended)
        return conversation.end, self.context

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._conversations.pop(task, None)
        if not task.cancelled():
            task.result()


class _Conversation:
    """One connection as the server has it: one request after another."""

    __slots__ = ("_arrival", "_dispatcher", "_inbox", "_listener", "_peer", "end")

    def __init__(self, server: MemoryServer, listener: str, peer: str) -> None:
        self._dispatcher = server.dispatcher
        self._listener = listener
        self._peer = peer
        self._inbox: deque[Any] = deque()
        self._arrival: asyncio.Future[None] | None = None
        self.end = _End(server.network, self._take)

    def _take(self, item: Any) -> None:
        self._inbox.append(item)
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    async def run(self, serving: asyncio.Event) -> None:
        """Answer until either side ends it; a request in progress is answered before the next one is looked at."""
        try:
            await serving.wait()
            loop = asyncio.get_running_loop()
            while True:
                while not self._inbox:
                    self._arrival = loop.create_future()
                    await self._arrival
                item = self._inbox.popleft()
                if item is CLOSED:
                    return
                await self._answer(item)
        except CloseConnection:
            return
        finally:
            self.end.close()

    async def _answer(self, asked: Asked) -> None:
        if asked.frame is not None:
            response = await self._dispatcher.dispatch(asked.frame, self._listener, self._peer)
            if response is not None:
                self.end.put(Answered(asked.correlation_id, None, bytes(response[4:])))
            return
        context = RequestContext(
            api_key=asked.api_key,
            api_version=asked.version,
            correlation_id=asked.correlation_id,
            client_id=asked.client_id,
            listener=self._listener,
            peer=self._peer,
        )
        message = await self._dispatcher.answer(asked.message, context)
        if message is not None:
            self.end.put(Answered(asked.correlation_id, message, None))


@dataclass(slots=True)
class MemoryTransport:
    """Implements the broker's `Transport`."""

    network: Network
    host: str

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> "MemoryConnection":
        """Connect to a listener; raises PeerError."""
        loop = asyncio.get_running_loop()
        made = MemoryConnection(self.network, f"{host}:{port}", client_id)
        answer: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(timeout_s, _settle, answer, None)
        knock = _Knock(self.network, (self.host, host), port, made, answer, copy_context())
        knock.go()
        try:
            accepted = await answer
        except TimeoutError:
            made.close()
            raise PeerError(f"connecting to {host}:{port}: not within {timeout_s:g} s") from None
        finally:
            timer.cancel()
        if not accepted:
            raise PeerError(f"connecting to {host}:{port}: connection refused")
        return made


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
    connection: "MemoryConnection"
    answer: "asyncio.Future[bool]"
    context: Context

    def go(self) -> None:
        near, far = self.hosts
        Pipe(self.network.links, near, far, self._at_server, self.network.context).put(None)

    def _at_server(self, _item: None) -> None:
        near, far = self.hosts
        server = self.network.listener(far, self.port)
        if server is not None and not self.connection.end.closed:
            peer = f"{near}:{self.network.next_port()}"
            end, context = server.context.copy().run(server.accept, self.port, peer)
            join(self.network, self.connection.end, end, self.hosts, (self.context, context))
        Pipe(self.network.links, far, near, self._at_client, self.context).put(server is not None)

    def _at_client(self, accepted: bool) -> None:
        _settle(self.answer, accepted)


class MemoryConnection:
    """Implements the broker's `Connection`, and lets a client have more than one request in flight."""

    def __init__(self, network: Network, peer: str, client_id: str) -> None:
        self.end = _End(network, self._take)
        self._through_codecs = network.through_codecs
        self._peer = peer
        self._client_id = client_id
        self._correlation_id = 0
        self._pending: deque[tuple[int, Message, int, asyncio.Future[Message]]] = deque()
        self._turn = asyncio.Lock()

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self.end.closed

    def send(self, message: Message, version: int, *, answered: bool = True) -> "asyncio.Future[Message]":
        """Send a request and return its response to come, which fails with PeerError when the connection ends first.

        Responses come in the order of the requests. One that gets no response (`answered` False) is done at once.
        """
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        if self.end.closed:
            future.set_exception(PeerError(f"{message.name} to {self._peer}: the connection is closed"))
            return future
        self._correlation_id += 1
        number, frame = self._correlation_id, None
        if self._through_codecs:
            frame = bytes(encode_request(message, version, correlation_id=number, client_id=self._client_id)[4:])
        key = _API_KEYS[type(message)]
        self.end.put(Asked(number, version, self._client_id, key, None if frame is not None else message, frame))
        if answered:
            self._pending.append((number, message, version, future))
        else:
            future.set_result(None)
        return future

    async def request(self, message: Message, version: int, *, timeout_s: float) -> Message:
        """Send a request and return the decoded response; raises PeerError, after which the connection is useless."""
        async with self._turn:
            future = self.send(message, version)
            timer = asyncio.get_running_loop().call_later(timeout_s, self._expire, future, message.name, timeout_s)
            try:
                return await future
            except asyncio.CancelledError:
                self.close()
                raise
            finally:
                timer.cancel()

    def close(self) -> None:
        """Drop the connection at once; pending requests fail with PeerError."""
        self.end.close()
        self._fail("the connection is closed")

    def _expire(self, future: "asyncio.Future[Message]", name: str, timeout_s: float) -> None:
        if not future.done():
            future.set_exception(PeerError(f"{name} to {self._peer}: no response within {timeout_s:g} s"))
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

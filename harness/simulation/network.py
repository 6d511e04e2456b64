"""Connections in memory: what TCP gives a broker and its clients, with requests and responses in the place of bytes.

Decoded messages travel as they are, which is fast; a network with `through_codecs` sends every one through the real
codecs instead. Order is kept within a connection. An end that closes, or whose process dies, is heard of at the other
end like everything else: after a delay, and not at all while the link is cut, so that end stays half open until it
speaks and is refused.
"""

import asyncio
import itertools
from collections.abc import Callable, Container, Iterator
from contextvars import Context, copy_context
from typing import Any, NamedTuple, Protocol

from harness.broker.configs.config import Endpoint
from harness.broker.wire.messages import ApiKey
from harness.broker.wire.transport import Message
from harness.cluster.links.interception import Interceptor
from harness.cluster.links.links import Links, Pipe
from harness.simulation.loop import Process, current_process


class SimulatedRequest(NamedTuple):
    """One request on its way."""

    correlation_id: int
    version: int
    client_id: str
    api_key: ApiKey
    message: Message
    """None when there is a frame."""
    frame: bytes | None


class SimulatedResponse(NamedTuple):
    """One response on its way: a message, or the frame of one."""

    correlation_id: int
    version: int
    message: Message
    frame: bytes | None


class _Closed:
    """The other end is gone."""


CLOSED = _Closed()


class Listener(Protocol):
    """What takes connections in."""

    process: Process | None
    context: Context

    def accept(self, port: int, peer: str) -> "tuple[End, Context]":
        """Take a connection in and return its end, with the context for what arrives there."""
        ...


class Network:
    """All listeners by their address, and all connections."""

    def __init__(self, links: Links | None = None, *, through_codecs: bool = False) -> None:
        self.links = links or Links()
        self.through_codecs = through_codecs
        self.interceptor: Interceptor | None = None
        """Set from the start if messages are to be intercepted."""
        self.context: Context = copy_context()
        """Of what happens outside all processes: a kernel that accepts or refuses."""
        self._listening: dict[tuple[str, int], Listener] = {}
        self._ends: dict[Process, dict[End, None]] = {}
        self._ports: Iterator[int] = itertools.count(40_000)
        self.sending: set[asyncio.Task[None]] = set()
        """Requests that are sent over a new connection."""
        self.numbers: Iterator[int] = itertools.count()
        """For the ends of connections, in the order they are made."""

    def listen(self, server: "Listener", endpoint: Endpoint) -> None:
        """Give an address to a server; raises OSError when it is taken."""
        address = (endpoint.host, endpoint.port)
        if address in self._listening:
            raise OSError(98, f"cannot listen on {endpoint.name}://{endpoint.host}:{endpoint.port}: address in use")
        self._listening[address] = server

    def stop_listening(self, server: "Listener") -> None:
        """Take a server's addresses back."""
        for address in [address for address, listening in self._listening.items() if listening is server]:
            del self._listening[address]

    def listener(self, host: str, port: int) -> Listener | None:
        """Return the listener at an address."""
        return self._listening.get((host, port))

    def opened(self, end: "End") -> None:
        """Note an open end, for when its process dies."""
        if end.process is not None:
            self._ends.setdefault(end.process, {})[end] = None

    def closed(self, end: "End") -> None:
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

    def connections(self, host: str, others: Container[str]) -> "list[End]":
        """Return a host's ends of all open connections with others, in the order they were made."""
        ends = (end for ends in self._ends.values() for end in ends)
        between = [end for end in ends if end.out and end.out.link[0] == host and end.out.link[1] in others]
        return sorted(between, key=lambda end: end.number)

    def next_port(self) -> int:
        """Return the port of the next connection's client side."""
        return next(self._ports)


class Between(Protocol):
    """What is between two ends whose messages are intercepted."""

    def from_client(self, item: Any) -> None:
        """Take something in that came over the link from the client."""
        ...

    def from_server(self, item: Any) -> None:
        """Take something in that came over the link from the server."""
        ...

    def hand_over(self, end: "End", context: Context) -> None:
        """Handle what comes out at an end in another context from now on."""
        ...


class End:
    """One end of a connection, with the pipe to the other one."""

    __slots__ = ("_network", "_take", "between", "closed", "number", "out", "peer", "process")

    def __init__(self, network: Network, take: Callable[[Any], None]) -> None:
        self._network = network
        self._take = take
        self.number = next(network.numbers)
        self.process = current_process()
        self.closed = False
        self.peer: End | None = None
        self.out: Pipe | None = None
        self.between: Between | None = None
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

    def reset(self) -> None:
        """Break the connection: what is on its way is lost, this end is gone at once, the other one hears of it."""
        if self.out is not None:
            self.out = self.out.reset()
            self.out.put(CLOSED)
        if self.peer is not None and self.peer.out is not None:
            self.peer.out.end_with(CLOSED)
        self._network.closed(self)

    def orphaned(self) -> None:
        """Let the kernel refuse what comes in from now on: the process that would is dead."""
        if self.between is not None:
            self.between.hand_over(self, self._network.context)
        elif self.peer is not None and self.peer.out is not None:
            self.peer.out.hand_over(self._network.context)

    def _forget(self) -> None:
        self.closed = True
        self._network.closed(self)


def join(
    network: Network,
    client: End,
    server: End,
    hosts: tuple[str, str],
    contexts: tuple[Context, Context],
    between: Between | None = None,
) -> None:
    """Connect two ends, of these hosts; what arrives at each is handled in its context."""
    links, (near, far) = network.links, hosts
    client.peer, server.peer = server, client
    client.between = server.between = between
    if between is None:
        client.out = Pipe(links, near, far, server.arrive, contexts[1])
        server.out = Pipe(links, far, near, client.arrive, contexts[0])
    else:
        client.out = Pipe(links, near, far, between.from_client, network.context)
        server.out = Pipe(links, far, near, between.from_server, network.context)

"""What does a relay do: it accepts, finds out who called, and lets pass what the links between hosts let pass?"""

import asyncio
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, cast

from harness.cluster.command_socket import CommandError, Commands
from harness.cluster.interference import Interference
from harness.cluster.links import Link, Links
from harness.cluster.lost_replies import LostReplies
from harness.cluster.ports import LOOPBACK
from harness.cluster.relay import SOMEBODY
from harness.cluster.relay.connection import Connection
from harness.cluster.relay.listeners import Listener
from harness.cluster.relay.senders import sender
from harness.cluster.relay.zookeeper import Conversation

BACKLOG = 512
ANNOUNCED_S = 10.0
"""After so long a port is anybody's again, whose probe never came."""


class _Announced(NamedTuple):
    """A connection that is about to be made to probe a link."""

    link: Link
    target_port: int


class Relay:
    """All connections of one cluster; every command is a method that takes plain values and returns them."""

    def __init__(self, listeners: list[Listener], pids: Path) -> None:
        self._listeners = listeners
        self._pids = pids
        self._brokers = sorted({each.destination for each in listeners if not each.zookeeper})
        self._links = Links()
        self._interference = Interference(self._links)
        self._replies = LostReplies()
        self._reply_timers: dict[str, asyncio.TimerHandle] = {}
        self._numbers = count(1)
        self._connections: dict[int, Connection] = {}
        self._announced: dict[int, _Announced] = {}
        self._probes: set[asyncio.Task[None]] = set()

    @property
    def commands(self) -> Commands:
        """Every command by its name."""
        return {
            "cut": self.cut,
            "slow": self.slow,
            "release": self.release,
            "connections": self.connections,
            "reset": self.reset,
            "announce": self.announce,
            "lose_reply": self.lose_reply,
            "lost_reply": self.lost_reply,
            "lose_no_reply": self.lose_no_reply,
        }

    async def listen(self, stack: AsyncExitStack) -> None:
        """Accept connections on every port until the stack is closed."""
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            server = await loop.create_server(
                lambda listener=listener: _Accepting(self, listener),  # type: ignore[misc]
                LOOPBACK,
                listener.port,
                backlog=BACKLOG,
            )
            stack.callback(server.close)

    # --- links ---

    async def cut(self, holder: str, links: list[list[str]], at_most_s: float) -> dict[str, Any]:
        """Let nothing pass over some links, until `release` or the end of the time."""
        self._interference.cut(holder, _links(links), at_most_s=at_most_s)
        return {}

    async def slow(self, holder: str, links: list[list[str]], extra_s: float, at_most_s: float) -> dict[str, Any]:
        """Let everything on some links take longer, until `release` or the end of the time."""
        self._interference.slow(holder, _links(links), extra_s, at_most_s=at_most_s)
        return {}

    async def release(self, holder: str) -> dict[str, Any]:
        """Give up what a holder holds; nothing happens when that is nothing."""
        self._interference.release(holder)
        return {}

    async def announce(self, port: int, link: list[str], target_port: int) -> dict[str, Any]:
        """Take the next connection from a port as one over a link to `target_port`; return where to connect to.

        It is there at once: what shows is whether bytes pass, one way.
        """
        source, destination = link
        announced = self._announced[port] = _Announced((source, destination), target_port)
        asyncio.get_running_loop().call_later(ANNOUNCED_S, self._withdraw, port, announced)
        return {"port": self._listeners[0].port}

    # --- connections ---

    async def connections(self, host: str, others: list[str]) -> dict[str, Any]:
        """Return the names of the connections between a host and others; no two ever have the same."""
        return {"names": [str(number) for number in self.between(host, others)]}

    async def reset(self, host: str, others: list[str]) -> dict[str, Any]:
        """Break them; both ends are told."""
        for connection in self.between(host, others).values():
            connection.reset()
        return {}

    def between(self, host: str, others: list[str]) -> dict[int, Connection]:
        """Return the connections between a host and others by their numbers."""
        pairs = {frozenset((host, other)) for other in others}
        return {
            number: connection
            for number, connection in self._connections.items()
            if {connection.source, connection.destination} in pairs
        }

    # --- replies of ZooKeeper ---

    async def lose_reply(self, host: str, carried_out: bool, at_most_s: float) -> dict[str, Any]:
        """Break the connection instead of replying to the host's next write, until the end of the time."""
        self._replies.arm(host, carried_out=carried_out)
        if host in self._reply_timers:
            self._reply_timers[host].cancel()
        loop = asyncio.get_running_loop()
        self._reply_timers[host] = loop.call_later(at_most_s, self._replies.disarm, host)
        return {}

    async def lost_reply(self, host: str) -> dict[str, Any]:
        """Return the write whose reply was lost last; null when there is none."""
        return {"write": self._replies.lost.get(host)}

    async def lose_no_reply(self, host: str) -> dict[str, Any]:
        """Lose none, if none was lost yet."""
        self._replies.disarm(host)
        return {}

    # --- as connections come in ---

    def accepted(self, listener: Listener, transport: asyncio.Transport) -> None:
        """Lead a connection on."""
        port = transport.get_extra_info("peername")[1]
        announced = self._announced.pop(port, None)
        if announced is not None and listener is self._listeners[0]:  # elsewhere the port has another owner by now
            self._probe(announced, transport)
            return
        try:
            source = listener.source or sender(port, listener.port, self._brokers, self._pids) or SOMEBODY
        except OSError:  # no descriptor is free to ask with
            transport.abort()
            return
        number = next(self._numbers)
        connection = Connection(
            self._links,
            source,
            listener.destination,
            listener.target_port,
            closed=lambda: self._forget(number),
            conversation=Conversation(source, self._replies) if listener.zookeeper else None,
        )
        self._connections[number] = connection
        connection.take(transport)
        connection.connect()

    def _probe(self, announced: _Announced, transport: asyncio.Transport) -> None:
        connection = Connection(self._links, *announced.link, announced.target_port, closed=lambda: None)
        connection.take(transport)
        probe = asyncio.ensure_future(connection.connect_at_once())
        self._probes.add(probe)
        probe.add_done_callback(self._probes.discard)

    def _withdraw(self, port: int, announced: _Announced) -> None:
        if self._announced.get(port) is announced:  # not a later one of the same port
            del self._announced[port]

    def _forget(self, number: int) -> None:
        self._connections.pop(number, None)


class _Accepting(asyncio.Protocol):
    """Has a socket until it is known whose it is."""

    def __init__(self, relay: Relay, listener: Listener) -> None:
        self._relay = relay
        self._listener = listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hand it on."""
        self._relay.accepted(self._listener, cast("asyncio.Transport", transport))


def _links(links: list[list[str]]) -> list[Link]:
    if any(len(link) != 2 for link in links):
        raise CommandError(f"a link is a sender and a receiver, not {links}")
    return [(sender, receiver) for sender, receiver in links]

"""The relay: accepts connections, identifies the sender, and forwards what the links between hosts let pass."""

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any, cast

from harness.cluster.capabilities import Rhythm, Slowness
from harness.cluster.links.interception import Interceptor
from harness.cluster.links.interference import Interference
from harness.cluster.links.links import Link, Links
from harness.cluster.links.lost_replies import LostReplies
from harness.cluster.links.rules import rule_from
from harness.cluster.relay import CLIENTS, PROBES_NAME, UNKNOWN
from harness.cluster.relay.connection import Connection
from harness.cluster.relay.election import Introduction
from harness.cluster.relay.listeners import Listener, Setup, Speech
from harness.cluster.relay.messages import Messages
from harness.cluster.relay.senders import sender
from harness.cluster.relay.zookeeper import Conversation
from harness.cluster.supervision.command_socket import CommandError, Commands

BACKLOG = 512
READY = b"!"
"""What each end of a probe hears when the relay knows of it."""


class Relay:
    """All connections of one cluster; every command is a method that takes plain values and returns them."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._brokers = sorted({each.destination for each in setup.listeners if each.source in (None, CLIENTS)})
        self._links = Links()
        self._interference = Interference(self._links)
        self._interceptor = Interceptor()
        self._replies = LostReplies()
        self._reply_timers: dict[str, asyncio.TimerHandle] = {}
        self._numbers = count(1)
        self._connections: dict[int, Connection] = {}
        self._receivers: dict[str, asyncio.Transport] = {}
        """Of probes that are about to be sent, by their names."""

    @property
    def commands(self) -> Commands:
        """Every command by its name."""
        return {
            "cut": self.cut,
            "slow": self.slow,
            "release": self.release,
            "connections": self.connections,
            "reset": self.reset,
            "lose_reply": self.lose_reply,
            "lost_reply": self.lost_reply,
            "lose_no_reply": self.lose_no_reply,
            "intercept": self.intercept,
            "caught": self.caught,
            "let_go": self.let_go,
        }

    async def listen(self, stack: AsyncExitStack) -> None:
        """Accept connections on every port, and probes, until the stack is closed."""
        loop = asyncio.get_running_loop()
        probes = await loop.create_unix_server(lambda: _Probing(self), PROBES_NAME)
        stack.callback(Path(PROBES_NAME).unlink, missing_ok=True)
        stack.callback(probes.close)
        for listener in self._setup.listeners:
            server = await loop.create_server(
                lambda listener=listener: _Accepting(self, listener),  # type: ignore[misc]
                listener.host or self._setup.listens_on,
                listener.port,
                backlog=BACKLOG,
            )
            stack.callback(server.close)

    # --- links ---

    async def cut(
        self, holder: str, links: list[list[str]], at_most_s: float, rhythm: dict[str, float] | None = None
    ) -> dict[str, Any]:
        """Let nothing pass over some links, in a rhythm or not, until `release` or the end of the time."""
        turns = None if rhythm is None else Rhythm(**rhythm)
        self._interference.cut(holder, _links(links), at_most_s=at_most_s, rhythm=turns)
        return {}

    async def slow(
        self, holder: str, links: list[list[str]], slowness: dict[str, Any], at_most_s: float
    ) -> dict[str, Any]:
        """Slow some links down, until `release` or the end of the time."""
        self._interference.slow(holder, _links(links), Slowness(**slowness), at_most_s=at_most_s)
        return {}

    async def release(self, holder: str) -> dict[str, Any]:
        """Give up what a holder holds; nothing happens when that is nothing."""
        self._interference.release(holder)
        return {}

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

    async def lose_reply(self, host: str, carried_out: bool, answered: int, at_most_s: float) -> dict[str, Any]:
        """Break the connection instead of replying to a write of the host, until the end of the time."""
        self._replies.arm(host, carried_out=carried_out, answered=answered)
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

    # --- messages of Kafka ---

    async def intercept(self, holder: str, rule: dict[str, Any], at_most_s: float) -> dict[str, Any]:
        """Act on messages, until `let_go` or the end of the time; replaces the holder's earlier rule."""
        self._interceptor.intercept(holder, rule_from(rule), at_most_s=at_most_s)
        return {}

    async def caught(self, holder: str) -> dict[str, Any]:
        """Return what a holder's rule has caught."""
        return {"caught": [asdict(each) for each in self._interceptor.caught(holder)]}

    async def let_go(self, holder: str) -> dict[str, Any]:
        """End a rule; nothing happens when there is none."""
        self._interceptor.release(holder)
        return {}

    # --- as connections come in ---

    def accepted(self, listener: Listener, transport: asyncio.Transport) -> None:
        """Lead a connection on."""
        try:
            source = listener.source or self._sender(transport, listener) or UNKNOWN
        except OSError:  # no descriptor is free to ask with
            transport.abort()
            return
        number = next(self._numbers)
        connection = Connection(
            self._links,
            source,
            listener.destination,
            closed=lambda: self._forget(number),
            conversation=self._conversation(source, listener),
            messages=self._messages(source, listener),
        )
        self._connections[number] = connection
        connection.connect(transport, (listener.target, listener.target_port), listener.patience_s)

    def _conversation(self, source: str, listener: Listener) -> Conversation | Introduction | None:
        """Return what is to be understood of a connection's speech."""
        match listener.speech:
            case Speech.ZOOKEEPER:
                return Conversation(source, self._replies)
            case Speech.ELECTION:
                return Introduction()
        return None

    def _messages(self, source: str, listener: Listener) -> Messages | None:
        """Return what intercepts a connection's messages, if that may happen."""
        if listener.speech != Speech.KAFKA:  # of a file it is a text
            return None
        target = (listener.target, listener.target_port)
        return Messages(self._interceptor, (source, listener.destination), target)

    def _sender(self, transport: asyncio.Transport, listener: Listener) -> str | None:
        """Return the host that connected, if it is known; raises OSError when it cannot be looked up."""
        address, port = transport.get_extra_info("peername")
        if self._setup.pids is None:
            return self._setup.addresses.get(address)
        return sender(port, listener.port, self._brokers, Path(self._setup.pids))

    # --- probes ---

    def receiving(self, name: str, transport: asyncio.Transport) -> None:
        """Have one end of a probe, which waits for what the other one sends."""
        self._receivers[name] = transport
        transport.write(READY)

    def sending(self, name: str, link: list[str], transport: asyncio.Transport) -> None:
        """Have both ends: what comes in at the second goes over a link, and comes out at the first."""
        source, destination = link
        connection = Connection(self._links, source, destination, closed=lambda: None)
        connection.join(transport, self._receivers.pop(name))
        transport.write(READY)

    def without(self, name: str) -> None:
        """Forget the end of a probe whose other one never came."""
        self._receivers.pop(name, None)

    def _forget(self, number: int) -> None:
        self._connections.pop(number, None)


class _Accepting(asyncio.Protocol):
    """Holds a socket until its sender is identified."""

    def __init__(self, relay: Relay, listener: Listener) -> None:
        self._relay = relay
        self._listener = listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hand it on."""
        self._relay.accepted(self._listener, cast("asyncio.Transport", transport))


class _Probing(asyncio.Protocol):
    """Has one end of a probe until it has said in a JSON line which, by the probe's name, and over which link."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._line = b""
        self._name = ""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Have its socket."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Hand it on when the line is there; one that is no such line ends it."""
        self._line += data
        if not self._line.endswith(b"\n"):
            return
        try:
            greeting = json.loads(self._line)
            if "link" in greeting:
                self._relay.sending(greeting["name"], greeting["link"], self._transport)
            else:
                self._name = greeting["name"]
                self._relay.receiving(self._name, self._transport)
        except (KeyError, TypeError, ValueError):
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Let it be forgotten; nothing happens when it was handed on."""
        self._relay.without(self._name)


def _links(links: list[list[str]]) -> list[Link]:
    if any(len(link) != 2 for link in links):
        raise CommandError(f"a link is a sender and a receiver, not {links}")
    return [(sender, receiver) for sender, receiver in links]

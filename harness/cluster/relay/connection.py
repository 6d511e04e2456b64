"""One connection through the relay: two sockets, and a pipe each way over the links between their hosts.

Whatever one host does comes out at the other in order and through the same pipe: that it connects, sends, has said all,
or breaks off. So nothing of it passes over a cut link, and all of it takes its time over a slow one; what waits is
bounded, and a sender waits when it is full, as with a peer that does not read.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Iterable
from contextvars import copy_context
from enum import Enum, auto
from typing import cast

from harness.cluster.links.links import Links, Pipe
from harness.cluster.relay.election import Introduction
from harness.cluster.relay.frames import Frames
from harness.cluster.relay.messages import Messages
from harness.cluster.relay.zookeeper import Conversation

MOST_WAITING_BYTES = 4 << 20
"""On its way from one end to the other."""
PIECE_BYTES = 4 << 10
"""What passes over a link with a rate in one go: asyncio reads 64 times as much, and nothing else passes meanwhile."""
AGAIN_S = 0.05
AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER by which closing a socket resets its connection."""


class Mark(Enum):
    """What goes over a pipe beside data."""

    CONNECTS = auto()
    CONNECTED = auto()
    ENDS = auto()
    """No more data."""
    BREAKS = auto()


Item = bytes | Mark


class Leg(asyncio.Protocol):
    """One of the two sockets."""

    def __init__(self, arrived: Callable[[Item], None], frames: Frames | Introduction | None) -> None:
        """What comes in here is sent over the pipe of this leg, as whole `frames` if given, to `arrived`."""
        self.arrived = arrived
        self.pipe: Pipe
        self.other: Leg
        self.transport: asyncio.Transport | None = None
        self.gone = False
        self.full = False
        self.waiting_bytes = 0
        self._frames = frames
        self._opened = False
        self._heard_all = False

    # --- as asyncio calls it ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Have a socket; nothing is read before `open`."""
        self.transport = cast("asyncio.Transport", transport)
        own = self.transport.get_extra_info("socket")
        if own.family != socket.AF_UNIX:
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Not yet: until after this callback Python 3.11.2 forgets that reading is paused, and what comes in too early
        # would have nowhere to go.
        asyncio.get_running_loop().call_soon(self.flow)

    def data_received(self, data: bytes) -> None:
        """Send it to the other end."""
        for each in self._pieces(data) if self._frames is None else self._frames.of(data):
            self.waiting_bytes += len(each)
            self.pipe.put(each)
        self.flow()

    def _pieces(self, data: bytes) -> Iterable[bytes]:
        """Return what is sent one by one: over a link that lets nothing pass at once, nothing that holds up much."""
        if self.pipe.passes:
            return (data,)
        return (data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))

    def eof_received(self) -> bool:
        """Tell the other end, and keep the socket: that may still have something to say."""
        self._heard_all = True
        self.pipe.put(Mark.ENDS)
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the other end, if it does not know."""
        self.gone = True
        if error is not None:
            self.pipe.put(Mark.BREAKS)
        self.other.flow()

    def pause_writing(self) -> None:
        """Let the other end's host wait until this one reads."""
        self.full = True
        self.other.flow()

    def resume_writing(self) -> None:
        """Let it go on."""
        self.full = False
        self.other.flow()

    # --- as the connection calls it ---

    def open(self) -> None:
        """Read from now on."""
        self._opened = True
        self.flow()

    def flow(self) -> None:
        """Read, or do not."""
        if self.transport is None or self.gone or self._heard_all or self.transport.is_closing():
            return
        if self._opened and not self.other.full and self.waiting_bytes < MOST_WAITING_BYTES:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def left(self, item: bytes) -> None:
        """Note that something that came in here has come out; what comes out twice came in once."""
        self.waiting_bytes = max(0, self.waiting_bytes - len(item))
        self.flow()

    def write(self, data: bytes) -> None:
        """Send it to this leg's host; nothing happens when that is gone."""
        if self.transport is not None and not self.gone:
            self.transport.write(data)

    def end(self) -> None:
        """Say that nothing more will come."""
        if self.transport is not None and not self.gone:
            with contextlib.suppress(OSError):  # its host is gone, which shows when it is next heard
                self.transport.write_eof()

    def reset(self) -> None:
        """Break it off: its host gets a reset of the connection."""
        if self.transport is not None and not self.gone:
            with contextlib.suppress(OSError):
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            self.transport.abort()


class Connection:
    """From `source`, which opened it, to `destination`."""

    def __init__(
        self,
        links: Links,
        source: str,
        destination: str,
        *,
        closed: Callable[[], None],
        conversation: Conversation | Introduction | None = None,
        messages: Messages | None = None,
    ) -> None:
        """`messages` are intercepted between the two pipes and the sockets."""
        self.source = source
        self.destination = destination
        self._closed = closed
        self._conversation = conversation
        self._messages = messages
        if messages is not None:
            messages.over(self)
        self._ended = 0
        self._over = False
        self._source_ended = False
        self._target: tuple[str, int]
        self._patience_s: float
        self._reaching: asyncio.Task[None] | None = None
        speech = messages or conversation
        self.near = Leg(self._at_source, speech.requests if speech else None)
        self.far = Leg(self._at_destination, speech.answers if speech else None)
        self.near.other, self.far.other = self.far, self.near
        self.near.pipe = Pipe(links, source, destination, self._at_destination, copy_context())
        self.far.pipe = Pipe(links, destination, source, self._at_source, copy_context())

    def connect(self, transport: asyncio.Transport, target: tuple[str, int], patience_s: float = 0.0) -> None:
        """Have the socket of the source, and reach for the destination over the links, as a handshake does.

        While the port refuses connections, try again for `patience_s`.
        """
        self._target, self._patience_s = target, patience_s
        _give(transport, self.near)
        self.near.pipe.put(Mark.CONNECTS)

    def join(self, near: asyncio.Transport, far: asyncio.Transport) -> None:
        """Have both sockets, whatever the links let through."""
        for transport, leg in ((near, self.near), (far, self.far)):
            _give(transport, leg)
        for leg in (self.near, self.far):
            leg.open()

    def reset(self) -> None:
        """Break it at once; both hosts are told."""
        if not self._over:
            self._over = True
            for leg in (self.near, self.far):
                leg.pipe.break_off()
                leg.reset()
            self._closed()

    async def _reach(self) -> None:
        """Connect to the destination, and tell the source over the links."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._patience_s
        while not self._over:
            try:
                await loop.create_connection(lambda: self.far, *self._target, family=socket.AF_INET)
            except OSError:
                if loop.time() >= deadline_s:
                    self.far.pipe.put(Mark.BREAKS)
                    return
                await asyncio.sleep(AGAIN_S)
            else:
                break
        if self._over:
            self.far.reset()
            return
        self.far.open()
        self.far.pipe.put(Mark.CONNECTED)

    def _at_destination(self, item: Item) -> None:
        if item is Mark.CONNECTS:
            self._reaching = asyncio.ensure_future(self._reach())
        elif self._messages is not None:
            self._from_client(self._messages, item)
        elif isinstance(item, bytes) and self._conversation and not self._conversation.reaches_server(item):
            self.reset()
        else:
            self._out(self.far, item)

    def _at_source(self, item: Item) -> None:
        if item is Mark.CONNECTED:
            self.near.open()
        elif self._messages is not None:
            self._messages.from_server(item)
        elif isinstance(item, bytes) and self._conversation and not self._conversation.reaches_client(item):
            self.reset()
        else:
            self._out(self.near, item)

    def _from_client(self, messages: Messages, item: Item) -> None:
        """Hand it to the messages; a source that breaks off while a request is held ends, so that it is handed over."""
        if item in (Mark.ENDS, Mark.BREAKS):
            messages.client_left()
            if self._source_ended and messages.hold_requests:
                return
            item = Mark.ENDS if messages.hold_requests else item
            self._source_ended = True
        messages.from_client(item)

    # --- as intercepted messages call it ---

    def to_server(self, item: Item) -> None:
        """Let something come out at the destination."""
        self._out(self.far, item)

    def to_client(self, item: Item) -> None:
        """Let something come out at the source."""
        self._out(self.near, item)

    def lost(self, item: Item, *, of_client: bool) -> None:
        """Forget something that came in and will not come out."""
        if isinstance(item, bytes):
            (self.near if of_client else self.far).left(item)

    def _out(self, leg: Leg, item: Item) -> None:
        """Let something come out at a leg; what cannot come out breaks the connection, as a gap in it is corruption."""
        with contextlib.ExitStack() as on_error:
            on_error.callback(self.reset)
            if isinstance(item, bytes):
                leg.write(item)
                leg.other.left(item)
            elif item is Mark.ENDS:
                self._ended += 1
                leg.end()
                if self._ended == len((self.near, self.far)):
                    self._close()
            else:
                self.reset()
            on_error.pop_all()

    def _close(self) -> None:
        self._over = True
        for leg in (self.near, self.far):
            if leg.transport is not None:
                leg.transport.close()
        self._closed()


def _give(transport: asyncio.Transport, leg: Leg) -> None:
    transport.set_protocol(leg)
    leg.connection_made(transport)

"""Kafka's messages over one connection of the relay: frames in, and what rules make of them out."""

import asyncio
import struct
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

from harness.cluster.links.conversation import Conversation, Request
from harness.cluster.links.interception import Interceptor
from harness.cluster.relay.frames import Frames
from harness.kafka.requests import Head, Named, error_answer, head_of, is_answered, named_in

_LENGTH = struct.Struct(">i")
_NUMBERED = 2 * _LENGTH.size
"""Least size of an answer: its length and its correlation id."""
AGAIN_TIMEOUT_S = 30.0


class _Frame:
    """A request, or whatever else comes from the host that asks."""

    def __init__(self, item: Any) -> None:
        self.item = item

    @cached_property
    def head(self) -> Head | None:
        return head_of(self.item[_LENGTH.size :]) if isinstance(self.item, bytes) else None

    @cached_property
    def answered(self) -> bool:
        return not isinstance(self.item, bytes) or is_answered(self.item[_LENGTH.size :])

    def named(self) -> Named | None:
        return named_in(self.item[_LENGTH.size :]) if isinstance(self.item, bytes) else None


class Ends(Protocol):
    """What the connection does."""

    def to_server(self, item: Any) -> None:
        """Let something come out at the destination."""
        ...

    def to_client(self, item: Any) -> None:
        """Let something come out at the source."""
        ...

    def lost(self, item: Any, *, of_client: bool) -> None:
        """Forget something that will not come out."""
        ...

    def reset(self) -> None:
        """Break the connection."""
        ...


class Messages:
    """Implements `Wire` over the ends of a connection."""

    def __init__(self, interceptor: Interceptor, link: tuple[str, str], target: tuple[str, int]) -> None:
        """`target` is the address of the destination, for another connection to it."""
        self.requests = Frames()
        self.answers = Frames()
        self._conversation = Conversation(interceptor, link, self)
        self._target = target
        self._ends: Ends
        self._sending: set[asyncio.Task[None]] = set()

    def over(self, ends: Ends) -> None:
        """Work over these ends."""
        self._ends = ends

    def from_client(self, item: Any) -> None:
        """Take something in that came over the link from the source."""
        self._conversation.request(_Frame(item))

    def from_server(self, item: Any) -> None:
        """Take something in that came over the link from the destination."""
        is_answer = isinstance(item, bytes) and len(item) >= _NUMBERED
        number = _LENGTH.unpack_from(item, _LENGTH.size)[0] if is_answer and isinstance(item, bytes) else None
        self._conversation.answer(number, item)

    @property
    def hold_requests(self) -> bool:
        """Whether requests wait."""
        return self._conversation.holds_requests

    def client_left(self) -> None:
        """Note that the source has ended or broken the connection."""
        self._conversation.client_left()

    def to_server(self, item: Any) -> None:
        """Let something come out at the destination."""
        self._ends.to_server(item)

    def to_client(self, item: Any) -> None:
        """Let something come out at the source."""
        self._ends.to_client(item)

    def lost(self, item: Any, *, of_client: bool) -> None:
        """Forget something that will not come out."""
        self._ends.lost(item, of_client=of_client)

    def reset(self) -> None:
        """Break the connection."""
        self._ends.reset()

    def error(self, request: Request, error_code: int) -> bytes:
        """Return the frame of an answer that is an error."""
        assert request.head is not None, "a request was caught by its head"
        body = error_answer(request.head, error_code)
        return _LENGTH.pack(len(body)) + body

    def again(self, item: bytes, answered: Callable[[], None]) -> None:
        """Send a frame over a new connection, and drop its answer."""
        task = asyncio.get_running_loop().create_task(self._again(item, answered))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _again(self, item: bytes, answered: Callable[[], None]) -> None:
        try:
            async with asyncio.timeout(AGAIN_TIMEOUT_S):
                reader, writer = await asyncio.open_connection(*self._target)
                try:
                    writer.write(item)
                    await reader.readexactly(_NUMBERED)
                    answered()
                finally:
                    writer.close()
        except (OSError, asyncio.IncompleteReadError):  # the receiver is gone, or refuses it
            return

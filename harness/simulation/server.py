"""The side of a connection that answers: one request after another, in the process that listens."""

import asyncio
from collections import deque
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

from harness.broker.background import reported
from harness.broker.configs.config import Endpoint
from harness.broker.wire.dispatch import CloseConnection, Dispatcher, RequestContext
from harness.simulation.loop import Process, current_process
from harness.simulation.network import CLOSED, End, Network, SimulatedRequest, SimulatedResponse


@dataclass(slots=True, eq=False)
class MemoryServer:
    """Implements the broker's `Server`."""

    network: Network
    dispatcher: Dispatcher
    process: Process | None = field(default_factory=current_process)
    context: Context = field(default_factory=copy_context)
    _names: dict[int, str] = field(default_factory=dict)
    _serving: asyncio.Event = field(default_factory=asyncio.Event)
    _conversations: dict[asyncio.Task[None], "_Conversation"] = field(default_factory=dict)

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

    def accept(self, port: int, peer: str) -> tuple[End, Context]:
        """Take a connection in; runs as the process that listens."""
        conversation = _Conversation(self, self._names[port], peer)
        task = asyncio.get_running_loop().create_task(conversation.run(self._serving), context=copy_context())
        self._conversations[task] = conversation
        task.add_done_callback(self._ended)
        return conversation.end, self.context

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._conversations.pop(task).end.close()  # here, because a task may be cancelled before its first step
        reported(task)


class _Conversation:
    """One connection as the server has it: one request after another."""

    __slots__ = ("_arrival", "_dispatcher", "_inbox", "_listener", "_peer", "end")

    def __init__(self, server: MemoryServer, listener: str, peer: str) -> None:
        self._dispatcher = server.dispatcher
        self._listener = listener
        self._peer = peer
        self._inbox: deque[Any] = deque()
        self._arrival: asyncio.Future[None] | None = None
        self.end = End(server.network, self._take)

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

    async def _answer(self, request: SimulatedRequest) -> None:
        if request.frame is not None:
            response = await self._dispatcher.dispatch(request.frame, self._listener, self._peer)
            if response is not None:
                self.end.put(SimulatedResponse(request.correlation_id, request.version, None, bytes(response[4:])))
            return
        context = RequestContext(
            api_key=request.api_key,
            api_version=request.version,
            correlation_id=request.correlation_id,
            client_id=request.client_id,
            listener=self._listener,
            peer=self._peer,
        )
        message = await self._dispatcher.answer(request.message, context)
        if message is not None:
            self.end.put(SimulatedResponse(request.correlation_id, request.version, message, None))

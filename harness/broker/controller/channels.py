"""Sends control requests to the brokers: a queue, a task and a connection a broker, nothing reordered or dropped.

After Kafka's `ControllerChannelManager` and `RequestSendThread`. A request from outdated state is still sent: its
receiver refuses it by controller epoch, broker epoch and leader epoch.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from harness.broker.background import reported
from harness.broker.configs.config import Endpoint
from harness.broker.controller.request_batch import ControlRequest
from harness.broker.state_log import StateLog
from harness.broker.unexpected import failed
from harness.broker.wire.messages import ApiMessage
from harness.broker.wire.transport import Connection, PeerError, Transport
from harness.broker.zookeeper.znodes import BrokerRegistration
from harness.events import ControlResponse, ControlSend

log = logging.getLogger(__name__)

RETRY_WAIT_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """What all channels share."""

    transport: Transport
    state_log: StateLog
    controller_id: int
    peer_listener: str
    timeout_s: float
    answered: Callable[[ControlRequest, ApiMessage], None]
    """Called with a request and its answer; must only enqueue."""


class ControllerChannels:
    """One channel a live broker."""

    def __init__(self, settings: ChannelSettings) -> None:
        self._settings = settings
        self._channels: dict[int, _Channel] = {}
        self._senders: dict[asyncio.Task[None], int] = {}
        """Tasks that send, with the broker of each."""

    def add_broker(self, registration: BrokerRegistration) -> None:
        """Open a channel to a broker; no-op if there is one."""
        broker_id = registration.broker_id
        endpoint = registration.endpoint(self._settings.peer_listener)
        if endpoint is None:
            log.error("channel.refused broker=%d reason=no_listener_%s", broker_id, self._settings.peer_listener)
        elif broker_id not in self._channels:
            self._channels[broker_id] = channel = _Channel(self._settings, broker_id, endpoint)
            self._senders[channel.sender] = broker_id
            channel.sender.add_done_callback(lambda sender: self._senders.pop(sender))

    async def remove_broker(self, broker_id: int) -> None:
        """Close a channel; its queue is lost."""
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.close()
            await channel.closed()

    @property
    def brokers(self) -> list[int]:
        """The brokers to which something sends, in order."""
        return sorted(self._senders.values())

    @property
    def unanswered(self) -> list[int]:
        """The brokers that have yet to answer a request, in order."""
        return sorted(broker_id for broker_id, channel in self._channels.items() if channel.unanswered)

    def close(self) -> None:
        """Stop sending."""
        for channel in self._channels.values():
            channel.close()

    async def closed(self) -> None:
        """Return when all channels have ended."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.closed()

    def send(self, request: ControlRequest) -> None:
        """Queue a request; one for a broker without a channel is lost."""
        channel = self._channels.get(request.broker_id)
        if channel is None:
            log.warning("channel.offline broker=%d api=%s", request.broker_id, request.api)
        else:
            channel.put(request)


@dataclass(frozen=True, slots=True)
class _Made:
    """A request, when it was made, and the number of the state-change log's next line then."""

    request: ControlRequest
    at_s: float
    seq: int


class _Channel:
    """Sends to one broker, one request in flight, each repeated until it is answered."""

    def __init__(self, settings: ChannelSettings, broker_id: int, endpoint: Endpoint) -> None:
        self._settings = settings
        self._broker_id = broker_id
        self._endpoint = endpoint
        self._queue: asyncio.Queue[_Made] = asyncio.Queue()
        self._connection: Connection | None = None
        self.unanswered = 0
        """Requests that are queued or in flight."""
        self.sender = asyncio.create_task(self._send_all(), name=f"controller-to-{broker_id}")
        self.sender.add_done_callback(reported)

    def put(self, request: ControlRequest) -> None:
        """Queue a request."""
        self.unanswered += 1
        self._queue.put_nowait(_Made(request, asyncio.get_running_loop().time(), self._settings.state_log.next_seq))

    def close(self) -> None:
        """Drop the connection and all that is queued."""
        self.sender.cancel()
        self._disconnect()

    async def closed(self) -> None:
        """Return when the sender has ended."""
        await asyncio.gather(self.sender, return_exceptions=True)
        self._disconnect()

    async def _send_all(self) -> None:
        correlation_id = 0
        while True:
            made = await self._queue.get()
            correlation_id += 1
            try:
                await self._send(made, correlation_id)
            except Exception as error:  # noqa: BLE001  costs this request; those behind it are still sent
                failed(log, error, "channel.failed broker=%d api=%s", self._broker_id, made.request.api)
                self._disconnect()
            self.unanswered -= 1

    async def _send(self, made: _Made, correlation_id: int) -> None:
        response, request = await self._exchange(made, correlation_id), made.request
        self._settings.state_log.emit(
            ControlResponse(
                api=request.api,
                sender=self._broker_id,
                correlation_id=correlation_id,
                controller_epoch=request.controller_epoch,
                error=response.error_code,
            )
        )
        self._settings.answered(request, response)

    async def _exchange(self, made: _Made, correlation_id: int) -> ApiMessage:
        """Return the broker's answer, after any number of tries."""
        request = made.request
        while True:
            try:
                connection = await self._connect()
                self._settings.state_log.emit(
                    ControlSend(
                        api=request.api,
                        to=self._broker_id,
                        correlation_id=correlation_id,
                        controller_epoch=request.controller_epoch,
                        target_broker_epoch=request.broker_epoch,
                        partitions=list(request.partitions),
                        live_brokers=request.live_brokers,
                        queued_ms=(asyncio.get_running_loop().time() - made.at_s) * 1000,
                        made_seq=made.seq,
                    )
                )
                response: ApiMessage = await connection.request(
                    request.message, request.version, timeout_s=self._settings.timeout_s
                )
                return response
            except PeerError as error:
                log.warning("channel.retry broker=%d api=%s error=%s", self._broker_id, request.api, error)
                self._disconnect()
                await asyncio.sleep(RETRY_WAIT_S)

    async def _connect(self) -> Connection:
        if self._connection is None or self._connection.closed:  # an idle one may have been closed by the broker
            self._connection = await self._settings.transport.connect(
                self._endpoint.host,
                self._endpoint.port,
                client_id=str(self._settings.controller_id),
                timeout_s=self._settings.timeout_s,
            )
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

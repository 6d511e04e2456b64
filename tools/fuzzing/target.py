"""What does a whole broker in memory do with streams of bytes, each as if from a client's own connection?

All of the way is the real one: framing, limits, codecs, handlers, replicas, controller; only sockets, ZooKeeper, disk
and time are the simulation's, so that waiting costs nothing.
"""

import asyncio
import contextlib
import logging
import random
import traceback
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from harness.broker.configs.config import parse_config
from harness.broker.handlers.apis import APIS
from harness.broker.server import Broker, Surroundings
from harness.broker.state_log import LineStateLog
from harness.broker.wire.codec import MalformedMessage, decode_request, decode_request_header
from harness.broker.wire.connections import NotingReads, as_connection
from harness.broker.wire.dispatch import Dispatcher
from harness.broker.wire.limits import ServerLimits
from harness.broker.wire.messages import (
    AddPartitionsToTxnRequest,
    ApiKey,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    MetadataRequest,
)
from harness.broker.wire.server import SocketServer
from harness.broker.wire.transport import PeerError
from harness.broker.zookeeper.znodes import broker_path
from harness.simulation.disk import MemoryStorage
from harness.simulation.network import Network
from harness.simulation.server import MemoryServer
from harness.simulation.transport import MemoryTransport
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper

ANSWER_TIMEOUT_S = 100.0
"""Of virtual time: a later answer counts as a hang, unless the request allows it."""
MAX_REQUEST_BYTES = 1_000_000
_HOST, _CLIENT_PORT, _PEER_PORT = "fuzzed", 9092, 9093
_PROPERTIES = {
    "broker.id": "1",
    "listeners": f"PLAINTEXT://{_HOST}:{_CLIENT_PORT},REPL://{_HOST}:{_PEER_PORT}",
    "inter.broker.listener.name": "REPL",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,REPL:PLAINTEXT",
    "log.dir": "/d",
    "zookeeper.connect": "z",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "auto.create.topics.enable": "false",
    "max.incremental.fetch.session.cache.slots": "20",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that no input may do."""

    kind: str
    """crash, hang, leak or end."""
    what: str
    stream: bytes


class _Sink(asyncio.Transport):
    """Takes responses and forgets them."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__()
        self.taken_bytes = 0
        self._reader = reader
        self._closing = False

    def write(self, data: Any) -> None:
        self.taken_bytes += len(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self._closing

    def abort(self) -> None:
        if not self._closing:
            self._closing = True
            self._reader.feed_eof()

    close = abort


class _Errors(logging.Handler):
    """Keeps what the broker logs as its own mistakes."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.seen.append(_where(record.exc_info[1]))


@dataclass(eq=False)
class FuzzedBroker:
    """The broker, and all that went wrong with it."""

    faults: list[Fault] = field(default_factory=list)
    answered: int = 0
    """Streams that were answered with at least one byte."""
    broker_epoch: int = -1
    producer_ids: list[int] = field(default_factory=list)
    """Those of its transactional ids, which have names that the frames have too."""
    _errors: _Errors = field(default_factory=_Errors)
    broker: Broker = field(init=False)
    server: SocketServer = field(init=False)
    _transport: MemoryTransport = field(init=False)

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, seed: int) -> AsyncIterator[Self]:
        """Start a broker that leads a few partitions."""
        target = cls()
        network, ensemble = Network(), Ensemble()
        target._transport = MemoryTransport(network, "client")
        dispatchers: list[Dispatcher] = []

        def make_server(dispatcher: Dispatcher) -> MemoryServer:
            dispatchers.append(dispatcher)
            return MemoryServer(network, dispatcher)

        loop = asyncio.get_running_loop()
        outside = Surroundings(
            storages={"/d": MemoryStorage()},
            open_session=lambda: SimulatedZooKeeper(ensemble),
            transport=MemoryTransport(network, _HOST),
            make_server=make_server,
            state_log=LineStateLog(
                broker_id=1,
                incarnation="fuzzed",
                write_line=lambda _: None,
                wall_ns=lambda: int(loop.time() * 1e9),
                monotonic_ns=lambda: int(loop.time() * 1e9),
            ),
            wall_ms=lambda: 1_700_000_000_000 + int(loop.time() * 1000),
            rng=random.Random(seed),
        )
        target.broker = Broker(parse_config(_PROPERTIES), outside)
        loop.set_exception_handler(lambda _, context: target._errors.seen.append(str(context)))
        logger = logging.getLogger("harness.broker")
        logger.addHandler(target._errors)
        await target.broker.start()
        target.broker_epoch = ensemble.nodes[broker_path(1)].czxid
        target.server = SocketServer(dispatchers[0], ServerLimits(max_request_bytes=MAX_REQUEST_BYTES))
        try:
            await target._create_topics()
            await target._open_transactions()
            yield target
            await target._finish()
        finally:
            await target.broker.abandon()
            logger.removeHandler(target._errors)

    async def feed(self, stream: bytes, *, reset: bool = False) -> None:
        """Let a client send a stream and leave, or break the connection; what is wrong is noted."""
        reader = asyncio.StreamReader()
        sink = _Sink(reader)
        connection = as_connection(sink, NotingReads(reader), listener="PLAINTEXT", address="fuzz", peer="fuzz:1")
        reader.feed_data(stream)
        if reset:
            reader.set_exception(ConnectionResetError("by the fuzzer"))
        else:
            reader.feed_eof()
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await self.server.converse(connection)
        except TimeoutError:
            if not _may_wait(stream):
                self.note("hang", f"no answer within {ANSWER_TIMEOUT_S:g} s", stream)
        except Exception as error:  # noqa: BLE001  this is what the fuzzer looks for
            self.note("crash", _where(error), stream)
        finally:
            connection.close()
        self.answered += sink.taken_bytes > 0
        for seen in self._errors.seen:
            self.note("crash", seen, stream)
        self._errors.seen.clear()
        if self.server.requests.taken_bytes or self.server.responses.held_bytes:
            self.note("leak", "memory of a request is not given back", stream)
            self.server.requests.taken_bytes = self.server.responses.held_bytes = 0

    def note(self, kind: str, what: str, stream: bytes) -> None:
        """Note that something happened that no input may do."""
        self.faults.append(Fault(kind=kind, what=what, stream=stream))

    async def _request(self, request: Any, version: int) -> Any:
        connection = await self._transport.connect(_HOST, _CLIENT_PORT, client_id="fuzz", timeout_s=ANSWER_TIMEOUT_S)
        try:
            return await connection.request(request, version, timeout_s=ANSWER_TIMEOUT_S)
        finally:
            connection.close()

    async def _without_error(self, request: Any, version: int) -> Any:
        """Send a request until the answer has no error."""
        while True:
            answer = await self._request(request, version)
            if not answer.error_code:
                return answer
            await asyncio.sleep(0.1)

    async def _create_topics(self) -> None:
        topic = CreateTopicsRequest.CreatableTopic
        topics = [
            topic(name=name, num_partitions=2, replication_factor=1, assignments=[], configs=[]) for name in ("t", "u")
        ]
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            while True:
                metadata = await self._request(MetadataRequest(topics=None), 8)
                if [len(topic.partitions) for topic in metadata.topics] == [2, 2]:
                    return
                await self._request(CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=False), 4)

    async def _open_transactions(self) -> None:
        """Let this broker coordinate transactions, one of them open: a request that is nearly right may meet it."""
        partitions = [AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0, 1])]
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            await self._without_error(FindCoordinatorRequest(key="t", key_type=1), 2)
            for name in ("t", "u"):
                init = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
                producer = await self._without_error(init, 1)
                self.producer_ids.append(producer.producer_id)
            added = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="u",
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.producer_epoch,
                v3_and_below_topics=partitions,
            )
            await self._request(added, 3)

    async def _finish(self) -> None:
        """Check that it still serves, and that no request is left waiting."""
        if self.broker.failed.is_set():
            self.note("end", "the broker has failed", b"")
        try:
            await self._request(MetadataRequest(topics=None), 8)
        except PeerError as error:
            self.note("end", str(error), b"")


def _where(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1:]
    location = f" at {last[0].filename}:{last[0].lineno}" if last else ""
    return f"{type(error).__name__}: {error}"[:300] + location


def _may_wait(stream: bytes) -> bool:
    """Return whether a request in the stream allows so much time itself."""
    return any(
        getattr(request, name, 0) > ANSWER_TIMEOUT_S * 1000
        for request in _requests(stream)
        for name in ("max_wait_ms", "timeout_ms")
    )


def _requests(stream: bytes) -> Iterator[Any]:
    at = 0
    while at + 4 <= len(stream):
        size = int.from_bytes(stream[at : at + 4], signed=True)
        if size <= 0:
            return
        with contextlib.suppress(MalformedMessage):  # ApiVersions of an unknown version is answered all the same
            header = decode_request_header(stream[at + 4 : at + 4 + size])
            if header.api_key in APIS:
                yield decode_request(APIS[ApiKey(header.api_key)].request, header)
        at += 4 + size

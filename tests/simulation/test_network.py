"""What connections promise: order, delay, refusal, cuts in both or one direction, and ends that never hear of it."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from harness.broker.configs.config import Endpoint
from harness.broker.handlers.apis import APIS
from harness.broker.wire.dispatch import Dispatcher, RequestContext
from harness.broker.wire.messages import ApiKey, MetadataRequest, MetadataResponse
from harness.broker.wire.transport import PeerError
from harness.cluster.links.links import Links
from harness.simulation.loop import Process, SimulatedLoop, run
from harness.simulation.network import Network
from harness.simulation.server import MemoryServer
from harness.simulation.transport import MemoryConnection, MemoryTransport

TIMEOUT_S = 2.0
VERSION = 8


def simulated_loop() -> SimulatedLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    return loop


@dataclass
class Stage:
    """One server that answers after as long as it is asked to wait, and clients."""

    network: Network
    server: Process = field(default_factory=lambda: Process("server"))
    client: Process = field(default_factory=lambda: Process("client"))
    requests: list[str] = field(default_factory=list)

    async def start(self) -> None:
        task = self.server.call(asyncio.ensure_future, self._serve())
        await task

    async def _serve(self) -> None:
        listening = MemoryServer(self.network, Dispatcher(APIS, {ApiKey.METADATA: self._answer}))
        listening.bind(Endpoint(name="PLAINTEXT", host="far", port=1))
        await listening.serve()

    async def _answer(self, request: MetadataRequest, context: RequestContext) -> MetadataResponse:
        (topic,) = request.topics or []
        name = topic.name or ""
        self.requests.append(name)
        if name.startswith("slow"):
            await asyncio.sleep(1)
        return MetadataResponse(throttle_time_ms=0, brokers=[], cluster_id=name, controller_id=1, topics=[])

    async def connect(self, port: int = 1) -> MemoryConnection:
        connecting = MemoryTransport(self.network, "near").connect("far", port, client_id="c", timeout_s=TIMEOUT_S)
        return await self.client.call(asyncio.ensure_future, connecting)

    async def ask(self, connection: MemoryConnection, name: str) -> str:
        answer = await connection.request(_question(name), VERSION, timeout_s=TIMEOUT_S)
        return str(answer.cluster_id)


def _question(name: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)])


def played(story: Callable[[Stage], Awaitable[None]], *, through_codecs: bool = False) -> None:
    async def play() -> None:
        stage = Stage(Network(Links(random.Random(1)), through_codecs=through_codecs))
        await stage.start()
        await story(stage)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        assert loop.complaints == []

    run(play())


def now_s() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("through_codecs", [False, True], ids=["as messages", "as frames"])
def test_pipelined_requests_are_answered_in_their_order(through_codecs: bool) -> None:
    async def story(stage: Stage) -> None:
        connection = await stage.connect()
        names = ["slow", *(f"n{number}" for number in range(50))]
        answers = await asyncio.gather(*(connection.send(_question(name), VERSION) for name in names))
        assert [answer.cluster_id for answer in answers] == names == stage.requests

    played(story, through_codecs=through_codecs)


async def _nobody_listens(stage: Stage) -> None:
    with pytest.raises(PeerError, match="refused"):
        await stage.connect(port=2)


async def _refused_while_closed(stage: Stage) -> None:
    connection = await stage.connect()
    connection.close()
    with pytest.raises(PeerError, match="closed"):
        await stage.ask(connection, "a")


async def _the_server_dies(stage: Stage) -> None:
    connection = await stage.connect()
    pending = asyncio.ensure_future(stage.ask(connection, "slow"))
    await asyncio.sleep(0.5)
    began = now_s()
    simulated_loop().kill(stage.server)
    stage.network.process_died(stage.server)
    with pytest.raises(PeerError, match="closed before"):
        await pending
    assert now_s() - began < 0.1
    with pytest.raises(PeerError, match="refused"):
        await stage.connect()


async def _the_host_vanishes(stage: Stage) -> None:
    connection = await stage.connect()
    pending = asyncio.ensure_future(stage.ask(connection, "slow"))
    await asyncio.sleep(0.5)
    simulated_loop().kill(stage.server)
    stage.network.process_died(stage.server, silently=True)
    began = now_s()
    with pytest.raises(PeerError, match="no response within"):
        await pending
    assert now_s() - began == pytest.approx(TIMEOUT_S - 0.5, abs=0.1)


async def _half_open(stage: Stage) -> None:
    connection = await stage.connect()
    simulated_loop().kill(stage.server)
    stage.network.process_died(stage.server, silently=True)
    await asyncio.sleep(5)
    assert not connection.closed, "it was not notified"
    began = now_s()
    with pytest.raises(PeerError, match="closed before"):
        await stage.ask(connection, "a")
    assert now_s() - began < 0.1, "writes to a closed end are refused"


async def _cut(stage: Stage) -> None:
    connection = await stage.connect()
    stage.network.links.isolate("near", ["far"])
    pending = asyncio.ensure_future(stage.ask(connection, "a"))
    await asyncio.sleep(1)
    assert stage.requests == []
    stage.network.links.rejoin("near", ["far"])
    assert await pending == "a", "what was sent meanwhile is sent again"


async def _cut_for_too_long(stage: Stage) -> None:
    connection = await stage.connect()
    stage.network.links.isolate("near", ["far"])
    with pytest.raises(PeerError, match="no response within"):
        await stage.ask(connection, "a")
    with pytest.raises(PeerError, match="not within 2 s"):
        await stage.connect()


async def _one_way(stage: Stage) -> None:
    connection = await stage.connect()
    stage.network.links.cut("far", "near")
    pending = asyncio.ensure_future(stage.ask(connection, "a"))
    await asyncio.sleep(1)
    assert (stage.requests, pending.done()) == (["a"], False)
    stage.network.links.heal("far", "near")
    assert await pending == "a"


async def _slow(stage: Stage) -> None:
    connection = await stage.connect()
    stage.network.links.slow("near", "far", 0.5)
    began = now_s()
    await stage.ask(connection, "a")
    assert 0.5 < now_s() - began < 0.6
    stage.network.links.slow("near", "far", 0)
    began = now_s()
    await stage.ask(connection, "b")
    assert now_s() - began < 0.1


async def _paused(stage: Stage) -> None:
    connection = await stage.connect()
    loop = simulated_loop()
    loop.freeze(stage.server)
    pending = asyncio.ensure_future(stage.ask(connection, "a"))
    another = asyncio.ensure_future(stage.connect())
    await asyncio.sleep(1)
    assert (stage.requests, another.done()) == ([], True), "the kernel accepts, no server answers"
    loop.thaw(stage.server)
    assert await pending == "a"


async def _cancelled(stage: Stage) -> None:
    connection = await stage.connect()
    pending = asyncio.ensure_future(stage.ask(connection, "slow"))
    await asyncio.sleep(0.1)
    pending.cancel()
    await asyncio.gather(pending, return_exceptions=True)
    assert connection.closed, "its response may still come, to the next request"


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(_nobody_listens, id="refused without a listener"),
        pytest.param(_refused_while_closed, id="a closed connection sends nothing"),
        pytest.param(_the_server_dies, id="a process that dies resets its connections"),
        pytest.param(_the_host_vanishes, id="a host that vanishes resets nothing"),
        pytest.param(_half_open, id="an end that never heard stays open until it speaks"),
        pytest.param(_cut, id="a cut link holds back and loses nothing"),
        pytest.param(_cut_for_too_long, id="what waits for a cut link for too long is given up"),
        pytest.param(_one_way, id="a link may be cut one way"),
        pytest.param(_slow, id="a link may be slow"),
        pytest.param(_paused, id="a paused process's connections wait"),
        pytest.param(_cancelled, id="a cancelled request closes its connection"),
    ],
)
def test_connections_break_as_real_ones_do(story: Callable[[Stage], Awaitable[None]]) -> None:
    played(story)


def test_a_server_that_stops_right_after_it_took_a_connection_in_closes_it() -> None:
    async def play() -> None:
        network = Network(Links())
        server = MemoryServer(network, Dispatcher(APIS, {}))
        server.bind(Endpoint(name="PLAINTEXT", host="far", port=1))
        connecting = asyncio.ensure_future(
            MemoryTransport(network, "near").connect("far", 1, client_id="c", timeout_s=TIMEOUT_S)
        )
        while not server._conversations:  # noqa: ASYNC110  in virtual time looking costs nothing
            await asyncio.sleep(0)
        await server.stop()
        connection = await connecting
        with pytest.raises(PeerError, match="closed"):
            await connection.request(_question("a"), VERSION, timeout_s=TIMEOUT_S)

    run(play())

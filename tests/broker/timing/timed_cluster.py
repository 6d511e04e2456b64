"""Three whole brokers in virtual time, with one topic and a client, for tests of when things happen."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from harness.broker.log.batch import build_batch
from harness.broker.log.records import Record
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import FetchRequest, ProduceRequest
from harness.broker.wire.transport import Message, PeerError
from harness.broker.zookeeper.znodes import ControllerZnode, PartitionStateZnode
from harness.events import Event
from harness.experiment.drive import create_topics
from harness.scenario.model import TopicSpec
from harness.simulation.cluster import CLIENT_PORT, SimulatedCluster
from harness.simulation.loop import SimulatedLoop, run
from harness.simulation.topics import SimulatedTopicAdmin
from harness.simulation.transport import MemoryTransport

LAG_S, SESSION_S, PING_S = 3.0, 4.0, 4.0 / 3
TOPIC = "orders"
STATE = f"/brokers/topics/{TOPIC}/partitions/0/state"
LATENCY_S = 0.1
"""Far more than a few messages take."""
EVERY_S = 0.005

E = TypeVar("E", bound=Event)


class TimedCluster:
    """A cluster, what stands in ZooKeeper, and a client."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.acknowledged: list[str] = []
        self._transport = MemoryTransport(cluster.network, "client")

    @property
    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def state(self) -> PartitionStateZnode:
        return PartitionStateZnode.decode(TOPIC, 0, self.cluster.ensemble.data(STATE))

    @property
    def controller(self) -> int:
        node = self.cluster.ensemble.nodes.get("/controller")
        return -1 if node is None else ControllerZnode.decode(node.data).broker_id

    @property
    def controller_epoch(self) -> int:
        return int(self.cluster.ensemble.data("/controller_epoch"))

    @property
    def registered(self) -> list[str]:
        return self.cluster.ensemble.names("/brokers/ids")

    def cut_off(self, broker_id: int) -> None:
        """Let a broker reach ZooKeeper and no other broker."""
        self.cluster.network.links.isolate(f"broker-{broker_id}", self._others(broker_id))

    def rejoin(self, broker_id: int) -> None:
        self.cluster.network.links.rejoin(f"broker-{broker_id}", self._others(broker_id))

    def _others(self, broker_id: int) -> list[str]:
        return [broker.host for other, broker in self.cluster.brokers.items() if other != broker_id]

    def events_of(self, broker_id: int, kind: type[E]) -> list[E]:
        return [logged.event for logged in self.cluster[broker_id].log.events if isinstance(logged.event, kind)]

    async def until(self, condition: Callable[[], bool], what: str, within_s: float = 30.0) -> float:
        """Return how long it took until something was true."""
        began_s = self.now_s
        while not condition():
            assert self.now_s - began_s < within_s, f"{what}: not within {within_s} s"
            await asyncio.sleep(EVERY_S)
        return self.now_s - began_s

    async def ask(self, broker_id: int, message: Message, version: int) -> Message:
        connection = await self._transport.connect(f"broker-{broker_id}", CLIENT_PORT, client_id="test", timeout_s=60)
        try:
            return await connection.request(message, version, timeout_s=60)
        finally:
            connection.close()

    async def produce(self, broker_id: int, value: str, *, acks: int = -1, timeout_ms: int = 30_000) -> int:
        """Write one record to a broker, and return the error."""
        data = ProduceRequest.TopicProduceData
        records = build_batch([Record(value=value.encode(), timestamp_ms=1)])
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[data(name=TOPIC, partition_data=[data.PartitionProduceData(index=0, records=records)])],
        )
        answer = await self.ask(broker_id, request, 8)
        error = int(answer.responses[0].partition_responses[0].error_code)
        if error == ErrorCode.NONE and acks == -1:
            self.acknowledged.append(value)
        return error

    async def fetch(self, broker_id: int, offset: int, max_wait_ms: int) -> Any:
        """Return what a consumer gets."""
        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, topics=[topic(topic=TOPIC, partitions=[partition])]
        )
        return (await self.ask(broker_id, request, 11)).responses[0].partitions[0]

    async def keep_writing(self) -> None:
        """Write to the current leader continuously; a write that fails is given up."""
        number = 0
        while True:
            number += 1
            leader = self.state.leader
            try:
                async with asyncio.timeout(0.5):
                    await self.produce(leader, f"value-{number}", timeout_ms=400)
            except (PeerError, TimeoutError):
                pass
            await asyncio.sleep(0.05)

    async def whole(self) -> None:
        """Return when every replica is in the ISR, and every broker has all that was acknowledged."""
        await self.until(lambda: len(self.state.isr) == 3, "full ISR")
        await asyncio.sleep(2)
        for broker_id, broker in self.cluster.brokers.items():
            log = bytes(broker.disk.read(f"{TOPIC}-0/00000000000000000000.log"))
            missing = [value for value in self.acknowledged if value.encode() not in log]
            assert missing == [], f"broker {broker_id} lost acknowledged records"


Story = Callable[[TimedCluster], Awaitable[None]]


def timed(story: Story, *, seed: int = 1, zookeeper_servers: int = 1, **properties: str) -> None:
    """Tell a story of three brokers that run, and of their topic with one partition led by the first of its ISR."""

    async def work() -> None:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        cluster = SimulatedCluster([0, 1, 2], seed=seed, properties=named, zookeeper_servers=zookeeper_servers)
        assert all(await asyncio.gather(*(broker.start() for broker in cluster.brokers.values())))
        spec = TopicSpec(name=TOPIC, partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
        await create_topics(SimulatedTopicAdmin(cluster).create, [spec])
        timing = TimedCluster(cluster)
        await timing.until(lambda: STATE in cluster.ensemble.nodes and len(timing.state.isr) == 3, "topic")
        await asyncio.sleep(1)
        await story(timing)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        assert loop.complaints == []

    run(work())


def follower(timing: TimedCluster) -> int:
    """Return a replica that neither leads nor is controller."""
    return next(broker_id for broker_id in (0, 1, 2) if broker_id not in (timing.state.leader, timing.controller))

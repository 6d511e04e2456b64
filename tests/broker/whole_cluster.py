"""Whole brokers in one process: real `Broker` objects on a ZooKeeper, a network and disks in memory."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from inspect import isawaitable
from typing import Any, TypeVar

from harness.broker.administration.config_changes import Resource
from harness.broker.configs.config import parse_config
from harness.broker.log.batch import build_batch
from harness.broker.log.records import Record
from harness.broker.server import Broker, Surroundings
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from harness.broker.wire.transport import Message
from harness.cluster.links.links import Links
from harness.events import Event
from harness.simulation.disk import MemoryStorage
from harness.simulation.network import Network
from harness.simulation.server import MemoryServer
from harness.simulation.transport import MemoryTransport
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from tests.broker.recording_state_log import RecordingStateLog

LATENCY_S = 0.001
WALL_MS = 1_700_000_000_000
"""What the brokers' clocks show, which stand still until a test moves them, or lets them go."""
CLIENT, PEER = "PLAINTEXT", "REPL"
HOST = "h"

T = TypeVar("T")
E = TypeVar("E", bound=Event)


@dataclass
class WholeCluster:
    """Brokers 1 to 3, none of them started."""

    properties: dict[str, str] = field(default_factory=dict)
    planted_bugs: tuple[str, ...] = ()
    zookeeper: Ensemble = field(default_factory=Ensemble)
    network: Network = field(default_factory=lambda: Network(Links(random.Random(1)), through_codecs=True))
    disks: dict[object, MemoryStorage] = field(default_factory=dict)
    brokers: dict[int, Broker] = field(default_factory=dict)
    logs: dict[int, RecordingStateLog] = field(default_factory=dict)
    sessions: dict[int, Any] = field(default_factory=dict)
    wall_ms: int = WALL_MS
    clocks_go: bool = False
    """Whether the brokers' clocks go with the loop's time."""

    async def __aenter__(self) -> "WholeCluster":
        return self

    async def __aexit__(self, *_: object) -> None:
        for broker_id in sorted(self.brokers):
            await self.brokers[broker_id].abandon()

    def prepare(self, broker_id: int, **properties: str) -> Broker:
        """Return a broker that is not started yet; its disk is the one it had."""
        config = parse_config(
            {
                "broker.id": str(broker_id),
                "listeners": f"{CLIENT}://{HOST}:{client_port(broker_id)},{PEER}://{HOST}:{9100 + broker_id}",
                "inter.broker.listener.name": "REPL",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,REPL:PLAINTEXT",
                "log.dir": "/d",
                "zookeeper.connect": "z",
                "offsets.topic.num.partitions": "1",
                "controlled.shutdown.retry.backoff.ms": "500",
                "auto.create.topics.enable": "false",
                **self.properties,
                **properties,
            }
        )

        def open_session() -> Any:
            self.sessions[broker_id] = SimulatedZooKeeper(self.zookeeper)
            return self.sessions[broker_id]

        self.logs.setdefault(broker_id, RecordingStateLog([]))
        outside = Surroundings(
            storages={name: self.disk(broker_id, name) for name in config.log_dirs},
            open_session=open_session,
            transport=MemoryTransport(self.network, HOST),
            make_server=partial(MemoryServer, self.network),
            state_log=self.logs[broker_id],
            wall_ms=self._now_ms,
            rng=random.Random(broker_id),
        )
        return Broker(config, outside, planted_bugs=self.planted_bugs)

    def _now_ms(self) -> int:
        return self.wall_ms + (int(asyncio.get_running_loop().time() * 1000) if self.clocks_go else 0)

    def disk(self, broker_id: int, name: str) -> MemoryStorage:
        """Return the disk of a data directory; `disks` has that of the first by the broker alone."""
        key = broker_id if name == "/d" else (broker_id, name)
        return self.disks.setdefault(key, MemoryStorage())

    async def start(self, *broker_ids: int, t: list[int] | None = None) -> None:
        """Start brokers and wait until each knows of all; then create topic t, if its replicas are given."""
        for broker_id in broker_ids:
            self.brokers[broker_id] = self.prepare(broker_id)
            await self.brokers[broker_id].start()
        await self.until(self._know_each_other, "brokers know each other")
        if t:
            await self.create("t", t)

    async def stop(self, broker_id: int) -> None:
        """Stop a broker cleanly."""
        await self.brokers.pop(broker_id).stop()

    async def _know_each_other(self) -> bool:
        known = [await self.metadata(broker_id) for broker_id in self.brokers]
        return all({broker.node_id for broker in answer.brokers} == self.brokers.keys() for answer in known)

    async def until(self, seen: Callable[[], Awaitable[bool] | bool], what: str, within_s: float = 30) -> None:
        """Return when something has become true."""
        try:
            async with asyncio.timeout(within_s):
                while not (await now if isawaitable(now := seen()) else now):  # noqa: ASYNC110  in virtual time
                    await asyncio.sleep(LATENCY_S)
        except TimeoutError:
            raise AssertionError(f"{what}: not within {within_s} s") from None

    async def until_led(self, topic: str, leader: int, *, by: int | None = None) -> None:
        """Return when a topic has a leader, as that leader or another broker sees it."""

        async def led() -> bool:
            return await self.leader(topic, leader if by is None else by) == leader

        await self.until(led, f"{leader} leads {topic}")

    def of(self, broker_id: int, kind: type[E]) -> list[E]:
        """Return the events of one kind that a broker has written."""
        return [event for event in self.logs[broker_id].events if isinstance(event, kind)]

    # --- a client ---

    async def ask(self, broker_id: int, message: Message, version: int) -> Any:
        """Return a broker's answer to a client."""
        transport = MemoryTransport(self.network, "client")
        connection = await transport.connect(HOST, client_port(broker_id), client_id="test", timeout_s=60)
        try:
            return await connection.request(message, version, timeout_s=60)
        finally:
            connection.close()

    async def metadata(self, broker_id: int) -> Any:
        return await self.ask(broker_id, MetadataRequest(topics=None), 8)

    async def controller(self, broker_id: int) -> int:
        return int((await self.metadata(broker_id)).controller_id)

    async def leader(self, topic: str, broker_id: int, partition: int = 0) -> int:
        """Return the leader of a partition, as one broker sees it; -1 for none."""
        for known in (await self.metadata(broker_id)).topics:
            for info in known.partitions:
                if (known.name, info.partition_index) == (topic, partition):
                    return int(info.leader_id)
        return -1

    async def create(self, topic: str, replicas: list[int], **config: str) -> int:
        """Have the controller create a topic of one partition, and return the error."""
        creatable = CreateTopicsRequest.CreatableTopic
        placed = creatable.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)
        configs = [creatable.CreatableTopicConfig(name=name.replace("_", "."), value=v) for name, v in config.items()]
        wanted = creatable(name=topic, num_partitions=-1, replication_factor=-1, assignments=[placed], configs=configs)
        controller_id = await self.controller(min(self.brokers))
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=5000, validate_only=False)
        return int((await self.ask(controller_id, request, 4)).topics[0].error_code)

    async def configure(self, broker_id: int, name: str, properties: dict[str, str]) -> int:
        """Have a broker take these properties for the one of that name, and return the error."""
        resource = AlterConfigsRequest.AlterConfigsResource
        configs = [resource.AlterableConfig(name=key, value=value) for key, value in properties.items()]
        target = resource(resource_type=Resource.BROKER, resource_name=name, configs=configs)
        request = AlterConfigsRequest(resources=[target], validate_only=False)
        return int((await self.ask(broker_id, request, 1)).responses[0].error_code)

    async def create_anywhere(self, topic: str, *, partitions: int = -1, replication_factor: int = -1) -> int:
        """Have the controller create a topic where it likes, and return the error."""
        creatable = CreateTopicsRequest.CreatableTopic
        wanted = creatable(
            name=topic, num_partitions=partitions, replication_factor=replication_factor, assignments=[], configs=[]
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=5000, validate_only=False)
        return int((await self.ask(await self.controller(min(self.brokers)), request, 4)).topics[0].error_code)

    async def produce(self, broker_id: int, topic: str, value: str, *, timestamp_ms: int = 1) -> int:
        """Write one record with acks=all, and return the error."""
        return int((await self.produced(broker_id, topic, value, timestamp_ms)).error_code)

    async def produced(self, broker_id: int, topic: str, value: str, timestamp_ms: int) -> Any:
        """Write one record with acks=all, and return the answer."""
        return await self._sent(
            broker_id, topic, build_batch([Record(value=value.encode(), timestamp_ms=timestamp_ms)])
        )

    async def append(self, broker_id: int, topic: str, records: bytes) -> int:
        """Write a batch with acks=all, and return the error."""
        return int((await self._sent(broker_id, topic, records)).error_code)

    async def _sent(self, broker_id: int, topic: str, records: bytes) -> Any:
        data = ProduceRequest.TopicProduceData
        partition = data.PartitionProduceData(index=0, records=records)
        request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data(name=topic, partition_data=[partition])])
        return (await self.ask(broker_id, request, 8)).responses[0].partition_responses[0]

    async def coordinator(self, group: str, broker_id: int) -> int:
        """Return the coordinator of a group, as one broker sees it; -1 for none."""
        answer = await self.ask(broker_id, FindCoordinatorRequest(key=group, key_type=0), 2)
        return int(answer.node_id) if answer.error_code == ErrorCode.NONE else -1

    async def commit(self, broker_id: int, group: str, topic: str, offset: int) -> int:
        """Commit the position of partition 0, and return the error."""
        of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
        partition = of_topic.OffsetCommitRequestPartition(committed_offset=offset)
        request = OffsetCommitRequest(group_id=group, topics=[of_topic(name=topic, partitions=[partition])])
        return int((await self.ask(broker_id, request, 7)).topics[0].partitions[0].error_code)

    async def committed(self, broker_id: int, group: str, topic: str) -> tuple[int, int]:
        """Return the error and the committed position of partition 0."""
        topics = OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
        answer = await self.ask(broker_id, OffsetFetchRequest(group_id=group, topics=[topics]), 5)
        if answer.error_code != ErrorCode.NONE:
            return int(answer.error_code), -1
        return 0, int(answer.topics[0].partitions[0].committed_offset)


def listens(cluster: WholeCluster, port: int) -> bool:
    """Whether a process has taken a port."""
    return cluster.network.listener(HOST, port) is not None


def client_port(broker_id: int) -> int:
    return 9000 + broker_id

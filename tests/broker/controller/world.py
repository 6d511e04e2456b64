"""A cluster's ZooKeeper with brokers that only have a controller, for whole-controller tests."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from harness.broker.configs.config import BrokerConfig, Endpoint, parse_config
from harness.broker.controller.active import ActiveController
from harness.broker.controller.controller import Controller
from harness.broker.rules import ProtocolRules
from harness.broker.zookeeper.registration import ensure_persistent_paths, register_broker
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.topics import create_topic
from harness.broker.zookeeper.znodes import BrokerRegistration, PartitionStateZnode, encode_config, topic_config_path
from harness.events import Event
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from tests.broker.controller.fake_transport import FakeTransport
from tests.broker.recording_state_log import RecordingStateLog

E = TypeVar("E", bound=Event)

LISTENER = "REPL"


def config_of(broker_id: int, properties: Mapping[str, str] | None = None) -> BrokerConfig:
    return parse_config(
        {
            "broker.id": str(broker_id),
            "listeners": f"{LISTENER}://h:{broker_id}",
            "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT",
            "log.dir": "/unused",
            "zookeeper.connect": "unused",
            **(properties or {}),
        }
    )


def registration_of(broker_id: int) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id=broker_id,
        endpoints=(Endpoint(name=LISTENER, host="h", port=broker_id), Endpoint(name="PLAINTEXT", host="h", port=1)),
        timestamp_ms=0,
    )


async def settle() -> None:
    """Let everything that can go on go on; nothing here waits for time."""
    for _ in range(400):
        await asyncio.sleep(0)


@dataclass
class FakeBroker:
    """One broker: session, registration and controller, wired as the real one wires them."""

    broker_id: int
    server: Ensemble
    transport: FakeTransport
    properties: Mapping[str, str] = field(default_factory=dict)
    rules: ProtocolRules = field(default_factory=ProtocolRules)
    log: RecordingStateLog = field(default_factory=lambda: RecordingStateLog(events=[]))

    def __post_init__(self) -> None:
        self.sessions: list[SimulatedZooKeeper] = []
        self.session = ZooKeeperSession(self._open, self.log)
        self.controller = Controller(
            config=config_of(self.broker_id, self.properties),
            session=self.session,
            transport=self.transport,
            state_log=self.log,
            wall_ms=lambda: 0,
            rules=self.rules,
        )
        self.broker_epoch = -1

    async def start(self) -> None:
        await self.session.start()
        await ensure_persistent_paths(self.session.current)
        await self._register()
        self.session.before_new_session(self.controller.before_new_session)
        self.session.after_new_session(self._renew)
        await self.controller.start()

    async def stop(self) -> None:
        await self.controller.stop()
        await self.session.stop()

    @property
    def active(self) -> ActiveController:
        active = self.controller._active
        assert active is not None
        return active

    def events(self, kind: type[E]) -> list[E]:
        return [event for event in self.log.events if isinstance(event, kind)]

    def _open(self) -> SimulatedZooKeeper:
        self.sessions.append(SimulatedZooKeeper(self.server))
        return self.sessions[-1]

    async def _register(self) -> None:
        self.broker_epoch = await register_broker(
            self.session.current,
            registration_of(self.broker_id),
            previous_session_id=self.session.previous_session_id,
            state_log=self.log,
            rules=self.rules,
        )

    async def _renew(self) -> None:
        await self._register()
        await self.controller.after_new_session(self.broker_epoch)


class World:
    """ZooKeeper, the network, and brokers; the one started first is controller."""

    def __init__(self) -> None:
        self.server = Ensemble()
        self.transport = FakeTransport()
        self.brokers: dict[int, FakeBroker] = {}
        self.rules = ProtocolRules()
        self._outside = SimulatedZooKeeper(self.server)

    async def start(
        self,
        *broker_ids: int,
        properties: Mapping[str, str] | None = None,
        t: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """Start brokers one after the other, and then create topic t, if its replicas are given."""
        for broker_id in broker_ids:
            self.transport.down.discard(broker_id)
            self.brokers[broker_id] = FakeBroker(broker_id, self.server, self.transport, properties or {}, self.rules)
            await self.brokers[broker_id].start()
            await settle()
        if t:
            await self.create("t", t)

    async def kill(self, broker_id: int) -> None:
        """End a broker without a word: its session ends, its peers cannot reach it."""
        broker = self.brokers.pop(broker_id)
        self.transport.down.add(broker_id)
        await broker.controller._queue.stop()
        for zk in broker.sessions:
            await zk.close()
        await broker.stop()
        await settle()

    async def stop(self) -> None:
        for broker in self.brokers.values():
            await broker.stop()

    async def create(
        self, topic: str, assignment: Mapping[int, Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None:
        if not self._outside.session_id:
            await self._outside.connect()
        await create_topic(self._outside, topic, assignment, config or {})
        await settle()

    def configure(self, topic: str, config: Mapping[str, str]) -> None:
        self.server.put(topic_config_path(topic), encode_config(config))

    def path(self, topic: str = "t", partition: int = 0) -> str:
        return f"/brokers/topics/{topic}/partitions/{partition}/state"

    def state(self, topic: str = "t", partition: int = 0) -> PartitionStateZnode:
        return PartitionStateZnode.decode(topic, partition, self.server.data(self.path(topic, partition)))

    def leader_writes_isr(self, isr: tuple[int, ...]) -> None:
        """Have the partition's leader change its ISR, as it would: no epoch changes."""
        now = self.state()
        changed = PartitionStateZnode(
            leader=now.leader, leader_epoch=now.leader_epoch, isr=isr, controller_epoch=now.controller_epoch
        )
        self.server.put(self.path(), changed.encode())

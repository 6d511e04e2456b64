"""Three brokers in one process as far as replication goes, on logs in memory; the test is the controller."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from harness.broker.configs.config import BrokerConfig, parse_config
from harness.broker.configs.topic_properties import inherited
from harness.broker.handlers.apis import APIS, bound
from harness.broker.handlers.control import ControlHandlers
from harness.broker.handlers.data import DataHandlers
from harness.broker.log.batch import BatchHeader, build_batch, iter_batches
from harness.broker.log.directories import DataDirectory, LogDirectories
from harness.broker.log.directory import LogDirectory
from harness.broker.log.manager import LogManager
from harness.broker.log.records import Record
from harness.broker.metadata_cache import MetadataCache
from harness.broker.replicas.appending import AppendResult, ProduceParams, ToAppend
from harness.broker.replicas.fetch_sessions import FetchSessions
from harness.broker.replicas.partition import Partition
from harness.broker.replicas.replica_manager import ReplicaManager
from harness.broker.replicas.replicas import now_s
from harness.broker.rules import rules_with
from harness.broker.wire.dispatch import Dispatcher, RequestContext
from harness.broker.wire.messages import ApiKey, LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from harness.broker.zookeeper.znodes import ISR_CHANGES, PartitionStateZnode, partition_state_path
from harness.cluster.links.links import Links
from harness.events import FORGOTTEN, EpochAssign, Event
from harness.simulation.disk import MemoryStorage
from harness.simulation.network import Network
from harness.simulation.server import MemoryServer
from harness.simulation.transport import MemoryConnection, MemoryTransport
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from harness.values import ACKS_ALL
from tests.broker.recording_state_log import RecordingStateLog

TOPIC = "t"
CONTROLLER = 9
LATENCY_S = 0.001
WALL_MS = 1_000_000

PROPERTIES = {
    "listener.security.protocol.map": "REPL:PLAINTEXT",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "3000",
    "min.insync.replicas": "1",
}


def batch(*values: str) -> bytes:
    return build_batch([Record(value=value.encode(), timestamp_ms=1000 + i) for i, value in enumerate(values)])


class EvenLinks(Links):
    """Every message takes the same time."""

    def delay_s(self, link: tuple[str, str]) -> float:
        return LATENCY_S


class ReplicaNetwork:
    """Which brokers reach each other; an isolated one loses its connections too."""

    def __init__(self) -> None:
        self.network = Network(EvenLinks(), through_codecs=True)
        self.brokers: dict[int, Broker] = {}
        self.down: set[int] = set()
        self.connections: list[tuple[int, int, MemoryConnection]] = []

    def isolate(self, broker_id: int) -> None:
        self.network.links.isolate(host_of(broker_id), [host_of(other) for other in self.brokers if other != broker_id])
        self._drop(broker_id)

    def heal(self) -> None:
        hosts = [host_of(broker_id) for broker_id in self.brokers]
        for host in hosts:
            self.network.links.rejoin(host, [other for other in hosts if other != host])

    def kill(self, broker_id: int) -> None:
        self.down.add(broker_id)
        self.network.stop_listening(self.brokers[broker_id].server)
        self._drop(broker_id)

    def _drop(self, broker_id: int) -> None:
        others = []
        for connection in self.connections:
            if broker_id in connection[:2]:
                connection[2].close()
            else:
                others.append(connection)
        self.connections = others


@dataclass
class NetworkTransport:
    """Opens connections, and lets the network know of them."""

    network: ReplicaNetwork
    sender: int

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> MemoryConnection:
        transport = MemoryTransport(self.network.network, host_of(self.sender))
        connection = await transport.connect(host, port, client_id=client_id, timeout_s=timeout_s)
        self.network.connections.append((self.sender, port, connection))
        return connection


async def _known(_topics: Iterable[str]) -> None:
    """Every topic has the broker's own configuration."""


def host_of(broker_id: int) -> str:
    return f"h{broker_id}"


class Broker:
    """The replicas of one broker with their handlers."""

    def __init__(
        self,
        broker_id: int,
        network: ReplicaNetwork,
        zookeeper: SimulatedZooKeeper,
        properties: dict[str, str],
        planted_bugs: list[str],
        storage: MemoryStorage | None = None,
    ) -> None:
        own = {"broker.id": str(broker_id), "listeners": f"REPL://{host_of(broker_id)}:{broker_id}", "log.dir": "d"}
        self.id = broker_id
        self.config: BrokerConfig = parse_config({**own, "zookeeper.connect": "z", **PROPERTIES, **properties})
        self.storage = storage or MemoryStorage()
        self.events: list[Event] = []
        state_log = RecordingStateLog(self.events)
        self.zookeeper = zookeeper
        rules = rules_with(planted_bugs)
        logs = LogManager(self.storage, epoch_assigned=self._epoch_assigned, rules=rules)
        self.logs = LogDirectories({"d": DataDirectory(disk=LogDirectory(self.storage), logs=logs)})
        self.logs.load()
        self.metadata = MetadataCache()
        self.manager = ReplicaManager(
            config=self.config,
            logs=self.logs,
            metadata=self.metadata,
            transport=NetworkTransport(network, broker_id),
            zookeeper=lambda: self.zookeeper,
            state_log=state_log,
            rules=rules,
            topic_config=lambda _: inherited(self.config.values),
            wall_ms=lambda: WALL_MS,
        )
        self.sessions = FetchSessions(
            slots=self.config["max.incremental.fetch.session.cache.slots"],
            rng=random.Random(broker_id),
            now_s=now_s,
            rules=rules,
        )
        self.data = DataHandlers(
            replicas=self.manager.replicas,
            appender=self.manager.appender,
            verifier=self.manager.verifier,
            fetch_server=self.manager.fetch_server,
            sessions=self.sessions,
            config=self.config,
            state_log=state_log,
        )
        self.control = ControlHandlers(
            control=self.manager.control,
            broker_epoch=lambda: 50,
            begin_checkpoints=self.manager.begin_checkpoints,
            load_topic_configs=_known,
        )
        self.dispatcher = Dispatcher(APIS, bound(self.data, self.control))
        self.server = MemoryServer(network.network, self.dispatcher)
        for endpoint in self.config.endpoints:
            self.server.bind(endpoint)

    def _epoch_assigned(self, topic: str, partition: int, leader_epoch: int, start_offset: int) -> None:
        self.events.append(
            EpochAssign(topic=topic, partition=partition, leader_epoch=leader_epoch, start_offset=start_offset)
        )

    async def start(self) -> None:
        await self.zookeeper.connect()
        await self.manager.start()
        await self.server.serve()

    async def append(
        self, records: bytes, *, acks: int = ACKS_ALL, timeout_s: float = 5.0, partition: int = 0
    ) -> AppendResult:
        params = ProduceParams(acks=acks, timeout_s=timeout_s, client="client", correlation_id=1)
        (result,) = await self.manager.appender.append([ToAppend((TOPIC, partition), records)], params)
        return result

    def replica(self, partition: int = 0) -> Partition:
        hosted = self.manager.replicas.get(TOPIC, partition)
        assert hosted is not None
        return hosted

    def batches(self, partition: int = 0) -> list[BatchHeader]:
        log = self.replica(partition).log
        if log.log_end_offset == log.log_start_offset:
            return []
        data = log.read(log.log_start_offset, max_bytes=1 << 30, up_to=log.log_end_offset, at_least_one=True)
        return [header for header, _ in iter_batches(data)]

    def prints(self, partition: int = 0) -> list[tuple[int, int, int]]:
        """Base offset, leader epoch and CRC of every batch."""
        return [(header.base_offset, header.leader_epoch, header.crc) for header in self.batches(partition)]

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def context(api_key: ApiKey, version: int, client: str = "client") -> RequestContext:
    return RequestContext(
        api_key=api_key, api_version=version, correlation_id=7, client_id=client, listener="PLAINTEXT", peer="p:1"
    )


_LState = LeaderAndIsrRequest.LeaderAndIsrTopicState
_SState = StopReplicaRequest.StopReplicaTopicState
_UState = UpdateMetadataRequest.UpdateMetadataTopicState
_Live = UpdateMetadataRequest.UpdateMetadataBroker


class ReplicaCluster:
    """Brokers 1 to 3 and one topic; every partition is replicated by all of them."""

    def __init__(self, *, planted_bugs: Iterable[str] = (), **properties: str) -> None:
        self.network = ReplicaNetwork()
        self.ensemble = Ensemble()
        self.properties = {name.replace("_", "."): value for name, value in properties.items()}
        self.planted_bugs = list(planted_bugs)
        self.brokers = self.network.brokers
        self.controller_epoch = 1
        self.replicas = [1, 2, 3]
        for broker_id in self.replicas:
            self.brokers[broker_id] = self._broker(broker_id)

    def _broker(self, broker_id: int, storage: MemoryStorage | None = None) -> Broker:
        zookeeper = SimulatedZooKeeper(self.ensemble)
        return Broker(broker_id, self.network, zookeeper, self.properties, self.planted_bugs, storage)

    def __getitem__(self, broker_id: int) -> Broker:
        return self.brokers[broker_id]

    async def __aenter__(self) -> "ReplicaCluster":
        self.ensemble.put(ISR_CHANGES)
        for broker in self.brokers.values():
            await broker.start()
        await self.update_metadata()
        return self

    async def __aexit__(self, *_: object) -> None:
        for broker in self.brokers.values():
            if broker.id not in self.network.down:
                await broker.manager.stop()

    def state(self, partition: int = 0) -> tuple[PartitionStateZnode, int]:
        node = self.ensemble.nodes[partition_state_path(TOPIC, partition)]
        return PartitionStateZnode.decode(TOPIC, partition, node.data), node.version

    async def elect(
        self, leader: int, *, isr: Iterable[int] | None = None, tell: Iterable[int] | None = None, partition: int = 0
    ) -> None:
        """Write a new leader with the next leader epoch and tell the brokers in `tell` (all that are up)."""
        path = partition_state_path(TOPIC, partition)
        epoch, old_isr = -1, tuple(self.replicas)
        if path in self.ensemble.nodes:
            before, _ = self.state(partition)
            epoch, old_isr = before.leader_epoch, before.isr
        znode = PartitionStateZnode(
            leader=leader,
            leader_epoch=epoch + 1,
            isr=tuple(isr) if isr is not None else old_isr,
            controller_epoch=self.controller_epoch,
        )
        self.ensemble.put(path, znode.encode())
        for broker_id in self._up(tell):
            await self.tell(broker_id, partition=partition)

    async def tell(self, broker_id: int, *, partition: int = 0) -> list[int]:
        """Send what ZooKeeper says about the partition; returns the error of each partition."""
        response = await self.brokers[broker_id].control.leader_and_isr(
            self.leader_and_isr(partition=partition), context(ApiKey.LEADER_AND_ISR, 4)
        )
        return [error.error_code for error in response.partition_errors]

    def leader_and_isr(self, *, partition: int = 0, broker_epoch: int = 50, **changed: Any) -> LeaderAndIsrRequest:
        state, version = self.state(partition)
        fields = {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
            "zk_version": version,
            "replicas": self.replicas,
            "is_new": False,
            "adding_replicas": [],
            "removing_replicas": [],
            **changed,
        }
        return LeaderAndIsrRequest(
            controller_id=CONTROLLER,
            controller_epoch=self.controller_epoch,
            broker_epoch=broker_epoch,
            topic_states=[
                _LState(
                    topic_name=TOPIC,
                    partition_states=[_LState.LeaderAndIsrPartitionState(partition_index=partition, **fields)],
                )
            ],
        )

    def stop_replica(self, *, leader_epoch: int, delete: bool, partition: int = 0) -> StopReplicaRequest:
        state = _SState.StopReplicaPartitionState(
            partition_index=partition, leader_epoch=leader_epoch, delete_partition=delete
        )
        return StopReplicaRequest(
            controller_id=CONTROLLER,
            controller_epoch=self.controller_epoch,
            broker_epoch=50,
            topic_states=[_SState(topic_name=TOPIC, partition_states=[state])],
        )

    async def update_metadata(self) -> None:
        """Tell every broker that is up which ones are."""
        for broker_id in self._up(None):
            await self.brokers[broker_id].control.update_metadata(
                self.metadata_request(), context(ApiKey.UPDATE_METADATA, 6)
            )

    async def forget(self) -> None:
        """Tell every broker that is up that the topic is being deleted."""
        state = _UState.UpdateMetadataPartitionState(
            partition_index=0, leader=FORGOTTEN, leader_epoch=-2, isr=[], replicas=self.replicas, offline_replicas=[]
        )
        request = self.metadata_request()
        request.topic_states = [_UState(topic_name=TOPIC, partition_states=[state])]
        for broker_id in self._up(None):
            await self.brokers[broker_id].control.update_metadata(request, context(ApiKey.UPDATE_METADATA, 6))

    def metadata_request(self) -> UpdateMetadataRequest:
        endpoint = _Live.UpdateMetadataEndpoint
        return UpdateMetadataRequest(
            controller_id=CONTROLLER,
            controller_epoch=self.controller_epoch,
            broker_epoch=50,
            live_brokers=[
                _Live(
                    id=live, endpoints=[endpoint(port=live, host=host_of(live), listener="REPL", security_protocol=0)]
                )
                for live in self._up(None)
            ],
        )

    def _up(self, wanted: Iterable[int] | None) -> list[int]:
        return [broker_id for broker_id in (wanted or sorted(self.brokers)) if broker_id not in self.network.down]

    async def kill(self, broker_id: int) -> None:
        """Stop a broker without a goodbye: what it had in its files stays, and no checkpoint is written."""
        self.network.kill(broker_id)
        broker = self.brokers[broker_id]
        await broker.server.stop()
        before = broker.logs.read_high_watermarks()
        await broker.manager.stop()
        await broker.logs.checkpoint_high_watermarks(lambda: before)

    async def start(self, broker_id: int) -> Broker:
        """Start a broker that was stopped or killed on its old files."""
        self.network.network.stop_listening(self.brokers[broker_id].server)
        self.network.down.discard(broker_id)
        broker = self.brokers[broker_id] = self._broker(broker_id, self.brokers[broker_id].storage)
        await broker.start()
        await self.update_metadata()
        return broker

    async def produce(
        self, broker_id: int, *values: str, acks: int = -1, timeout_s: float = 5.0, partition: int = 0
    ) -> Any:
        return await self.brokers[broker_id].append(batch(*values), partition=partition, acks=acks, timeout_s=timeout_s)

    async def begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Let `work` run beside the test; it has made its first step when this returns."""
        task = asyncio.create_task(work)
        await asyncio.sleep(0)
        return task

    async def until(
        self, condition: Callable[[], bool], what: str, within_s: float = 30, every_s: float = 0.01
    ) -> None:
        """Wait in virtual time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while not condition():
            assert loop.time() < deadline, f"{what}: not within {within_s} s"
            await asyncio.sleep(every_s)

    async def replicate(self, broker_id: int, *values: str) -> None:
        """Write records, and wait until every replica that is up has them."""
        await self.produce(broker_id, *values)
        await self.settled()

    async def settled(self, partition: int = 0) -> None:
        """Wait until every replica that is up has the same log, from where the last one starts, and high watermark."""

        def equal() -> bool:
            up = [self.brokers[broker_id] for broker_id in self._up(None)]
            ends = {(b.replica(partition).log.log_end_offset, b.replica(partition).high_watermark) for b in up}
            start = max(b.replica(partition).log.log_start_offset for b in up)
            logs = {tuple(each for each in b.prints(partition) if each[0] >= start) for b in up}
            return len(ends) == len(logs) == 1

        await self.until(equal, "equal replicas")

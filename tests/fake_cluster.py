"""A cluster of three brokers in memory: a driver and a view that agree, and misbehave when told to."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from harness.cluster.disks.damage import logs_in
from harness.cluster.driver import BrokerStatus, ClusterRequest, ClusterStatus, ZookeeperStatus
from harness.cluster.limits.resources import Resource
from harness.cluster.releases import Writer
from harness.contracts.faults import FaultContext
from harness.errors import ClusterError
from harness.system.process_state import ProcessState
from harness.values import PYTHON
from harness.zookeeper.view import Controller, PartitionView, Registration, ZookeeperView, controller_view
from tests.fake_capabilities import FakeCapabilities
from tests.fake_connection import FakeConnection, stream

BROKERS = (0, 1, 2)
EPOCH = "/controller_epoch"
LINE = "2026-11-22 21:59:23,694 INFO {}\n"
OF_KAFKA = {
    "broker_start": ["kafka.server.KafkaServer: starting"],
    "handed_over": ["kafka.server.KafkaServer: [KafkaServer id=1] Controlled shutdown request returned successfully"],
    "broker_stop": ["kafka.server.KafkaServer: [KafkaServer id=1] shut down completed"],
}
"""How Kafka words events."""


@dataclass
class FakeCluster(FakeCapabilities, ZookeeperView):
    """Driver and view at once; brokers lead, die and come back as told, at once."""

    families: ClassVar[frozenset[str]] = frozenset({PYTHON})
    root: Path = Path()
    name: str = "process"
    system: str = PYTHON
    states: dict[int, ProcessState] = field(default_factory=lambda: dict.fromkeys(BROKERS, ProcessState.RUNNING))
    sessions: dict[int, int] = field(default_factory=lambda: {broker: 100 + broker for broker in BROKERS})
    starts: dict[int, int] = field(default_factory=lambda: dict.fromkeys(BROKERS, 1))
    controller_id: int = 0
    controller_epoch: int = 1
    leader: int = 1
    leader_epoch: int = 5
    isr: list[int] = field(default_factory=lambda: list(BROKERS))
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    """What is set for topics and brokers alone, by kind and name."""
    moving: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)
    """The replicas that partitions had whose new ones stand still."""
    written: bytes = b""
    """What `/controller` was overwritten with; empty when it was not."""
    last_topic: dict[str, object] = field(default_factory=dict)
    """What a topic's znode was overwritten with."""
    epoch_gone: bool = False
    """Whether `/controller_epoch` was deleted."""
    assignments: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=lambda: {("orders", 0): BROKERS})
    znodes: set[str] = field(default_factory=set)
    """Those that faults create."""
    broken: set[str] = field(default_factory=set)
    """Names of methods that raise ClusterError."""
    by_command: bool = False
    """Whether a command ends a broker that is started again by what manages it."""
    commanded: set[tuple[str, int]] = field(default_factory=set)
    """Faults of the owner's that are in force, each with its broker."""
    severed: str = ""
    produce_error: int = 10
    """What a batch that is too large is answered with."""
    next_session: int = 200
    controlled: bool = True
    started: bool = False
    writers: dict[int, tuple[Writer, ...]] = field(default_factory=dict)
    """Of brokers that were upgraded: the writers of their logs."""
    clients: dict[str, list[str]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    out_of_reach: list[str] = field(default_factory=list)
    """The sentences that `copy_data` returns."""

    @property
    def context(self) -> FaultContext:
        return FaultContext(driver=self, view=self)

    def _enter(self, method: str, argument: object = "") -> bool:
        self.calls.append(f"{method} {argument}".strip())
        if method in self.broken:
            raise ClusterError(f"{method} is broken")
        return method not in self.deaf

    def log_of(self, broker: int) -> Path:
        return self.root / f"state-change-{broker}.jsonl"

    def say(self, broker: int, **event: object) -> None:
        """Log an event, as a broker of ours, or as one of Kafka's that words it."""
        if self.system != PYTHON:
            words = OF_KAFKA["handed_over"] if event.get("controlled") else []
            self.print(broker, *words, *OF_KAFKA.get(str(event["ev"]), ()))
            return
        with self.log_of(broker).open("a") as log:
            log.write(json.dumps(event) + "\n")

    def print(self, broker: int, *lines: str) -> None:
        with self.printed_by(broker).open("a") as log:
            log.writelines(map(LINE.format, lines))

    def printed_by(self, broker: int) -> Path:
        return self.root / f"broker-{broker}.log"

    def elect(self) -> None:
        alive = [broker for broker in self.isr if broker in self.sessions]
        if self.leader not in self.sessions:
            self.leader = alive[0] if alive else -1
            self.leader_epoch += 1
        if self.controller_id not in self.sessions:
            self.controller_id = min(self.sessions, default=-1)
            self.controller_epoch += 1

    # ClusterDriver

    @classmethod
    def lacks(cls) -> dict[str, str]:
        return {}

    async def start(self, request: ClusterRequest) -> ClusterStatus:
        self._enter("start", request.brokers)
        self.started = True
        return await self.status()

    async def status(self) -> ClusterStatus:
        return ClusterStatus(
            driver=self.name,
            system=self.system,
            root=self.root,
            bootstrap_servers="127.0.0.1:1",
            zookeeper_connect="127.0.0.1:2",
            zookeeper=tuple(
                ZookeeperStatus(
                    server_id=server_id,
                    state=state,
                    pid=None,
                    client_address="127.0.0.1:2",
                    data_dir=self.root,
                    log=self.root / "zookeeper.log",
                )
                for server_id, state in self.servers.items()
            ),
            brokers=tuple(self._status(broker) for broker in BROKERS),
            severed=self.severed,
        )

    def _status(self, broker: int) -> BrokerStatus:
        return BrokerStatus(
            broker_id=broker,
            state=self.states[broker],
            pid=None,
            client_address="",
            peer_address="",
            log_dir=self.root,
            state_change_log=self.log_of(broker),
            human_log=self.printed_by(broker),
            starts=self.starts[broker],
            writers=self.writers.get(broker, ()),
        )

    async def start_broker(self, broker_id: int) -> None:
        if self._enter("start_broker", broker_id):
            self.states[broker_id] = ProcessState.RUNNING
            self.starts[broker_id] += 1
            self.say(broker_id, ev="broker_start")
            if self.system != PYTHON and "version" not in self.deaf:
                release = self._system_of(broker_id).partition(":")[2]
                self.print(broker_id, f"org.apache.kafka.common.utils.AppInfoParser: Kafka version: {release}")
            if "recover" not in self.deaf:
                for log in logs_in(self.disks[broker_id]):
                    topic, _, partition = log.rpartition("-")
                    self.say(broker_id, ev="recovery", topic=topic, partition=int(partition), log_end_offset=7)
            self.isr += [] if broker_id in self.isr else [broker_id]
            self._register(broker_id)

    async def change_release(self, broker_id: int, system: str) -> None:
        if self._enter("change_release", f"{broker_id} {system}"):
            log = self.printed_by(broker_id)
            changed = Writer(log.stat().st_size if log.exists() else 0, system)
            self.writers[broker_id] = (*self.writers.get(broker_id, (Writer(0, self.system),)), changed)

    def _system_of(self, broker_id: int) -> str:
        return self.writers.get(broker_id, (Writer(0, self.system),))[-1].system

    async def start_early(self, broker_id: int) -> None:
        if self._enter("start_early", broker_id):
            self.starts[broker_id] += 1
            if broker_id not in self.sessions:
                self.states[broker_id] = ProcessState.RUNNING
                self._register(broker_id)

    async def bounces_by_command(self) -> bool:
        return self.by_command

    async def bounce_broker(self, broker_id: int) -> None:
        if self._enter("bounce_broker", broker_id):
            self._register(broker_id)

    async def inject_command(self, fault: str, broker_id: int) -> None:
        if self._enter("inject_command", f"{fault} {broker_id}"):
            self.commanded.add((fault, broker_id))

    async def confirm_command(self, fault: str, broker_id: int) -> None:
        if (fault, broker_id) not in self.commanded:
            raise ClusterError(f"the command for {fault}.confirm of broker {broker_id} ended with status 1")

    async def heal_command(self, fault: str, broker_id: int) -> None:
        if (fault, broker_id) in self.commanded and self._enter("heal_command", f"{fault} {broker_id}"):
            self.commanded.remove((fault, broker_id))

    def _register(self, broker_id: int) -> None:
        self.sessions[broker_id] = self.next_session
        self.next_session += 1
        self.elect()

    async def stop_broker(self, broker_id: int, *, timeout_s: float) -> None:
        if self._enter("stop_broker", broker_id):
            self.states[broker_id] = ProcessState.STOPPED
            self.say(broker_id, ev="broker_stop", controlled=self.controlled)
            del self.sessions[broker_id]
            self.elect()

    async def copy_data(self) -> list[str]:
        return list(self.out_of_reach)

    async def stop(self) -> None:
        self._enter("stop")
        self.started = False

    async def residue(self) -> list[str]:
        return self.left

    async def kill_broker(self, broker_id: int) -> None:
        if self._enter("kill_broker", broker_id):
            self.states[broker_id] = ProcessState.STOPPED
            if "miss" not in self.deaf:
                self.sessions.pop(broker_id, None)
            self.isr = [broker for broker in self.isr if broker != broker_id] or self.isr
            self.elect()

    async def pause_broker(self, broker_id: int, *, at_most_s: float) -> None:
        if self._enter("pause_broker", broker_id):
            self.states[broker_id] = ProcessState.PAUSED

    async def resume_broker(self, broker_id: int) -> None:
        if self._enter("resume_broker", broker_id):
            self.states[broker_id] = ProcessState.RUNNING

    async def start_client(self, process: str, argv: list[str], log: Path) -> None:
        self._enter("start_client", process)
        self.clients[process] = argv

    async def stop_client(self, process: str, *, timeout_s: float, at_once: bool = False) -> int | None:
        self._enter("stop_client", f"{process} at once" if at_once else process)
        return 0

    # ClusterView

    async def controller(self) -> Controller:
        epoch = b"0" if self.epoch_gone else str(self.controller_epoch).encode()
        return controller_view(epoch, (self.written or b'{"brokerid":%d}' % self.controller_id, ""))

    async def registrations(self) -> dict[int, Registration]:
        if "registrations" in self.broken:
            raise ClusterError("ZooKeeper does not answer")
        return {
            broker: Registration(broker_id=broker, czxid=session, session=hex(session))
            for broker, session in self.sessions.items()
        }

    async def partitions(self) -> list[PartitionView]:
        return [
            PartitionView(
                topic=topic,
                partition=partition,
                assignment=replicas,
                leader=self.leader,
                leader_epoch=self.leader_epoch,
                isr=tuple(self.isr),
                controller_epoch=self.controller_epoch,
                zk_version=0,
            )
            for (topic, partition), replicas in self.assignments.items()
        ]

    async def expire(self, session: str) -> None:
        if self._enter("expire", session):
            (broker,) = (broker for broker, held in self.sessions.items() if hex(held) == session)
            del self.sessions[broker]
            self.elect()
            if self.states[broker] == ProcessState.RUNNING:
                self._register(broker)
            if broker in self.losing:
                del self.losing[broker]
                self.lost[broker] = f"create /brokers/ids/{broker}"
                for state in ("suspended", "connected"):
                    self.say(broker, ev="zk_session", state=state)

    async def cut_power(self, broker_id: int, *, torn: bool) -> None:
        if self._enter("cut_power", broker_id):
            self.sizes[broker_id] -= 10
            await self.kill_broker(broker_id)

    async def limit(self, broker_id: int, resource: Resource, amount: float, *, at_most_s: float) -> None:
        if self._enter(f"limit_{resource}", broker_id):
            self.limits[broker_id, resource] = round(amount, 5)  # the kernel counts microseconds in a tenth of a second
            if resource is Resource.MEMORY:
                await self.kill_broker(broker_id)

    async def exists(self, path: str) -> bool:
        standing = {f"/brokers/topics/{topic}" for topic, _ in self.assignments}
        standing |= set() if self.epoch_gone else {EPOCH}
        return path in self.znodes | standing

    async def read(self, path: str) -> bytes | None:
        if path == "/controller":
            return self.written or b'{"brokerid":%d}' % self.controller_id
        topic = path.rpartition("/")[2]
        partitions = {str(number): list(replicas) for (of, number), replicas in self.assignments.items() if of == topic}
        value = {"version": 3, "partitions": partitions, "topic_id": "an-id"}
        return json.dumps(value).encode() if partitions else None

    async def write(self, path: str, data: bytes, *, instead_of: bytes | None = None) -> bool:
        if self._enter(f"write {path}"):
            if path == "/controller":
                self.written = data
            else:
                self.last_topic = json.loads(data)
                self._assign(path.rpartition("/")[2], data)
        return True

    def _assign(self, topic: str, data: bytes) -> None:
        partitions = json.loads(data)["partitions"]
        self.assignments |= {(topic, int(number)): tuple(replicas) for number, replicas in partitions.items()}

    async def create(self, path: str, data: bytes) -> bool:
        """What is asked for in `/admin` is done at once, unless it is unknown, or there is no controller."""
        if await self.exists(path):
            return False
        self.znodes.add(path)
        heard = self._enter(f"create {path}")
        name = path.rpartition("/")[2]
        if path == EPOCH:
            self.epoch_gone, self.controller_epoch = False, int(data)
        elif path.startswith("/brokers/topics/"):
            self._assign(name, data)
        elif name == "reassign_partitions" and heard:
            for each in json.loads(data)["partitions"]:
                self._move((each["topic"], each["partition"]), tuple(each["replicas"]))
            self.znodes.remove(path)
        elif name == "preferred_replica_election" and heard and not (self.written or self.epoch_gone):
            for each in json.loads(data)["partitions"]:
                self.leader = self.assignments[each["topic"], each["partition"]][0]
                self.leader_epoch += 1
            self.znodes.remove(path)
        elif path.startswith("/admin/delete_topics/") and heard:
            self.assignments = {key: replicas for key, replicas in self.assignments.items() if key[0] != name}
            self.znodes = {znode for znode in self.znodes if not znode.endswith(f"/{name}")}
        return True

    def _move(self, partition: tuple[str, int], replicas: tuple[int, ...]) -> None:
        """Move a partition at once, or, where a new replica stands still, begin to."""
        before = self.assignments[partition]
        if any(self.states[replica] == ProcessState.PAUSED for replica in replicas):
            self.moving[partition] = before
            replicas = (*before, *(replica for replica in replicas if replica not in before))
        self.assignments[partition] = replicas

    async def delete(self, path: str) -> bool:
        heard = self._enter(f"delete {path}")
        if heard and path == EPOCH:
            self.epoch_gone = True
        elif heard:
            self.controller_id = min(set(self.sessions) - {self.controller_id}, default=-1)
            self.controller_epoch += 1
            self.written = b""
            self.znodes.discard("/admin/preferred_replica_election")
        return True

    # CanAsk, CanSendBytes

    async def connect(self, broker_id: int, *, timeout_s: float) -> FakeConnection:
        return FakeConnection(broker_id, self)

    async def open_stream(
        self, broker_id: int, *, timeout_s: float
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if "accept" in self.deaf:
            raise ClusterError(f"broker {broker_id} takes no connection")
        return await stream(
            closes="close" not in self.deaf, serves="serve" not in self.deaf, produce_error=self.produce_error
        )

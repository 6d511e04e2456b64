"""Two brokers that live long: one of this project and one of real Kafka 3.9, alone in their clusters."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from kazoo.client import KazooClient

from harness.broker.handlers.apis import APIS
from harness.broker.wire.tcp import TcpTransport
from harness.client_rules.scripts.player import QUIET_S, Answers
from harness.client_rules.scripts.script import KILL, Script
from harness.client_rules.scripts.target import LOOK_EVERY_S, Target
from harness.cluster.ports import LOOPBACK, PortReservations
from tools.differential.draws import Versions
from tools.peers import Ours, Peer, RealKafka

PROPERTIES = {
    "num.partitions": "1",
    "default.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transactional.id.expiration.ms": "60000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "10000",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
    "log.segment.delete.delay.ms": "1000",
}
"""Of both, whatever is played."""
SELDOM = {"log.retention.check.interval.ms": "3600000", "log.cleaner.enable": "false"}
"""So that nothing happens between two calls that would not happen in the other broker."""
OFTEN = {
    "offsets.retention.check.interval.ms": "200",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "0",
    "log.cleaner.backoff.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transactional.id.expiration.ms": "1500",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "300",
    "producer.id.expiration.ms": "2000",
    "producer.id.expiration.check.interval.ms": "300",
}
"""What comes with time comes in fractions of a second."""
BUSY_NOTIFIED_S = 0.25
"""In this time a changed configuration is in force, on a machine that is busy too."""
THEIRS = {"inter.broker.protocol.version": "2.5"}
"""Of Kafka: the protocol that this project's broker follows."""


@dataclass(slots=True)
class Rounds:
    """Scripts with restarts begin together, when all that began before have ended at both brokers."""

    _waiting: list[asyncio.Event] = field(default_factory=list)
    _playing: int = 0

    async def __aenter__(self) -> None:
        """Wait for the next round."""
        admitted = asyncio.Event()
        self._waiting.append(admitted)
        if not self._playing:
            asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._begin)
        await admitted.wait()

    async def __aexit__(self, *_: object) -> None:
        """End one play of the round."""
        self._playing -= 1
        if not self._playing:
            asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._begin)

    def _begin(self) -> None:
        if not self._playing:
            admitted, self._waiting = self._waiting, []
            self._playing = len(admitted)
            for each in admitted:
                each.set()


@dataclass(slots=True)
class Restartable(Target):
    """A broker that is restarted when every script of a round has come to a restart; each has the same restarts."""

    peer: Peer = field(kw_only=True)
    _playing: int = 0
    _waiting: int = 0
    _next: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the next restart."""

    async def play(self, script: Script, prefix: str, stopped: Callable[[], bool] = lambda: False) -> Answers:
        """Return the answers to a script."""
        self._playing += 1
        try:
            return await Target.play(self, script, prefix, stopped)
        finally:
            self._playing -= 1

    async def restarted(self, stopped: Callable[[], bool], how: str) -> None:
        """Wait for the other scripts; then the broker is stopped or killed, and started."""
        await asyncio.sleep(QUIET_S)
        self._waiting += 1
        restarted = self._next
        if self._waiting == self._playing:
            self._next, self._waiting = asyncio.Event(), 0
            await asyncio.to_thread(self._end_and_start, how)
            await self.warm_up()
            restarted.set()
        await restarted.wait()

    def _end_and_start(self, how: str) -> None:
        (broker,) = self._registered()
        self.peer.kill(broker) if how == KILL else self.peer.stop(broker)
        while self._registered():  # until its session has ended
            time.sleep(LOOK_EVERY_S)
        self.peer.start(broker)

    def _registered(self) -> list[int]:
        zookeeper = KazooClient(self.peer.zookeeper_connect)
        zookeeper.start()
        try:
            return [int(each) for each in zookeeper.get_children("/brokers/ids")]
        finally:
            zookeeper.stop()
            zookeeper.close()


def common_versions(ours: dict[int, tuple[int, int]], theirs: dict[int, tuple[int, int]]) -> Versions:
    """Return the versions by the name of the API that one broker serves and both advertise."""
    versions: dict[str, tuple[int, int]] = {}
    for key, api in APIS.items():
        if key in ours and key in theirs:
            first = max(ours[key][0], theirs[key][0], api.versions.served_min)
            last = min(ours[key][1], theirs[key][1])
            if first <= last:
                versions[api.request.__name__.removesuffix("Request")] = (first, last)
    return versions


@contextmanager
def both(folder: Path, properties: Mapping[str, str]) -> Iterator[tuple[Target, Target]]:
    """Start our broker and Kafka's with properties in a folder, and stop both whatever happens."""
    chosen = PROPERTIES | dict(properties)
    zookeeper_port, _ = two_ports()
    kafka = RealKafka(folder / "kafka", 1, chosen | THEIRS, port=zookeeper_port)
    try:
        ours = Ours(folder / "ours", 1, chosen)
        try:
            yield _target(ours), _target(kafka)
        finally:
            ours.close()
    finally:
        kafka.close()


def _target(peer: Peer) -> Target:
    host, _, port = peer.bootstrap_servers.rpartition(":")
    return Restartable(TcpTransport(), host, int(port), notified_s=BUSY_NOTIFIED_S, peer=peer)


def two_ports() -> tuple[int, int]:
    """Return two free ports in a row that no cluster has reserved."""
    while True:
        with PortReservations() as reservations, suppress(OSError):
            (first,) = reservations.reserve(1)
            with socket.socket() as following:
                following.bind((LOOPBACK, first + 1))
                return first, first + 1

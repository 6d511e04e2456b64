"""Two brokers that live long: one of this project and one of real Kafka 3.9, alone in their clusters."""

import asyncio
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from harness.broker.handlers.apis import APIS
from harness.broker.wire import messages as m
from harness.broker.wire.tcp import TcpTransport
from harness.broker.wire.transport import Transport
from harness.cluster.ports import LOOPBACK, PortReservations
from tools.differential.draws import Versions
from tools.differential.player import Answers, Play
from tools.differential.scripts import Script, Symbols
from tools.peers import Ours, RealKafka

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
}
"""What comes with time comes in fractions of a second."""
THEIRS = {"inter.broker.protocol.version": "2.5"}
"""Of Kafka: the protocol that this project's broker follows."""
ASKING_S, LOOK_EVERY_S = 60.0, 0.2


@dataclass(slots=True)
class Target:
    """One broker that scripts are played to."""

    transport: Transport
    host: str
    port: int

    async def play(self, script: Script, prefix: str) -> Answers:
        """Return the answers to a script whose names begin with a prefix."""
        return await Play(self.transport, self.host, self.port, Symbols(prefix)).play(script)

    async def versions(self) -> dict[int, tuple[int, int]]:
        """Return the versions that the broker advertises, by API key."""
        connection = await self.transport.connect(self.host, self.port, client_id="c", timeout_s=ASKING_S)
        try:
            answer = await connection.request(m.ApiVersionsRequest(), 2, timeout_s=ASKING_S)
        finally:
            connection.close()
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    async def warm_up(self) -> None:
        """Wait until both coordinators answer."""
        connection = await self.transport.connect(self.host, self.port, client_id="c", timeout_s=ASKING_S)
        find = m.FindCoordinatorRequest(key="warm-up", key_type=0)
        init = m.InitProducerIdRequest(transactional_id="warm-up", transaction_timeout_ms=60_000)
        beat = m.HeartbeatRequest(group_id="warm-up")
        try:
            async with asyncio.timeout(ASKING_S):
                while True:
                    await connection.request(find, 1, timeout_s=ASKING_S)
                    await connection.request(m.FindCoordinatorRequest(key="warm-up", key_type=1), 1, timeout_s=ASKING_S)
                    begun = await connection.request(init, 1, timeout_s=ASKING_S)
                    heard = await connection.request(beat, 0, timeout_s=ASKING_S)
                    if begun.error_code == 0 and heard.error_code == 25:
                        return
                    await asyncio.sleep(LOOK_EVERY_S)
        finally:
            connection.close()


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
            yield _target(ours.bootstrap_servers), _target(kafka.bootstrap_servers)
        finally:
            ours.close()
    finally:
        kafka.close()


def _target(bootstrap_servers: str) -> Target:
    host, _, port = bootstrap_servers.rpartition(":")
    return Target(TcpTransport(), host, int(port))


def two_ports() -> tuple[int, int]:
    """Return two free ports in a row that no cluster has reserved."""
    while True:
        with PortReservations() as reservations, suppress(OSError):
            (first,) = reservations.reserve(1)
            with socket.socket() as following:
                following.bind((LOOPBACK, first + 1))
                return first, first + 1

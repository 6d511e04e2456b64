"""Two brokers that live long: one of this project and one of real Kafka 3.9, alone in their clusters."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.broker.handlers.apis import APIS
from harness.broker.wire.tcp import TcpTransport
from harness.client_rules.scripts.target import Target
from harness.cluster.ports import LOOPBACK, PortReservations
from tools.differential.draws import Versions
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
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transactional.id.expiration.ms": "1500",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "300",
    "producer.id.expiration.ms": "2000",
    "producer.id.expiration.check.interval.ms": "300",
}
"""What comes with time comes in fractions of a second."""
THEIRS = {"inter.broker.protocol.version": "2.5"}
"""Of Kafka: the protocol that this project's broker follows."""


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

"""Which ports does a cluster's relay have, so that every advertised address leads through it?"""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.cluster.layout import ClusterLayout, RelayPorts, broker_process, zookeeper_process
from harness.cluster.relay import CLIENTS
from harness.cluster.relay.listeners import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a server itself listens, as the relay reaches it."""

    address: str
    client: int
    peer: int = 0
    """Of a broker, for other brokers."""


def relay_ports(layout: ClusterLayout, ports: Iterator[int]) -> dict[int, RelayPorts]:
    """Give every broker its ports of the relay."""
    return {
        broker_id: RelayPorts(
            client=next(ports), peer=next(ports), zookeeper={server_id: next(ports) for server_id in layout.zookeeper}
        )
        for broker_id in layout.brokers
    }


def ports_needed(brokers: int, servers: int) -> int:
    """Return how many ports that takes."""
    return brokers * (2 + servers)


def listeners_of(layout: ClusterLayout, brokers: dict[int, Place], servers: dict[int, Place]) -> Iterator[Listener]:
    """Yield where the relay listens, with where each server is.

    All who connect to a broker read one address of it in ZooKeeper: one port for clients, one for other brokers, which
    the relay tells apart. What each broker connects to ZooKeeper by is its own.
    """
    for broker_id, relay in layout.relay.items():
        name, own = broker_process(broker_id), brokers[broker_id]
        yield Listener(port=relay.client, destination=name, target=own.address, target_port=own.client, source=CLIENTS)
        yield Listener(port=relay.peer, destination=name, target=own.address, target_port=own.peer)
        for server_id, port in relay.zookeeper.items():
            yield Listener(
                port=port,
                destination=zookeeper_process(server_id),
                target=servers[server_id].address,
                target_port=servers[server_id].client,
                source=name,
                zookeeper=True,
            )

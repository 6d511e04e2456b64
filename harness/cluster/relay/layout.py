"""Which ports does a cluster's relay have, so that every advertised address leads through it?"""

from collections.abc import Iterator

from harness.cluster.layout import ClusterLayout, RelayPorts, broker_process, zookeeper_process
from harness.cluster.relay import CLIENTS
from harness.cluster.relay.listeners import Listener


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


def listeners_of(layout: ClusterLayout) -> Iterator[Listener]:
    """Yield where the relay listens.

    All who connect to a broker read one address of it in ZooKeeper: one port for clients, one for other brokers, of
    which the kernel says who it is. What each broker connects to ZooKeeper by is its own.
    """
    for broker_id, relay in layout.relay.items():
        broker, own = broker_process(broker_id), layout.brokers[broker_id]
        yield Listener(port=relay.client, destination=broker, target_port=own.client, source=CLIENTS)
        assert own.peer is not None, "a port of this host"
        yield Listener(port=relay.peer, destination=broker, target_port=own.peer)
        for server_id, port in relay.zookeeper.items():
            yield Listener(
                port=port,
                destination=zookeeper_process(server_id),
                target_port=layout.zookeeper[server_id].client,
                source=broker,
                zookeeper=True,
            )

"""Which ports does a cluster's relay have, so that every advertised address leads through it?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from harness.cluster.layout import ClusterLayout, RelayPorts, ServerRelayPorts, broker_process, zookeeper_process
from harness.cluster.relay import CLIENTS
from harness.cluster.relay.listeners import Listener, Speech

PATIENCE_S = 1.0
"""A server connects to a newly elected leader before that listens, and retries only if the connection is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a server itself listens, as the relay reaches it."""

    address: str
    client: int
    peer: int = 0
    """Of a broker, for other brokers."""
    quorum: int = 0
    """With `election`, of a ZooKeeper server, for the other servers."""
    election: int = 0
    controller: int = 0
    """Of a controller of a quorum, be it a broker or none."""


def relayed(layout: ClusterLayout, ports: Iterator[int]) -> ClusterLayout:
    """Return the layout with ports of the relay for every broker, controller, and server of an ensemble."""
    servers = layout.zookeeper if len(layout.zookeeper) > 1 else ()
    return replace(
        layout,
        relay={
            broker_id: RelayPorts(
                client=next(ports),
                peer=next(ports),
                zookeeper={server_id: next(ports) for server_id in layout.zookeeper},
            )
            for broker_id in layout.brokers
        },
        relay_servers={
            server_id: ServerRelayPorts(
                quorum={other: next(ports) for other in servers if other != server_id},
                election={other: next(ports) for other in servers if other != server_id},
            )
            for server_id in servers
        },
        relay_controllers={id_: next(ports) for id_ in layout.controllers},
    )


def ports_needed(brokers: int, servers: int, controllers: int = 0) -> int:
    """Return how many ports that takes."""
    return brokers * (2 + servers) + 2 * servers * (servers - 1) + controllers


def listeners_of(layout: ClusterLayout, brokers: dict[int, Place], servers: dict[int, Place]) -> Iterator[Listener]:
    """Yield where the relay listens, with where each server is; controllers that are no brokers are among those.

    The metadata has one address of a broker for all clients and one for all other brokers. The relay identifies the
    sender of each connection to the latter, and of each to a controller. Each broker connects to ZooKeeper by ports of
    its own, and so does each server of an ensemble to the others.
    """
    speech = Speech.KAFKA if layout.intercepts else None
    for broker_id, relay in layout.relay.items():
        name, own = broker_process(broker_id), brokers[broker_id]
        to_broker = Listener(port=relay.peer, destination=name, target=own.address, target_port=own.peer, speech=speech)
        yield replace(to_broker, port=relay.client, target_port=own.client, source=CLIENTS)
        yield to_broker
        for server_id, port in relay.zookeeper.items():
            server = servers[server_id]
            yield _to(server_id, server, port, server.client, source=name, speech=Speech.ZOOKEEPER)
    for id_, port in layout.relay_controllers.items():
        own = brokers[id_]
        name = broker_process(id_)
        yield Listener(port=port, destination=name, target=own.address, target_port=own.controller, speech=speech)
    for server_id, ports in layout.relay_servers.items():
        name = zookeeper_process(server_id)
        for other, port in ports.quorum.items():
            quorum = _to(other, servers[other], port, servers[other].quorum, source=name)
            yield replace(quorum, patience_s=PATIENCE_S)
        for other, port in ports.election.items():
            yield _to(other, servers[other], port, servers[other].election, source=name, speech=Speech.ELECTION)


def _to(
    server_id: int, place: Place, port: int, target_port: int, *, source: str, speech: Speech | None = None
) -> Listener:
    return Listener(
        port=port,
        destination=zookeeper_process(server_id),
        target=place.address,
        target_port=target_port,
        source=source,
        speech=speech,
    )

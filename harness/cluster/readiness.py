"""Is a started cluster or broker ready: registered, with an elected controller, serving metadata?"""

import asyncio
from collections.abc import Callable, Container, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.cluster import embedded_zookeeper
from harness.cluster.layout import ClusterLayout
from harness.cluster.ports import LOOPBACK, listens
from harness.kafka.brokers import listed_brokers
from harness.kafka.security.settings import of_controllers, security_of, zookeeper_security_of
from harness.kafka.tcp import opened
from harness.system.waiting import until
from harness.zookeeper.view import OpenableView

if TYPE_CHECKING:
    from harness.broker.wire.tcp import TcpTransport
    from harness.cluster.driver import ClusterStatus

PROBE_TIMEOUT_S = 2.0


def view_of(
    zookeeper_connect: str,
    controllers: Mapping[int, str],
    cluster_id: str | None = None,
    client: Mapping[str, str] = MappingProxyType({}),
    bootstrap_servers: str = "",
) -> OpenableView:
    """Return the view of a cluster's metadata, wherever they are, to be opened with the client settings `client`.

    Controllers of another cluster than `cluster_id` do not answer. Where there are neither controllers nor ZooKeeper in
    reach, it is what brokers tell their clients.

    Raises:
        ClusterError: the client settings cannot be used.
    """
    if controllers:
        from harness.kraft.view import QuorumView

        return QuorumView(controllers, transport_of(client), cluster_id)
    if not zookeeper_connect:
        from harness.broker.wire.tcp import TcpTransport
        from harness.kraft.brokers_view import BrokersView

        return BrokersView(bootstrap_servers, TcpTransport(partial(opened, security=security_of(client))))
    from harness.zookeeper.kazoo_view import KazooView  # kazoo takes a tenth of a second to load

    return KazooView(zookeeper_connect, zookeeper_security_of(client))


def transport_of(client: Mapping[str, str]) -> "TcpTransport":
    """Return what connects to controllers with these client settings; raises ClusterError if they cannot be used."""
    from harness.broker.wire.tcp import TcpTransport  # as the codec, takes a tenth of a second to load

    return TcpTransport(partial(opened, security=security_of(of_controllers(client))))


def view_of_cluster(status: "ClusterStatus") -> OpenableView:
    """Return the view of a running cluster's metadata, not yet open; raises ClusterError as `view_of`."""
    return view_of(
        status.zookeeper_connect,
        status.controllers,
        client=status.client,
        bootstrap_servers=status.bootstrap_servers,
    )


async def cluster_ready(layout: ClusterLayout, *, timeout_s: float) -> None:
    """Return when all brokers are registered, one of them is controller, and each lists all of them.

    Raises:
        DeadlineError: one of these did not happen within `timeout_s`; the message says which, and what was last seen.
    """

    async def serving() -> bool:
        return all([await embedded_zookeeper.serves(ports.client) for ports in layout.zookeeper.values()])

    all_ids = set(layout.brokers)
    await until(serving, bool, what="every ZooKeeper server serving", timeout_s=timeout_s)
    async with view_of(layout.zookeeper_connect, layout.controllers) as view:
        await until(view.registrations, lambda seen: set(seen) == all_ids, what="all registered", timeout_s=timeout_s)
        await until(
            view.controller,
            lambda seen: seen.broker_id in all_ids | set(layout.quorum),
            what="a controller elected",
            timeout_s=timeout_s,
        )
    await asyncio.gather(*(_serves_metadata(layout, broker_id, all_ids, timeout_s) for broker_id in layout.brokers))


async def zookeeper_answers(layout: ClusterLayout, server_id: int, *, timeout_s: float) -> None:
    """Return when one ZooKeeper server is up, whether or not it has a quorum."""

    async def up() -> bool:
        return await embedded_zookeeper.answers(layout.zookeeper[server_id].client)

    await until(up, bool, what=f"ZooKeeper server {server_id} answering", timeout_s=timeout_s)


async def broker_ready(layout: ClusterLayout, broker_id: int, *, timeout_s: float) -> None:
    """Return when one broker is registered and answers Metadata requests.

    Whether it lists itself yet is up to the controller, which may be away. What is only a controller listens.
    """
    if broker_id in layout.quorum:
        await _listens(layout.quorum[broker_id], f"controller {broker_id} listening", timeout_s)
        return
    what = f"broker {broker_id} registered"
    await _registered(layout, lambda seen: broker_id in seen, what=what, timeout_s=timeout_s)
    await _serves_metadata(layout, broker_id, set(), timeout_s)


async def broker_unregistered(layout: ClusterLayout, broker_id: int, *, timeout_s: float) -> None:
    """Return when no registration of the broker is left: its session has ended."""
    what = f"end of broker {broker_id}'s old registration"
    await _registered(layout, lambda seen: broker_id not in seen, what=what, timeout_s=timeout_s)


async def _registered(
    layout: ClusterLayout, accept: Callable[[Container[int]], bool], *, what: str, timeout_s: float
) -> None:
    """Return when the ids of the registered brokers are accepted."""
    async with view_of(layout.zookeeper_connect, layout.controllers) as view:
        await until(view.registrations, accept, what=what, timeout_s=timeout_s)


async def _listens(port: int, what: str, timeout_s: float) -> None:
    async def connected() -> bool:
        return listens(port)

    await until(connected, bool, what=what, timeout_s=timeout_s)


async def _serves_metadata(layout: ClusterLayout, broker_id: int, expected: set[int], timeout_s: float) -> None:
    port = layout.brokers[broker_id].client

    async def listed() -> set[int]:
        return set(await listed_brokers(LOOPBACK, port, timeout_s=PROBE_TIMEOUT_S))

    what = f"an answer of broker {broker_id} that lists {sorted(expected)}"
    await until(listed, lambda seen: expected <= seen, what=what, timeout_s=timeout_s)

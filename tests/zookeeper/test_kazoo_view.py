import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kazoo.client import KazooClient

from harness.errors import ClusterError
from harness.zookeeper import kazoo_view
from harness.zookeeper.kazoo_view import KazooView
from harness.zookeeper.sessions import to_text
from harness.zookeeper.view import Controller, PartitionView


@pytest.fixture
async def view(server: Any) -> AsyncIterator[KazooView]:
    async with KazooView(server.hosts) as view:
        yield view


@pytest.mark.cluster
async def test_an_empty_server_has_no_brokers_no_controller_and_no_partitions(view: KazooView) -> None:
    assert await view.registrations() == {}
    assert await view.controller() == Controller(broker_id=-1, controller_epoch=0, session="")
    assert await view.partitions() == []


@pytest.mark.cluster
async def test_brokers_controller_and_partitions_are_read_with_their_owners(
    view: KazooView, client: KazooClient
) -> None:
    session = to_text(client.client_id[0])
    client.create("/controller_epoch", b"7")
    client.create("/controller", b'{"version":1,"brokerid":2,"timestamp":"1"}', ephemeral=True)
    _, stat = client.create("/brokers/ids/2", b"{}", ephemeral=True, makepath=True, include_data=True)
    client.create("/brokers/topics/t", b'{"version":1,"partitions":{"1":[1,2],"10":[2,1],"2":[2]}}', makepath=True)
    for partition in ("1", "10"):
        state = b'{"controller_epoch":7,"leader":2,"version":1,"leader_epoch":5,"isr":[2,1]}'
        client.create(f"/brokers/topics/t/partitions/{partition}/state", b"", makepath=True)
        client.set(f"/brokers/topics/t/partitions/{partition}/state", state)
    try:
        assert await view.controller() == Controller(broker_id=2, controller_epoch=7, session=session)
        registrations = await view.registrations()
        assert [(it.broker_id, it.czxid, it.session) for it in registrations.values()] == [(2, stat.czxid, session)]
        expected = PartitionView(
            topic="t",
            partition=1,
            assignment=(1, 2),
            leader=2,
            leader_epoch=5,
            isr=(2, 1),
            controller_epoch=7,
            zk_version=1,
        )
        partitions = await view.partitions()
        assert partitions[0] == expected
        assert [(it.partition, it.assignment) for it in partitions] == [(1, (1, 2)), (10, (2, 1))]
    finally:
        for path in ("/controller_epoch", "/controller", "/brokers"):
            client.delete(path, recursive=True)


@pytest.mark.cluster
async def test_a_znode_is_overwritten_whoever_owns_it_and_only_instead_of_what_is_meant(
    view: KazooView, client: KazooClient
) -> None:
    client.create("/controller", b"before", ephemeral=True)
    try:
        assert not await view.write("/controller", b"lost", instead_of=b"something else")
        assert await view.write("/controller", b"nonsense", instead_of=b"before")
        assert await view.read("/controller") == b"nonsense"
        assert (await view.controller()).broker_id == -1, "invalid content names no broker"
        assert client.exists("/controller").ephemeralOwner == client.client_id[0]
        assert await view.read("/nowhere") is None
        assert not await view.write("/nowhere", b"")
    finally:
        client.delete("/controller")


async def test_no_server_is_a_cluster_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kazoo_view, "CONNECT_TIMEOUT_S", 0.1)
    with pytest.raises(ClusterError, match="does not answer"):
        await KazooView("127.0.0.1:1").open()


@pytest.mark.cluster
async def test_reads_over_a_connection_that_breaks_are_answered_by_the_next_one(view: KazooView) -> None:
    for _ in range(20):
        view._client._connection._socket.shutdown(socket.SHUT_RDWR)
        assert await view.registrations() == {}

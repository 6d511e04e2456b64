import socket
import threading
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.serialization import Connect, int_struct
from kazoo.protocol.states import KazooState

from harness.errors import ClusterError
from harness.zookeeper import sessions


@pytest.mark.parametrize(
    ("number", "text"),
    [
        pytest.param(0, "", id="no session is empty"),
        pytest.param(0x100004C1D2E0000, "0x100004c1d2e0000", id="an id is hexadecimal"),
        pytest.param(-1, "0xffffffffffffffff", id="a negative id is written unsigned"),
    ],
)
def test_text_of_a_session(number: int, text: str) -> None:
    assert sessions.to_text(number) == text
    if text:
        assert sessions.from_text(text) == number


def test_password_is_that_of_java_util_random() -> None:
    # jshell: new java.util.Random(0x100004C1D2E0000L ^ 0XB3415C00L).nextBytes(new byte[16])
    assert sessions.password(0x100004C1D2E0000).hex() == "10a496b35d6cdfb96e7d39136e843571"


@pytest.mark.cluster
def test_password_is_the_one_that_the_server_gave(client: KazooClient) -> None:
    session_id, session_password = client.client_id
    assert sessions.password(session_id) == session_password


@pytest.mark.cluster
async def test_an_expired_session_loses_its_ephemerals_and_its_owner_learns_of_it(
    client: KazooClient, server: Any
) -> None:
    lost = threading.Event()
    client.add_listener(lambda state: lost.set() if state == KazooState.LOST else None)
    _, stat = client.create("/victim", ephemeral=True, include_data=True)

    await sessions.expire(server.hosts, sessions.to_text(stat.ephemeralOwner))

    assert lost.wait(120)
    assert client.retry(client.exists, "/victim") is None


@pytest.mark.cluster
async def test_expiring_a_session_that_is_over_does_nothing(client: KazooClient, server: Any) -> None:
    client.create("/bystander", ephemeral=True)
    await sessions.expire(server.hosts, "0x100004c1d2e0000")
    assert client.exists("/bystander")


async def test_expiring_without_a_server_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "TAKEOVER_TIMEOUT_S", 0.1)
    with pytest.raises(ClusterError, match="does not answer"):
        await sessions.expire("127.0.0.1:1", "0x1")


@pytest.mark.cluster
async def test_a_session_whose_owner_takes_it_back_all_the_time_ends(client: KazooClient, server: Any) -> None:
    session_id, session_password = client.client_id
    hello = Connect(0, 0, 5000, session_id, session_password, False).serialize()
    address, over, lost = server.hosts.split(":"), threading.Event(), threading.Event()
    client.add_listener(lambda state: lost.set() if state == KazooState.LOST else None)

    def hold_on() -> None:
        while not over.is_set():
            with socket.create_connection((address[0], int(address[1])), 5) as rival:
                rival.sendall(int_struct.pack(len(hello)) + hello)
                rival.recv(100)

    holding = threading.Thread(target=hold_on)
    holding.start()
    try:
        await sessions.expire(server.hosts, sessions.to_text(session_id))
        assert lost.wait(120)
    finally:
        over.set()
        holding.join()

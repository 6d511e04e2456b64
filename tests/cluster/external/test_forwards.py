"""Where the relay of an existing cluster listens, and which brokers lead their clients past it."""

from pathlib import Path

import pytest

from harness.cluster.external.forwards import Forward, listening, not_advertised, setup_of
from harness.errors import ClusterError

FORWARDS = {1: Forward(listen="relay:19001", target="one:9094"), 2: Forward(listen="relay:19002", target="two:9094")}


@pytest.mark.parametrize(("listens_on", "host"), [("", "relay"), ("0.0.0.0", "0.0.0.0")])
def test_each_broker_has_an_address_of_the_relay_that_leads_to_its_own(listens_on: str, host: str) -> None:
    listeners = setup_of(FORWARDS, listens_on).listeners
    assert [(each.host, each.port, each.source, each.destination) for each in listeners] == [
        (host, 19001, "clients", "broker-1"),
        (host, 19002, "clients", "broker-2"),
    ]
    assert [(each.target, each.target_port) for each in listeners] == [("one", 9094), ("two", 9094)]


def test_a_broker_that_leads_clients_past_the_relay_is_named() -> None:
    assert not_advertised(FORWARDS, {1: "relay:19001", 2: "relay:19002"}) == ""
    assert not_advertised(FORWARDS, {1: "relay:19001", 2: "two:9094"}) == (
        "broker 2 advertises two:9094 to clients of two:9094, which leads past the relay: its advertised.listeners must"
        " have relay:19002 for this listener"
    )


async def test_a_relay_that_ends_before_it_listens_says_why(tmp_path: Path) -> None:
    async def ended() -> bool:
        return True

    (tmp_path / "log").write_text("Traceback\nOSError: address already in use\n", encoding="utf-8")
    with pytest.raises(ClusterError, match=r"^the relay cannot listen: OSError: address already in use$"):
        await listening(tmp_path, tmp_path / "log", ended)

"""Where a relay listens, for which host, and where it forwards to."""

from pathlib import Path

import pytest

from harness.cluster.layout import BrokerPorts, ClusterLayout, ZookeeperPorts
from harness.cluster.relay.layout import Place, listeners_of, ports_needed, relayed

ENSEMBLE = {id_: ZookeeperPorts(client=id_, quorum=10 + id_, election=20 + id_) for id_ in (1, 2, 3)}
WITHOUT = {0: BrokerPorts(client=30, peer=40), 1: BrokerPorts(client=31, peer=41)}
COMBINED = {id_: BrokerPorts(client=30 + id_, peer=40 + id_, controller=50 + id_) for id_ in (0, 1)}


def led(
    zookeeper: dict[int, ZookeeperPorts], brokers: dict[int, BrokerPorts], quorum: dict[int, int]
) -> list[tuple[str | None, str, int]]:
    """Return, for each port of the relay, its only client, and the port and host that it leads to."""
    layout = ClusterLayout(
        root=Path(),
        run_id="r",
        driver="process",
        zookeeper=zookeeper,
        brokers=brokers,
        quorum=quorum,
        planted_bugs=(),
    )
    controllers = len(layout.controllers)
    needed = ports_needed(len(brokers), len(zookeeper), controllers)
    ports = iter(range(1000, 1000 + needed))
    behind = relayed(layout, ports)
    assert list(ports) == []
    places = {
        id_: Place(address="h", client=own.client, peer=own.peer or 0, controller=own.controller or 0)
        for id_, own in brokers.items()
    } | {id_: Place(address="h", client=0, controller=port) for id_, port in quorum.items()}
    servers = {
        id_: Place(address="h", client=own.client, quorum=own.quorum or 0, election=own.election or 0)
        for id_, own in zookeeper.items()
    }
    listeners = list(listeners_of(behind, places, servers))
    assert sorted(each.port for each in listeners) == list(range(1000, 1000 + needed))
    return [(each.source, each.destination, each.target_port) for each in listeners]


OF_BROKERS = [
    ("clients", "broker-0", 30),
    (None, "broker-0", 40),
    ("clients", "broker-1", 31),
    (None, "broker-1", 41),
]


@pytest.mark.parametrize(
    ("zookeeper", "brokers", "quorum", "besides"),
    [
        pytest.param(
            {1: ZookeeperPorts(client=1)},
            WITHOUT,
            {},
            [("broker-0", "zookeeper-1", 1), ("broker-1", "zookeeper-1", 1)],
            id="each broker has its own way to ZooKeeper",
        ),
        pytest.param(
            {},
            COMBINED,
            {},
            [(None, "broker-0", 50), (None, "broker-1", 51)],
            id="a broker that is a controller has one more, for any client",
        ),
        pytest.param(
            {},
            WITHOUT,
            {101: 61, 102: 62},
            [(None, "broker-101", 61), (None, "broker-102", 62)],
            id="so has a controller that is no broker",
        ),
    ],
)
def test_everybody_is_led_to_everybody(
    zookeeper: dict[int, ZookeeperPorts],
    brokers: dict[int, BrokerPorts],
    quorum: dict[int, int],
    besides: list[tuple[str | None, str, int]],
) -> None:
    assert set(led(zookeeper, brokers, quorum)) == {*OF_BROKERS, *besides}


def test_servers_of_an_ensemble_have_their_ways_to_each_other() -> None:
    among = [each for each in led(ENSEMBLE, {}, {}) if each[0] == "zookeeper-2"]
    assert among == [
        ("zookeeper-2", "zookeeper-1", 11),
        ("zookeeper-2", "zookeeper-3", 13),
        ("zookeeper-2", "zookeeper-1", 21),
        ("zookeeper-2", "zookeeper-3", 23),
    ]

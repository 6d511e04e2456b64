from pathlib import Path

import pytest

from harness.cluster.layout import BrokerPorts, ClusterLayout, RelayPorts, ServerRelayPorts, ZookeeperPorts
from harness.errors import ClusterError

RELAY = {
    0: RelayPorts(client=1, peer=2, zookeeper={1: 3, 2: 4}),
    1: RelayPorts(client=5, peer=6, zookeeper={1: 7, 2: 8}),
}
RELAY_SERVERS = {
    1: ServerRelayPorts(quorum={2: 9}, election={2: 10}),
    2: ServerRelayPorts(quorum={1: 11}, election={1: 12}),
}


def layout(root: Path, **changed: object) -> ClusterLayout:
    values: dict[str, object] = {
        "root": root,
        "run_id": "r",
        "driver": "process",
        "zookeeper": {1: ZookeeperPorts(client=2181, quorum=2888, election=3888), 2: ZookeeperPorts(client=2182)},
        "brokers": {0: BrokerPorts(client=9092, peer=9093), 1: BrokerPorts(client=9094)},
        "planted_bugs": ("a",),
    }
    made = ClusterLayout(**(values | changed))  # type: ignore[arg-type]
    made.folder.mkdir(exist_ok=True)
    return made


@pytest.mark.parametrize(
    "relayed",
    [
        pytest.param({}, id="connected directly"),
        pytest.param({"relay": RELAY, "relay_servers": RELAY_SERVERS}, id="through a relay"),
        pytest.param(
            {"zookeeper": {}, "quorum": {101: 1, 102: 2}, "relay_controllers": {101: 3, 102: 4}},
            id="with controllers of their own behind one",
        ),
    ],
)
def test_the_layout_in_the_folder_is_what_was_saved(tmp_path: Path, relayed: dict[str, object]) -> None:
    saved = layout(tmp_path, **relayed)
    saved.save()
    assert ClusterLayout.load(tmp_path) == saved


def test_ports_are_those_of_this_host_only(tmp_path: Path) -> None:
    assert sorted(layout(tmp_path).all_ports) == [2181, 2182, 2888, 3888, 9092, 9093, 9094]


def test_addresses_are_on_loopback(tmp_path: Path) -> None:
    assert layout(tmp_path).bootstrap_servers == "127.0.0.1:9092,127.0.0.1:9094"
    assert layout(tmp_path).zookeeper_connect == "127.0.0.1:2181,127.0.0.1:2182"


def test_addresses_lead_through_the_relay_for_all_but_the_harness(tmp_path: Path) -> None:
    relayed = layout(tmp_path, relay=RELAY, relay_servers=RELAY_SERVERS)
    assert relayed.bootstrap_servers == "127.0.0.1:1,127.0.0.1:5"
    assert relayed.zookeeper_connect_of(1) == "127.0.0.1:7,127.0.0.1:8"
    assert relayed.zookeeper_connect == "127.0.0.1:2181,127.0.0.1:2182"
    assert sorted(set(relayed.all_ports) - set(layout(tmp_path).all_ports)) == list(range(1, 13))


@pytest.mark.parametrize(
    ("relayed", "reached"),
    [
        pytest.param({}, {0: "127.0.0.1:7", 101: "127.0.0.1:8"}, id="directly"),
        pytest.param({0: 3, 101: 4}, {0: "127.0.0.1:3", 101: "127.0.0.1:4"}, id="through a relay"),
    ],
)
def test_servers_reach_controllers_and_the_harness_goes_its_own_way(
    tmp_path: Path, relayed: dict[int, int], reached: dict[int, str]
) -> None:
    brokers = {0: BrokerPorts(client=5, peer=6, controller=7)}
    made = layout(tmp_path, zookeeper={}, brokers=brokers, quorum={101: 8}, relay_controllers=relayed)
    assert made.quorum_addresses == reached
    assert made.controllers == {0: "127.0.0.1:7", 101: "127.0.0.1:8"}
    assert sorted(made.all_ports) == sorted([5, 6, 7, 8, *relayed.values()])


def test_servers_of_an_ensemble_are_told_of_themselves_and_of_the_others_or_of_the_relay(tmp_path: Path) -> None:
    others = {1: "a:1:2", 2: "b:3:4"}
    direct, relayed = layout(tmp_path), layout(tmp_path, relay=RELAY, relay_servers=RELAY_SERVERS)
    assert direct.ensemble_of(1, "a:1:2", "relay", others) == others
    assert relayed.ensemble_of(1, "a:1:2", "relay", others) == {1: "a:1:2", 2: "relay:9:10"}
    alone = layout(tmp_path, zookeeper={1: ZookeeperPorts(client=2181)})
    assert alone.ensemble_of(1, "a:1:2", "relay", {1: "a:1:2"}) == {}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{}", id="nothing in it"),
        pytest.param("{", id="half a file"),
        pytest.param('{"run_id": "r", "zookeeper_port": 1, "brokers": {}, "planted_bugs": []}', id="an older form"),
    ],
)
def test_what_does_not_describe_a_cluster_is_named(tmp_path: Path, text: str) -> None:
    layout(tmp_path).folder.joinpath("cluster.json").write_text(text)
    with pytest.raises(ClusterError, match=r"cluster\.json does not describe a cluster"):
        ClusterLayout.load(tmp_path)

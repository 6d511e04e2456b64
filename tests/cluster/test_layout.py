from pathlib import Path

import pytest

from harness.cluster.layout import BrokerPorts, ClusterLayout, RelayPorts, ZookeeperPorts
from harness.errors import ClusterError

RELAY = {
    0: RelayPorts(client=1, peer=2, zookeeper={1: 3, 2: 4}),
    1: RelayPorts(client=5, peer=6, zookeeper={1: 7, 2: 8}),
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


@pytest.mark.parametrize("relay", [{}, RELAY], ids=["connected directly", "connected through a relay"])
def test_the_layout_in_the_folder_is_what_was_saved(tmp_path: Path, relay: dict[int, RelayPorts]) -> None:
    saved = layout(tmp_path, relay=relay)
    saved.save()
    assert ClusterLayout.load(tmp_path) == saved


def test_ports_are_those_of_this_host_only(tmp_path: Path) -> None:
    assert sorted(layout(tmp_path).all_ports) == [2181, 2182, 2888, 3888, 9092, 9093, 9094]


def test_addresses_are_on_loopback(tmp_path: Path) -> None:
    assert layout(tmp_path).bootstrap_servers == "127.0.0.1:9092,127.0.0.1:9094"
    assert layout(tmp_path).zookeeper_connect == "127.0.0.1:2181,127.0.0.1:2182"


def test_addresses_lead_through_the_relay_for_all_but_the_harness(tmp_path: Path) -> None:
    relayed = layout(tmp_path, relay=RELAY)
    assert relayed.bootstrap_servers == "127.0.0.1:1,127.0.0.1:5"
    assert relayed.zookeeper_connect_of(1) == "127.0.0.1:7,127.0.0.1:8"
    assert relayed.zookeeper_connect == "127.0.0.1:2181,127.0.0.1:2182"
    assert sorted(set(relayed.all_ports) - set(layout(tmp_path).all_ports)) == list(range(1, 9))


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

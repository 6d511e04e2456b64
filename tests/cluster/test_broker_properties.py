from pathlib import Path

import pytest

from harness.broker.configs.config import parse_config
from harness.cluster import broker_properties
from harness.cluster.broker_properties import DriverProperties
from harness.cluster.layout import BrokerPorts, ClusterLayout, ZookeeperPorts
from harness.errors import ScenarioError


def layout(root: Path, brokers: int) -> ClusterLayout:
    return ClusterLayout(
        root=root,
        run_id="r",
        driver="process",
        zookeeper={1: ZookeeperPorts(client=2000)},
        brokers={id_: BrokerPorts(client=3000 + id_, peer=4000 + id_) for id_ in range(brokers)},
        planted_bugs=(),
    )


def driver_properties(root: Path, broker: int) -> DriverProperties:
    return DriverProperties(
        client_address=f"127.0.0.1:{3000 + broker}",
        peer_address=f"127.0.0.1:{4000 + broker}",
        log_dir=str(root / "data"),
        zookeeper_connect="127.0.0.1:2000",
    )


def read(path: Path) -> dict[str, str]:
    lines = (line.partition("=") for line in path.read_text().splitlines())
    return {name: value for name, _, value in lines}


def test_a_broker_accepts_its_file_and_finds_its_ports_in_it(tmp_path: Path) -> None:
    config = parse_config(read(broker_properties.write(layout(tmp_path, 2), 1, {}, driver_properties(tmp_path, 1))))
    assert config.broker_id == 1
    assert [(endpoint.name, endpoint.host, endpoint.port) for endpoint in config.endpoints] == [
        ("PLAINTEXT", "127.0.0.1", 3001),
        ("REPL", "127.0.0.1", 4001),
    ]
    assert config.peer_endpoint.port == 4001
    assert config["zookeeper.connect"] == "127.0.0.1:2000"
    assert config["log.dir"] == str(tmp_path / "data")


@pytest.mark.parametrize(
    ("brokers", "factor"),
    [
        pytest.param(1, "1", id="one broker holds the only replica"),
        pytest.param(3, "3", id="three brokers hold three"),
        pytest.param(5, "3", id="more brokers hold three too"),
    ],
)
def test_replication_factors_fit_the_cluster(tmp_path: Path, brokers: int, factor: str) -> None:
    written = read(broker_properties.write(layout(tmp_path, brokers), 0, {}, driver_properties(tmp_path, 0)))
    assert written["default.replication.factor"] == written["offsets.topic.replication.factor"] == factor


def test_requested_properties_win_over_the_profile(tmp_path: Path) -> None:
    assert broker_properties.profile(1)["replica.lag.time.max.ms"] == "3000"
    requested = {"replica.lag.time.max.ms": "500"}
    written = read(broker_properties.write(layout(tmp_path, 1), 0, requested, driver_properties(tmp_path, 0)))
    assert written["replica.lag.time.max.ms"] == "500"


@pytest.mark.parametrize(
    ("brokers", "requested", "message"),
    [
        pytest.param(0, {}, "at least one broker, not 0", id="no brokers"),
        pytest.param(1, {"no.such": "1"}, "unknown property no.such", id="an unknown name"),
        pytest.param(1, {"min.insync.replicas": "many"}, "min.insync.replicas=many", id="a value of the wrong type"),
        pytest.param(1, {"log.dir": "/", "listeners": "x"}, "sets listeners, log.dir", id="what the driver sets"),
        pytest.param(1, {"log.dirs": "/a,/b"}, "different names of folders", id="data directories outside"),
        pytest.param(1, {"log.dirs": "t-0,b"}, "different names of folders", id="one that a replica could have"),
        pytest.param(1, {"log.dirs": "a,a"}, "different names of folders", id="one directory twice"),
        pytest.param(1, {"broker.rack": "a\nb"}, "a line break in broker.rack", id="a line break"),
    ],
)
def test_wrong_properties_are_refused(brokers: int, requested: dict[str, str], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        broker_properties.validate(brokers, requested)


def test_right_properties_are_accepted() -> None:
    broker_properties.validate(3, {"min.insync.replicas": "2", "log.dirs": "disk1, disk2"})


def test_several_racks_are_given_to_brokers_in_turn(tmp_path: Path) -> None:
    racks = []
    for broker in range(3):
        driver = driver_properties(tmp_path, broker)
        path = broker_properties.write(layout(tmp_path, 3), broker, {"broker.rack": "b, a"}, driver)
        racks.append(read(path)["broker.rack"])
    assert racks == ["b", "a", "b"]


def test_several_data_directories_lie_in_the_broker_s_own_folder(tmp_path: Path) -> None:
    path = broker_properties.write(layout(tmp_path, 1), 0, {"log.dirs": "disk1, disk2"}, driver_properties(tmp_path, 0))
    assert parse_config(read(path)).log_dirs == (f"{tmp_path}/data/disk1", f"{tmp_path}/data/disk2")

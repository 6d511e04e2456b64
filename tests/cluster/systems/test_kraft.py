"""How a broker without ZooKeeper is configured and started."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cluster.broker_properties import DriverProperties
from harness.cluster.driver import ClusterRequest
from harness.cluster.layout import BrokerPorts, ClusterLayout
from harness.cluster.supervised_driver import servers_of
from harness.cluster.systems.kafka.kraft import cluster_id
from harness.cluster.systems.system import system_named

KRAFT = "kafka:4.4.0"


def layout(root: Path, controllers: int) -> ClusterLayout:
    brokers = {
        id_: BrokerPorts(client=100 + id_, peer=200 + id_, controller=300 + id_ if id_ < controllers else None)
        for id_ in range(3)
    }
    made = ClusterLayout(
        root=root, run_id="r", driver="process", system=KRAFT, zookeeper={}, brokers=brokers, planted_bugs=()
    )
    made.folder.mkdir()
    return made


def written(cluster: ClusterLayout, broker_id: int, requested: dict[str, str], system: str = KRAFT) -> dict[str, str]:
    driver = DriverProperties(
        client_address=f"h:{100 + broker_id}",
        peer_address=f"h:{200 + broker_id}",
        log_dir="/data",
        zookeeper_connect="",
        controllers=cluster.quorum_addresses,
        controller_listens_on=cluster.controllers.get(broker_id) if cluster.relay_controllers else None,
    )
    path = system_named(system).configure(cluster, broker_id, requested, driver)
    lines = path.read_text(encoding="utf-8").replace("\\", "").splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize(
    ("broker_id", "controllers", "seen"),
    [
        pytest.param(
            2,
            3,
            {
                "node.id": "2",
                "process.roles": "broker,controller",
                "listeners": "PLAINTEXT://h:102,REPL://h:202,CONTROLLER://127.0.0.1:302",
                "advertised.listeners": "PLAINTEXT://h:102,REPL://h:202",
                "controller.quorum.voters": "0@127.0.0.1:300,1@127.0.0.1:301,2@127.0.0.1:302",
            },
            id="one of three controllers",
        ),
        pytest.param(
            2,
            1,
            {
                "process.roles": "broker",
                "listeners": "PLAINTEXT://h:102,REPL://h:202",
                "controller.quorum.voters": "0@127.0.0.1:300",
            },
            id="none of the quorum of one",
        ),
    ],
)
def test_a_broker_knows_its_roles(tmp_path: Path, broker_id: int, controllers: int, seen: dict[str, str]) -> None:
    own = written(layout(tmp_path, controllers), broker_id, {})
    assert {name: own[name] for name in seen} == seen
    assert not [name for name in own if name.startswith("zookeeper.") or name == "broker.id"]


def test_a_controller_that_is_no_broker_listens_for_its_quorum_alone(tmp_path: Path) -> None:
    beside = replace(layout(tmp_path, 0), quorum={101: 401, 102: 402, 103: 403})
    quorum = {
        "controller.quorum.voters": "101@127.0.0.1:401,102@127.0.0.1:402,103@127.0.0.1:403",
        "controller.listener.names": "CONTROLLER",
    }
    controller, broker = (written(beside, id_, {}) for id_ in (102, 1))
    wanted = quorum | {"node.id": "102", "process.roles": "controller", "listeners": "CONTROLLER://127.0.0.1:402"}
    assert {name: controller[name] for name in wanted} == wanted
    assert not {"advertised.listeners", "inter.broker.listener.name"} & controller.keys()
    wanted = quorum | {"process.roles": "broker", "listeners": "PLAINTEXT://h:101,REPL://h:201"}
    assert {name: broker[name] for name in wanted} == wanted
    assert beside.controllers == {101: "127.0.0.1:401", 102: "127.0.0.1:402", 103: "127.0.0.1:403"}


def test_behind_a_relay_servers_are_led_through_it_and_a_controller_listens_where_it_did(tmp_path: Path) -> None:
    combined = replace(layout(tmp_path, 1), relay_controllers={0: 900})
    own, other = (written(combined, id_, {}) for id_ in (0, 1))
    assert own["controller.quorum.voters"] == other["controller.quorum.voters"] == "0@127.0.0.1:900"
    assert own["listeners"] == "PLAINTEXT://h:100,REPL://h:200,CONTROLLER://127.0.0.1:300"
    assert own["advertised.listeners"] == "PLAINTEXT://h:100,REPL://h:200,CONTROLLER://127.0.0.1:900"
    assert other["advertised.listeners"] == "PLAINTEXT://h:101,REPL://h:201"


def test_so_does_a_controller_that_is_no_broker(tmp_path: Path) -> None:
    beside = replace(layout(tmp_path, 0), quorum={101: 401, 102: 402}, relay_controllers={101: 901, 102: 902})
    own = written(beside, 102, {})
    assert own["controller.quorum.voters"] == "101@127.0.0.1:901,102@127.0.0.1:902"
    assert own["listeners"] == "CONTROLLER://127.0.0.1:402"
    assert own["advertised.listeners"] == "CONTROLLER://127.0.0.1:902"


def test_a_controller_of_an_older_release_advertises_nothing(tmp_path: Path) -> None:
    combined = replace(layout(tmp_path, 1), relay_controllers={0: 900})
    own = written(combined, 0, {}, "kafka:3.6.2")
    assert own["controller.quorum.voters"] == "0@127.0.0.1:900"
    assert own["listeners"] == "PLAINTEXT://h:100,REPL://h:200,CONTROLLER://127.0.0.1:300"
    assert own["advertised.listeners"] == "PLAINTEXT://h:100,REPL://h:200"


@pytest.mark.parametrize(
    ("requested", "timeout"),
    [
        pytest.param({}, "4000", id="that of chaos runs"),
        pytest.param({"zookeeper.session.timeout.ms": "6000"}, "6000", id="by the name of before"),
        pytest.param({"broker.session.timeout.ms": "9000"}, "9000", id="by its own name"),
    ],
)
def test_a_silent_broker_is_missed_after_one_time(tmp_path: Path, requested: dict[str, str], timeout: str) -> None:
    own = written(layout(tmp_path, 3), 0, requested)
    assert own["broker.session.timeout.ms"] == timeout
    assert int(own["broker.heartbeat.interval.ms"]) == int(timeout) // 4
    effective = system_named(KRAFT).effective(3, requested)
    assert {effective["zookeeper.session.timeout.ms"], effective["broker.session.timeout.ms"]} == {timeout}


def test_storage_is_formatted_once_and_the_shell_becomes_the_broker(tmp_path: Path) -> None:
    cluster = layout(tmp_path, 3)
    shell, option, script = system_named(KRAFT).command(cluster, 1)
    assert (shell, option) == ("/bin/sh", "-c")
    assert script.startswith(f"[ -e {cluster.log_dir(1).resolve()}/meta.properties ] || ")
    assert f"kafka.tools.StorageTool format --ignore-formatted -t {cluster_id('r')} -c " in script
    assert "; exec " in script
    assert script.endswith(f"kafka.Kafka {cluster.config_file(1).resolve()}")


def test_a_broker_is_traced_from_its_start_where_its_syncs_are_to_be_known(tmp_path: Path) -> None:
    cluster = layout(tmp_path, 3)
    before = system_named(KRAFT).command(cluster, 1)[-1].rpartition("; exec ")[2]
    after = system_named(KRAFT).command(replace(cluster, sync_traces=True), 1)[-1].rpartition("; exec ")[2]
    assert after.startswith("strace -D -f ")
    assert after.endswith(f" -A -o {cluster.sync_log(1).resolve()} {before}")


def test_a_cluster_id_looks_like_no_option() -> None:
    ids = [cluster_id(str(number)) for number in range(500)]
    assert all(each[0].isalpha() and len(each) == 22 for each in ids)
    assert len(set(ids)) == 500


@pytest.mark.parametrize(
    ("system", "brokers", "controllers", "servers"),
    [
        pytest.param("kafka:3.9.1", 3, None, (1, 0), id="with ZooKeeper"),
        pytest.param(KRAFT, 3, None, (0, 3), id="three brokers are a quorum of three"),
        pytest.param(KRAFT, 5, None, (0, 3), id="so are three of five"),
        pytest.param(KRAFT, 2, None, (0, 1), id="two brokers are none of two"),
        pytest.param(KRAFT, 3, 1, (0, 1), id="a quorum of one"),
    ],
)
def test_how_many_keep_the_metadata(
    system: str, brokers: int, controllers: int | None, servers: tuple[int, int]
) -> None:
    request = ClusterRequest(brokers=brokers, properties={}, system=system, controllers=controllers)
    assert servers_of(request) == servers

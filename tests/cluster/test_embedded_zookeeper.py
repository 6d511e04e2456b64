from dataclasses import replace
from pathlib import Path

import pytest

from harness.cluster import embedded_zookeeper
from harness.cluster.embedded_zookeeper import ServerPlan
from harness.errors import ClusterError
from harness.properties_file import ENCODING, properties_in


def plan(data: Path, ensemble: dict[int, str]) -> ServerPlan:
    return ServerPlan(server_id=2, client_host="127.0.0.1", client_port=1234, data_dir=str(data), ensemble=ensemble)


def values(file: str | Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in Path(file).read_text().splitlines())


def test_the_command_names_the_configuration_and_every_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_zookeeper, "java", lambda: "/the/java")
    command = embedded_zookeeper.prepare(tmp_path, plan(tmp_path / "data", {}))
    configuration = values(command[-1])
    assert command[0] == "/the/java"
    assert command[-2].endswith(".ZooKeeperServerMain")
    assert configuration["clientPort"] == "1234"
    assert configuration["clientPortAddress"] == "127.0.0.1"
    assert configuration["dataDir"] == str(tmp_path / "data")
    assert not [name for name in configuration if name.startswith("server.")]
    assert "zookeeper-jute-" in command[command.index("-cp") + 1]


def test_a_folder_has_the_name_for_java_that_it_has_here(tmp_path: Path) -> None:
    data = tmp_path / "Läufe 1" / "data"
    embedded_zookeeper.prepare(tmp_path / "server", plan(data, {}))
    configuration = (tmp_path / "server" / "zoo.cfg").read_text(encoding=ENCODING)
    assert properties_in(configuration)["dataDir"] == str(data)


def test_a_server_of_an_ensemble_knows_all_of_them_and_which_it_is(tmp_path: Path) -> None:
    servers = {1: "a:1:2", 2: "b:1:2", 3: "c:1:2"}
    command = embedded_zookeeper.prepare(tmp_path, plan(tmp_path / "data", servers))
    configuration = values(command[-1])
    assert {name: value for name, value in configuration.items() if name.startswith("server.")} == {
        "server.1": "a:1:2",
        "server.2": "b:1:2",
        "server.3": "c:1:2",
    }
    assert command[-2].endswith(".QuorumPeerMain")
    assert (tmp_path / "data" / "myid").read_text() == "2\n"


@pytest.mark.parametrize(("syncs", "option"), [(True, "yes"), (False, "no")])
def test_a_server_syncs_what_it_writes_where_that_is_asked_for(tmp_path: Path, syncs: bool, option: str) -> None:
    command = embedded_zookeeper.prepare(tmp_path, replace(plan(tmp_path / "data", {}), syncs=syncs))
    assert f"-Dzookeeper.forceSync={option}" in command


def test_a_log_file_is_named_in_the_logging_configuration(tmp_path: Path) -> None:
    embedded_zookeeper.write_configuration(tmp_path, plan(tmp_path, {}), embedded_zookeeper.file_logging("/logs/z.log"))
    assert "fileName = /logs/z.log" in (tmp_path / "log4j2.properties").read_text()


def test_every_jar_is_found_once() -> None:
    names = [jar.name for jar in embedded_zookeeper.jars()]
    assert len(set(names)) == len(embedded_zookeeper.JARS)


def test_pyspark_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ClusterError, match="PySpark is not installed"):
        embedded_zookeeper.jars()


def test_a_missing_jar_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_zookeeper, "JARS", ("zookeeper", "no-such"))
    with pytest.raises(ClusterError, match=r"no no-such-\*\.jar in"):
        embedded_zookeeper.jars()


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = tmp_path / "bin" / "java"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ClusterError, match="is not a program"):
        embedded_zookeeper.java()
    launcher.parent.mkdir()
    launcher.touch(mode=0o755)
    assert embedded_zookeeper.java() == str(launcher)


async def test_a_port_where_nobody_listens_does_not_serve() -> None:
    assert not await embedded_zookeeper.serves(1)

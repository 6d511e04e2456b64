from pathlib import Path

import pytest

from harness.cluster import embedded_zookeeper
from harness.errors import ClusterError


def test_the_command_names_the_configuration_and_every_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_zookeeper, "java", lambda: "/the/java")
    command = embedded_zookeeper.prepare(tmp_path, 1234)
    configuration = dict(line.split("=", 1) for line in Path(command[-1]).read_text().splitlines())
    assert command[0] == "/the/java"
    assert configuration["clientPort"] == "1234"
    assert configuration["clientPortAddress"] == "127.0.0.1"
    assert configuration["dataDir"] == str(embedded_zookeeper.data_dir(tmp_path).resolve())
    assert "zookeeper-jute-" in command[command.index("-cp") + 1]


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

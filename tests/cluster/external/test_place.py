"""The notes about an existing cluster, and reading them in another process."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cluster.external.forwards import Forward
from harness.cluster.external.place import ExternalCluster, Host, Notes
from harness.errors import ClusterError
from harness.store.folder import RunFolder

CLUSTER = ExternalCluster(
    cluster_id="its-id",
    bootstrap_servers="one:9092",
    zookeeper_connect="keeper:2181",
    hosts={1002: Host(host="one", name="kafka-1")},
    commands={"kill": "false", "data": "cp -r x {into}"},
    timeout_s=60,
    prefix="chaos-0123456789-",
    addresses={1002: "one:9092"},
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    RunFolder(tmp_path).cluster.mkdir()
    return tmp_path


@pytest.mark.parametrize("relay", [{}, {1002: Forward(listen="relay:19001", target="one:9094")}])
def test_a_cluster_is_read_as_it_was_written(root: Path, relay: dict[int, Forward]) -> None:
    replace(CLUSTER, relay=relay).save(root)
    assert ExternalCluster.load(root) == replace(CLUSTER, relay=relay)
    CLUSTER.save(root)
    assert ExternalCluster.load(root) == CLUSTER
    assert (RunFolder(root).cluster / "external.json").stat().st_mode & 0o077 == 0
    assert CLUSTER.unseen == ("state_changes", "zookeeper")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(None, "no cluster was started in", id="nothing"),
        pytest.param("{", "does not describe a cluster", id="half of it"),
        pytest.param('{"hosts": []}', "does not describe a cluster", id="something else"),
    ],
)
def test_what_is_no_cluster_is_an_error(root: Path, text: str | None, message: str) -> None:
    if text is not None:
        (RunFolder(root).cluster / "external.json").write_text(text, encoding="utf-8")
    with pytest.raises(ClusterError, match=message):
        ExternalCluster.load(root)


def test_notes_of_several_at_once_are_all_there(root: Path) -> None:
    notes = Notes(root)
    assert notes.of("down") == []
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda number: notes.add(("down", "paused")[number % 2], number), range(40)))
    assert Notes(root).of("down") == list(range(0, 40, 2))
    assert Notes(root).of("paused") == list(range(1, 40, 2))
    notes.remove("down", 4)
    notes.remove("down", 99)
    assert 4 not in Notes(root).of("down")
    assert len(Notes(root).of("down")) == 19


@pytest.mark.parametrize(
    ("action", "message"),
    [
        pytest.param("start", "the scenario gives no command for start", id="no command"),
        pytest.param("kill", "the command for kill of broker 1002 ended with status 1", id="one that fails"),
    ],
)
def test_a_command_that_cannot_be_carried_out_is_named_by_what_it_is_for(action: str, message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        CLUSTER.carry_out(action, 1002)

"""Copies out of containers, from an engine in memory."""

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.containers.data_copy import containers_lock, copy_data
from harness.cluster.containers.engine import ContainerState
from harness.cluster.containers.plans import Names
from harness.cluster.layout import BrokerPorts, ClusterLayout
from harness.errors import ClusterError, DeadlineError
from tests.small_disk import small_disk

CHUNK = 700
"""Not a multiple of tar's blocks."""


def archive(**files: bytes) -> bytes:
    """Return a tar archive as the engine makes it: a folder, then its files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        folder = tarfile.TarInfo("./")
        folder.type, folder.mode, folder.uid = tarfile.DIRTYPE, 0o1777, 65_534
        tar.addfile(folder)
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.uid = len(data), 0o400, 65_534
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def with_member(**attributes: Any) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo()
        for name, value in attributes.items():
            setattr(info, name, value)
        tar.addfile(info)
    return buffer.getvalue()


@dataclass
class FakeEngine:
    """Containers of two brokers by state, each with an archive."""

    names: Names
    states: dict[str, str] = field(default_factory=lambda: {"broker-0": "exited", "broker-1": "exited"})
    archives: dict[str, bytes] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    freezes: bool = True

    def _process(self, container: str) -> str:
        return next(process for process in ("broker-0", "broker-1") if self.names.of(process) == container)

    def state(self, container: str) -> ContainerState | None:
        state = self.states.get(self._process(container))
        return None if state is None else ContainerState(state=state, pid=1, exit_status=0, out_of_memory=False)

    def can_freeze(self) -> bool:
        return self.freezes

    def pause(self, container: str) -> None:
        self.calls.append(f"pause {self._process(container)}")

    def unpause(self, container: str) -> None:
        self.calls.append(f"unpause {self._process(container)}")

    def output(self, container: str) -> bytes:
        return b"Traceback\n" if self._process(container) == "broker-0" else b""

    def archive(self, container: str, path: str) -> Iterator[bytes]:
        process = self._process(container)
        self.calls.append(f"archive {process} {path}")
        data = self.archives[process]
        for start in range(0, len(data), CHUNK):
            yield data[start : start + CHUNK]


@pytest.fixture
def layout(tmp_path: Path) -> ClusterLayout:
    layout = ClusterLayout(
        root=tmp_path,
        run_id="r",
        driver="docker",
        zookeeper={},
        brokers={0: BrokerPorts(client=1), 1: BrokerPorts(client=2)},
        planted_bugs=(),
    )
    for broker_id in layout.brokers:
        layout.log_dir(broker_id).parent.mkdir(parents=True)
    return layout


@pytest.fixture
def engine(layout: ClusterLayout) -> Any:
    whole = archive(log=b"x" * 3000, checkpoint=b"0\n")
    return FakeEngine(names=Names(layout.root), archives={"broker-0": whole, "broker-1": whole})


def content(layout: ClusterLayout, broker_id: int) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in layout.log_dir(broker_id).iterdir()}


WHOLE = {"log": 3000, "checkpoint": 2}


def test_everything_is_copied_and_a_second_copy_replaces_the_first(layout: ClusterLayout, engine: Any) -> None:
    assert copy_data(engine, layout) == []
    assert content(layout, 0) == content(layout, 1) == WHOLE
    engine.archives["broker-0"] = archive(log=b"longer" * 1000)
    assert copy_data(engine, layout) == []
    assert content(layout, 0) == {"log": 6000}
    assert [path.name for path in layout.log_dir(0).parent.iterdir()] == ["data"]


@pytest.mark.parametrize(
    ("state", "freezes", "calls"),
    [
        pytest.param("running", True, ["pause", "archive", "unpause"], id="a running server stands still meanwhile"),
        pytest.param("paused", True, ["archive"], id="a paused one stays paused"),
        pytest.param("exited", True, ["archive"], id="a dead one is copied as it is"),
        pytest.param("running", False, ["archive"], id="an engine that cannot freeze copies all the same"),
    ],
)
def test_steps_by_the_state_of_the_container(
    layout: ClusterLayout, engine: Any, state: str, freezes: bool, calls: list[str]
) -> None:
    engine.states["broker-0"] = state
    engine.freezes = freezes
    assert copy_data(engine, layout) == []
    assert [call.split()[0] for call in engine.calls if "broker-0" in call] == calls


def test_what_a_server_printed_lies_beside_its_log(layout: ClusterLayout, engine: Any) -> None:
    for broker_id in layout.brokers:
        layout.human_log(broker_id).parent.mkdir(parents=True)
    assert copy_data(engine, layout) == []
    assert layout.human_log(0).with_name("output.log").read_text() == "Traceback\n"
    assert not layout.human_log(1).with_name("output.log").exists()


def test_a_server_whose_copy_fails_is_thawed(layout: ClusterLayout, engine: Any) -> None:
    engine.states["broker-0"] = "running"
    engine.archives["broker-0"] = archive(log=b"x" * 5000)[:2000]
    assert len(copy_data(engine, layout)) == 1
    assert engine.calls[2] == "unpause broker-0"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(archive(log=b"x" * 5000)[:2000], "ends too early", id="half an archive"),
        pytest.param(b"", "ends too early", id="no archive"),
        pytest.param(with_member(name="../../escaped"), "outside its folder", id="a path that leaves the folder"),
        pytest.param(
            with_member(name="link", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
            "a symbolic link",
            id="a link to a file of the host",
        ),
        pytest.param(with_member(name="pipe", type=tarfile.FIFOTYPE), "what is no file", id="what is no file"),
    ],
)
def test_data_that_cannot_be_copied_is_a_sentence_and_the_rest_is_copied(
    layout: ClusterLayout, engine: Any, data: bytes, why: str
) -> None:
    engine.archives["broker-0"] = data
    (sentence,) = copy_data(engine, layout)
    assert sentence.startswith("the data of broker-0 could not be brought out: ")
    assert why in sentence
    assert list(layout.log_dir(0).parent.iterdir()) == [], "half a copy never looks like a whole one"
    assert content(layout, 1) == WHOLE


def test_an_earlier_copy_stays_when_a_later_one_fails(layout: ClusterLayout, engine: Any) -> None:
    assert copy_data(engine, layout) == []
    engine.archives["broker-0"] = b""
    assert len(copy_data(engine, layout)) == 1
    assert content(layout, 0) == WHOLE


def test_a_container_that_is_gone_is_reported_unless_its_data_was_copied_before(
    layout: ClusterLayout, engine: Any
) -> None:
    del engine.states["broker-0"]
    (sentence,) = copy_data(engine, layout)
    assert "is gone" in sentence
    engine.states["broker-0"] = "exited"
    assert copy_data(engine, layout) == []
    del engine.states["broker-0"]
    assert copy_data(engine, layout) == []
    assert content(layout, 0) == WHOLE


def test_a_full_disk_is_a_sentence_and_what_fits_is_there(layout: ClusterLayout, engine: Any) -> None:
    engine.archives["broker-0"] = archive(log=b"x" * 200_000)
    with small_disk(100_000):
        (sentence,) = copy_data(engine, layout)
    assert "the data of broker-0 could not be brought out" in sentence
    assert "File too large" in sentence
    assert not layout.log_dir(0).exists()
    assert content(layout, 1) == WHOLE


def test_only_one_process_at_a_time_holds_the_containers_lock_of_a_run(layout: ClusterLayout) -> None:
    with (
        containers_lock(layout.root, 1),
        pytest.raises(DeadlineError, match="is held by another process"),
        containers_lock(layout.root, 0),
    ):
        raise AssertionError("both have it")
    with containers_lock(layout.root, 0):
        pass


def test_an_engine_that_goes_away_while_it_answers_is_a_sentence(layout: ClusterLayout, engine: Any) -> None:
    def broken(container: str, path: str) -> Iterator[bytes]:
        yield archive(log=b"x" * 5000)[:1000]
        raise ClusterError("the Docker engine does not answer")

    engine.archive = broken
    sentences = copy_data(engine, layout)
    assert [sentence.split(":")[-1].strip() for sentence in sentences] == ["the Docker engine does not answer"] * 2

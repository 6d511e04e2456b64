"""What is copied from disks of brokers' own, and how they are freed: with folders and a supervisor of this test's."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.disks import ballast
from harness.cluster.layout import BrokerPorts, ClusterLayout
from harness.cluster.processes.driver import ProcessDriver
from harness.cluster.supervision.client import SupervisorGone
from harness.cluster.supervision.supervision import Supervision
from harness.errors import DeadlineError

BROKERS = (0, 1)


class Supervising(Supervision):
    """A supervisor of which a child has ended or goes on, and that may go while a file is copied."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, "run")
        self.root = root
        self.exited = True
        self.gone = False

    def folder_seen_by_it(self, folder: Path) -> Path:
        if self.gone:
            raise SupervisorGone("the supervisor is gone, and what only its children saw")
        return self.root / "seen" / folder.relative_to(self.root)

    async def children(self) -> dict[str, Any]:
        return {} if self.gone else {"ballast-0": {}}

    async def signal_if_running(self, name: str, signal_name: str) -> None:
        assert (name, signal_name) == ("ballast-0", "TERM")

    async def ended(self, name: str, timeout_s: float) -> dict[str, Any]:
        return {"exited": self.exited, "status": None}


@pytest.fixture
def layout(tmp_path: Path) -> ClusterLayout:
    ports = BrokerPorts(client=1, peer=2, metrics=3)
    layout = ClusterLayout(
        root=tmp_path,
        run_id="run",
        driver="process",
        zookeeper={},
        brokers=dict.fromkeys(BROKERS, ports),
        planted_bugs=(),
        disks=True,
    )
    layout.folder.mkdir(parents=True)
    layout.save()
    for broker in BROKERS:
        layout.log_dir(broker).mkdir(parents=True)
    return layout


@pytest.fixture
def supervising(layout: ClusterLayout) -> Supervising:
    made = Supervising(layout.root)
    for broker in BROKERS:
        log = made.folder_seen_by_it(layout.log_dir(broker)) / "orders-0"
        log.mkdir(parents=True)
        (log / "0.log").write_text("whole")
    return made


@pytest.fixture
def driver(layout: ClusterLayout, supervising: Supervising, monkeypatch: pytest.MonkeyPatch) -> ProcessDriver:
    made = ProcessDriver(layout.root, "run")
    monkeypatch.setattr(made, "_supervision", supervising)
    return made


def copied(layout: ClusterLayout, broker: int) -> dict[str, str]:
    folder = layout.log_dir(broker)
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


async def test_what_is_on_the_disks_takes_the_place_of_an_earlier_copy_in_the_same_folder(
    driver: ProcessDriver, layout: ClusterLayout
) -> None:
    folder = layout.log_dir(0)
    (folder / "orders-7").mkdir()
    (folder / "orders-7" / "0.log").write_text("of before")
    (folder / "meta.properties").write_text("of before")
    before = folder.stat().st_ino
    assert await driver.copy_data() == []
    assert [copied(layout, broker) for broker in BROKERS] == 2 * [{"orders-0/0.log": "whole"}]
    assert folder.stat().st_ino == before, "the supervisor's disk is mounted there"
    assert not [path for path in folder.parent.iterdir() if path.name.endswith(".part")]


def full(file: Path, copied: Path) -> None:
    copied.write_text("wh")
    raise OSError(28, "No space left on device")


def gone(supervising: Supervising) -> Callable[[Path, Path], None]:
    def copy(file: Path, copied: Path) -> None:
        supervising.gone = True
        raise FileNotFoundError(2, "No such file or directory")

    return copy


@pytest.mark.parametrize("reason", ["No space left on device", "the supervisor is gone"])
async def test_half_a_copy_is_none_and_leaves_the_other_brokers_alone(
    driver: ProcessDriver,
    layout: ClusterLayout,
    supervising: Supervising,
    monkeypatch: pytest.MonkeyPatch,
    reason: str,
) -> None:
    copyfile, fails = shutil.copyfile, gone(supervising) if "supervisor" in reason else full

    def copy(file: Path, copied: Path) -> None:
        (fails if "/brokers/0/" in str(file) else copyfile)(file, copied)

    monkeypatch.setattr(shutil, "copyfile", copy)
    remarks = await driver.copy_data()
    assert f"the data of broker 0 could not be copied from its own disk: {reason}" in remarks[0].replace(
        "[Errno 28] ", ""
    )
    assert copied(layout, 0) == {}
    if not supervising.gone:
        assert (len(remarks), copied(layout, 1)) == (1, {"orders-0/0.log": "whole"})
    else:
        assert len(remarks) == len(BROKERS)


async def test_a_file_that_goes_meanwhile_is_left_out(
    driver: ProcessDriver, layout: ClusterLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy(file: Path, copied: Path) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(shutil, "copyfile", copy)
    assert await driver.copy_data() == []
    assert copied(layout, 0) == {}


async def test_a_filler_that_goes_on_is_no_free_disk(driver: ProcessDriver, supervising: Supervising) -> None:
    supervising.exited = False
    with pytest.raises(DeadlineError, match="ballast-0 did not end within"):
        await driver.free_disk(0)


async def test_what_a_filler_has_left_that_was_killed_goes(
    driver: ProcessDriver, layout: ClusterLayout, supervising: Supervising
) -> None:
    left = supervising.folder_seen_by_it(layout.log_dir(0)) / ballast.NAME
    left.write_text("much")
    await driver.free_disk(0)
    assert not left.exists()
    supervising.gone = True
    await driver.free_disk(0)

# ruff: noqa: ASYNC220, ASYNC240 - small local files and short-lived processes are what is tested
import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from harness.cluster.driver import CAPABILITIES, ClusterDriver, ClusterRequest
from harness.cluster.layout import ClusterLayout
from harness.cluster.pids import ProcessIdentity, identify, read_pid_file, state_of
from harness.cluster.process import ProcessDriver
from harness.errors import ClusterError, DeadlineError, ScenarioError
from harness.history import read_jsonl
from harness.waiting import until
from harness.zookeeper.kazoo_view import KazooView

pytestmark = pytest.mark.cluster

REQUEST = ClusterRequest(brokers=3, properties={"zookeeper.session.timeout.ms": "1000"})
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
POLITE = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(15, lambda *_: exit(3)); print('ready', flush=True); time.sleep(60)",
]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)",
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The run folder of a cluster that the tests of this module share; each leaves all three brokers running."""
    root = tmp_path_factory.mktemp("run")
    driver = ProcessDriver(root, "shared")
    asyncio.run(driver.start(REQUEST))
    yield root
    asyncio.run(driver.stop())
    assert asyncio.run(driver.residue()) == []


@pytest.fixture
def driver(root: Path) -> ProcessDriver:
    """A driver that knows the folder and nothing else."""
    return ProcessDriver(root, "shared")


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[ProcessDriver]:
    """The driver of a cluster of this test's own, not started."""
    driver = ProcessDriver(tmp_path, "alone")
    yield driver
    await driver.stop()
    assert await driver.residue() == []


def pids_of(root: Path) -> dict[str, ProcessIdentity]:
    found = {path.stem: read_pid_file(path) for path in (root / "cluster" / "pids").glob("*.pid")}
    return {name: identity for name, identity in found.items() if identity is not None}


async def gone(processes: dict[str, ProcessIdentity]) -> None:
    async def alive() -> list[str]:
        return [name for name, process in processes.items() if process.alive()]

    await until(alive, lambda names: not names, what="end of all processes", timeout_s=5, every_s=0.01)


async def test_a_started_cluster_is_registered_has_a_controller_and_says_where_everything_is(
    driver: ProcessDriver,
) -> None:
    status = await driver.status()
    assert [(broker.broker_id, broker.state) for broker in status.brokers] == [(id_, "running") for id_ in range(3)]
    assert len(status.bootstrap_servers.split(",")) == 3
    assert status.zookeeper[0].pid is not None
    for broker in status.brokers:
        assert broker.log_dir.is_dir()
        assert next(iter(read_jsonl(broker.state_change_log)))["ev"] == "broker_start"
        assert broker.human_log.exists()
    async with KazooView(status.zookeeper_connect) as view:
        assert set(await view.registrations()) == {0, 1, 2}
        assert (await view.controller()).broker_id in {0, 1, 2}
    as_dict = status.as_dict()
    assert as_dict["brokers"][1]["pid"] == status.broker(1).pid
    assert as_dict["zookeeper_data_dir"] == str(status.zookeeper[0].data_dir)


def test_the_driver_has_the_capabilities_that_it_claims(driver: ProcessDriver) -> None:
    assert isinstance(driver, ClusterDriver)
    assert all(isinstance(driver, capability) for capability in CAPABILITIES.values())


async def test_a_killed_broker_is_gone_at_once_and_comes_back_with_its_data(driver: ProcessDriver) -> None:
    before = (await driver.status()).broker(1)
    assert before.pid is not None
    identity = identify(before.pid)
    assert identity is not None
    (before.log_dir / "kept").touch()

    await driver.kill_broker(1)

    assert not identity.alive()
    dead = (await driver.status()).broker(1)
    assert (dead.state, dead.pid) == ("stopped", None)
    with pytest.raises(ClusterError, match="does not run"):
        await driver.kill_broker(1)
    await driver.start_broker(1)
    after = (await driver.status()).broker(1)
    assert (after.state, after.starts) == ("running", before.starts + 1)
    assert after.client_address == before.client_address
    assert (after.log_dir / "kept").exists()
    with pytest.raises(ClusterError, match="broker 1 runs already"):
        await driver.start_broker(1)


async def test_a_stopped_broker_says_that_it_stopped_cleanly(driver: ProcessDriver) -> None:
    await driver.stop_broker(2, timeout_s=20)
    status = (await driver.status()).broker(2)
    assert status.state == "stopped"
    assert [line["ev"] for line in read_jsonl(status.state_change_log)][-1] == "broker_stop"
    await driver.start_broker(2)


async def test_a_paused_broker_stands_still_until_it_is_resumed(driver: ProcessDriver) -> None:
    await driver.pause_broker(0, at_most_s=60)
    status = (await driver.status()).broker(0)
    assert status.state == "paused"
    now = state_of(status.pid or 0)
    assert now is not None
    assert now.state == "T"
    with pytest.raises(DeadlineError, match=r"broker-0 still runs 0\.1 s after SIGTERM"):
        await driver.stop_broker(0, timeout_s=0.1)
    await driver.resume_broker(0)
    await gone({"broker-0": ProcessIdentity(pid=status.pid or 0, started=now.started)})
    await driver.start_broker(0)


async def test_a_pause_ends_by_itself(driver: ProcessDriver) -> None:
    await driver.pause_broker(0, at_most_s=0.1)

    async def state() -> str:
        return (await driver.status()).broker(0).state

    await until(state, lambda seen: seen == "running", what="resumed", timeout_s=5, every_s=0.02)


async def test_a_port_that_was_taken_meanwhile_is_named(driver: ProcessDriver) -> None:
    await driver.kill_broker(1)
    host, port = (await driver.status()).broker(1).client_address.split(":")
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind((host, int(port)))
        stranger.listen()
        with pytest.raises(ClusterError, match=f"port {port} of broker 1 is taken"):
            await driver.start_broker(1)
    await driver.start_broker(1)


async def test_an_unknown_broker_is_named_with_those_there_are(driver: ProcessDriver) -> None:
    with pytest.raises(ClusterError, match="no broker 7; there are: 0, 1, 2"):
        await driver.kill_broker(7)


async def test_a_second_cluster_in_the_same_folder_is_refused_and_the_first_stays(driver: ProcessDriver) -> None:
    with pytest.raises(ClusterError, match="another supervisor runs"):
        await driver.start(REQUEST)
    assert {broker.state for broker in (await driver.status()).brokers} == {"running"}


async def test_a_client_that_ends_when_asked_has_its_exit_status(driver: ProcessDriver, tmp_path: Path) -> None:
    await driver.start_client("polite", POLITE, tmp_path / "log")
    await ready(tmp_path / "log")
    assert await driver.stop_client("polite", timeout_s=5) == 3
    assert await driver.stop_client("polite", timeout_s=5) == 3


async def test_a_client_that_does_not_end_is_killed(driver: ProcessDriver, tmp_path: Path) -> None:
    await driver.start_client("stubborn", STUBBORN, tmp_path / "log")
    await ready(tmp_path / "log")
    assert await driver.stop_client("stubborn", timeout_s=0.1) is None


async def ready(log: Path) -> None:
    async def text() -> str:
        return log.read_text()

    await until(text, lambda seen: "ready" in seen, what="the client's first line", timeout_s=10, every_s=0.02)


async def test_stopping_takes_two_seconds_at_most_and_leaves_only_files(alone: ProcessDriver, tmp_path: Path) -> None:
    await alone.start(REQUEST)
    await alone.start_client("client", SLEEP, tmp_path / "client.log")
    await alone.pause_broker(1, at_most_s=60)
    processes = pids_of(tmp_path)
    assert set(processes) == {"supervisor", "zookeeper-1", "broker-0", "broker-1", "broker-2", "client-client"}
    assert len(await alone.residue()) == len(processes) + 7 + 1

    began = time.monotonic()
    await alone.stop()

    assert time.monotonic() - began < 3
    await gone(processes)
    assert await alone.residue() == []
    status = await alone.status()
    assert {broker.state for broker in status.brokers} == {"stopped"}
    assert status.zookeeper[0].pid is None
    await alone.stop()


async def test_what_a_killed_supervisor_leaves_is_nothing_and_stop_knows_it(
    alone: ProcessDriver, tmp_path: Path
) -> None:
    await alone.start(ClusterRequest(brokers=1, properties={}))
    processes = pids_of(tmp_path)
    processes["supervisor"].send(signal.SIGKILL)
    await gone(processes)
    assert "socket" in " ".join(await alone.residue())
    await alone.stop()
    assert await alone.residue() == []


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("env={}", id="a process of the group, though it hides its environment"),
        pytest.param("start_new_session=True", id="a process with the mark, though it left the group"),
    ],
)
async def test_a_process_that_nobody_knows_of_is_found_and_ended(
    alone: ProcessDriver, tmp_path: Path, options: str
) -> None:
    await alone.start(ClusterRequest(brokers=1, properties={}))
    parent = f"import subprocess; print('ready', subprocess.Popen(['/bin/sleep', '60'], {options}).pid, flush=True)"
    await alone.start_client("parent", [sys.executable, "-c", parent], tmp_path / "log")
    await ready(tmp_path / "log")
    orphan = int((tmp_path / "log").read_text().split()[1])
    identity = identify(orphan)
    assert identity is not None
    pids_of(tmp_path)["supervisor"].send(signal.SIGKILL)
    await gone(pids_of(tmp_path))
    assert f"process {orphan} of run alone still runs" in await alone.residue()
    await alone.stop()
    assert not identity.alive()


async def test_stop_works_when_zookeeper_and_a_broker_are_dead_already(alone: ProcessDriver, tmp_path: Path) -> None:
    await alone.start(ClusterRequest(brokers=2, properties={}))
    processes = pids_of(tmp_path)
    for name in ("zookeeper-1", "broker-0"):
        processes[name].send(signal.SIGKILL)
    began = time.monotonic()
    await alone.stop()
    assert time.monotonic() - began < 3
    await gone(processes)


async def test_a_cluster_ends_with_its_owner(alone: ProcessDriver, tmp_path: Path) -> None:
    owner = subprocess.Popen(SLEEP)
    try:
        await alone.start(ClusterRequest(brokers=1, properties={}, owner_pid=owner.pid))
    finally:
        owner.kill()
        owner.wait()
    await gone(pids_of(tmp_path))


async def test_a_cluster_that_is_to_stay_goes_when_its_starter_is_killed_before_it_is_up(
    alone: ProcessDriver, tmp_path: Path
) -> None:
    program = (
        "import asyncio, sys; from pathlib import Path\n"
        "from harness.cluster.process import *\n"
        "request = ClusterRequest(brokers=1, properties={})\n"
        "asyncio.run(ProcessDriver(Path(sys.argv[1]), 'alone').start(request))"
    )
    starter = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])

    async def spawned() -> bool:
        return "broker-0" in pids_of(tmp_path)

    await until(spawned, bool, what="a broker process", timeout_s=20, every_s=0.01)
    starter.kill()
    starter.wait()
    await gone(pids_of(tmp_path))


async def test_a_cluster_can_be_started_again_with_its_data(alone: ProcessDriver) -> None:
    first = await alone.start(ClusterRequest(brokers=1, properties={}))
    async with KazooView(first.zookeeper_connect) as view:
        epoch = (await view.controller()).controller_epoch
    await alone.stop()
    second = await alone.start(ClusterRequest(brokers=1, properties={}))
    async with KazooView(second.zookeeper_connect) as view:
        assert (await view.controller()).controller_epoch > epoch


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        pytest.param(ClusterRequest(brokers=0, properties={}), "at least one broker", id="no brokers"),
        pytest.param(
            ClusterRequest(brokers=1, properties={"zookeeper.session.timeout": "1"}),
            "did you mean zookeeper.session.timeout.ms",
            id="an unknown property",
        ),
        pytest.param(
            ClusterRequest(brokers=1, properties={}, planted_bugs=("no-such-bug",)),
            "unknown planted bug no-such-bug",
            id="an unknown planted bug",
        ),
    ],
)
async def test_a_wrong_request_starts_nothing(tmp_path: Path, request_: ClusterRequest, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        await ProcessDriver(tmp_path, "wrong").start(request_)
    assert list(tmp_path.iterdir()) == []


async def test_a_broker_that_dies_at_its_start_shows_its_last_words(alone: ProcessDriver, tmp_path: Path) -> None:
    blocked = tmp_path / "cluster" / "brokers" / "0"
    blocked.mkdir(parents=True)
    (blocked / "data").write_text("not a folder")
    with pytest.raises(ClusterError, match=r"(?s)broker-0 ended with status 1; the end of .*broker\.log:\n.*data"):
        await alone.start(ClusterRequest(brokers=1, properties={}))
    assert await alone.residue() == []


async def test_without_java_nothing_is_left_and_the_message_says_what_is_needed(
    alone: ProcessDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", os.fspath(Path(sys.executable).parent))
    assert shutil.which("java") is None
    with pytest.raises(ClusterError, match="no java in PATH"):
        await alone.start(ClusterRequest(brokers=1, properties={}))


async def test_where_no_cluster_was_ever_started_the_status_says_so(tmp_path: Path) -> None:
    driver = ProcessDriver(tmp_path, "none")
    with pytest.raises(ClusterError, match="no cluster was started in"):
        await driver.status()
    await driver.stop()
    assert await driver.residue() == []


def test_the_layout_in_the_folder_is_what_was_saved(tmp_path: Path, root: Path) -> None:
    layout = ClusterLayout.load(root)
    copy = ClusterLayout(
        root=tmp_path,
        run_id=layout.run_id,
        driver=layout.driver,
        zookeeper=layout.zookeeper,
        brokers=layout.brokers,
        planted_bugs=("a",),
    )
    copy.folder.mkdir()
    copy.save()
    assert ClusterLayout.load(tmp_path) == copy
    (copy.folder / "cluster.json").write_text("{}")
    with pytest.raises(ClusterError, match="does not describe a cluster"):
        ClusterLayout.load(tmp_path)

# ruff: noqa: ASYNC240 - a small local file is what is looked at
"""A driver starts, disturbs and stops a cluster as its capabilities say; each test leaves all three brokers running."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.driver import (
    CAPABILITIES,
    DRIVER,
    CanKill,
    CanPause,
    CanRunClients,
    ClusterDriver,
    ClusterRequest,
    RunExecutor,
)
from harness.cluster.readiness import view_of
from harness.contracts import registry
from harness.errors import ClusterError, DeadlineError
from harness.system.process_state import ProcessState
from harness.system.waiting import until

RUNNING, PAUSED, STOPPED = ProcessState
SESSION = "zookeeper.session.timeout.ms"
LONGEST_S = 120
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
def root(driver_name: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The folder of a running cluster of three brokers."""
    cls = registry.driver_class(driver_name)
    if issubclass(cls, RunExecutor):
        pytest.skip(f"{driver_name} has a cluster only while it carries out a run")
    if driver_name not in registry.starting():
        pytest.skip(f"{driver_name} starts no cluster: it uses one that is there")
    if reason := cls.lacks().get(DRIVER):
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("run")
    driver = cls(root, "conformance")
    system = request.config.getoption("chaos_system")
    asyncio.run(driver.start(ClusterRequest(brokers=3, properties={SESSION: "6000"}, system=system)))
    yield root
    asyncio.run(driver.stop())
    asyncio.run(driver.stop())
    assert asyncio.run(driver.residue()) == [], "something is left after the cluster was stopped"


@pytest.fixture
def driver(driver_name: str, root: Path) -> Any:
    """A driver that knows the folder of the cluster and nothing else, as another process does."""
    return registry.driver_class(driver_name)(root, "conformance")


def able(driver: Any, capability: type[Any]) -> None:
    """Skip the test of a driver that lacks a capability."""
    if not isinstance(driver, capability):
        pytest.skip(f"{driver.name} does not have the capability {capability.__name__}")


async def state_is(driver: ClusterDriver, broker_id: int, state: ProcessState) -> None:
    """Wait until the driver says so of a broker."""

    async def look() -> ProcessState:
        return (await driver.status()).broker(broker_id).state

    what = f"broker {broker_id} {state}"
    await until(look, lambda seen: seen == state, what=what, timeout_s=LONGEST_S, every_s=0.02)


async def ready(log: Path) -> None:
    """Wait for the first line of a client."""

    async def text() -> str:
        return log.read_text() if log.exists() else ""

    await until(text, lambda seen: "ready" in seen, what="the client's first line", timeout_s=LONGEST_S, every_s=0.02)


def test_it_fulfils_the_protocol_and_names_what_this_machine_lacks(driver_name: str) -> None:
    cls = registry.driver_class(driver_name)
    assert cls.name == driver_name
    assert cls.families, "it starts no system"
    assert cls.lacks().keys() <= {DRIVER, *CAPABILITIES}
    assert registry.capabilities(driver_name) <= set(CAPABILITIES)
    methods = ("start", "status", "start_broker", "stop_broker", "copy_data", "stop", "residue")
    assert not [name for name in methods if not hasattr(cls, name)]


async def test_a_started_cluster_is_registered_and_has_a_controller(driver: ClusterDriver) -> None:
    status = await driver.status()
    assert status.driver == driver.name
    assert [(broker.broker_id, broker.state) for broker in status.brokers] == [(id_, RUNNING) for id_ in range(3)]
    assert len(status.bootstrap_servers.split(",")) == 3
    async with view_of(status.zookeeper_connect, status.controllers) as view:
        # what an earlier test paused may have lost its session, and may have been the controller
        await until(view.registrations, lambda seen: set(seen) == {0, 1, 2}, what="all registered", timeout_s=LONGEST_S)
        await until(view.controller, lambda seen: seen.broker_id in {0, 1, 2}, what="a controller", timeout_s=LONGEST_S)


async def test_a_stopped_broker_starts_again_with_its_data_and_address(driver: ClusterDriver) -> None:
    before = (await driver.status()).broker(2)
    await driver.stop_broker(2, timeout_s=LONGEST_S)
    assert (await driver.status()).broker(2).state == STOPPED
    await driver.start_broker(2)
    after = (await driver.status()).broker(2)
    assert (after.state, after.starts) == (RUNNING, before.starts + 1)
    assert (after.client_address, after.log_dir) == (before.client_address, before.log_dir)
    with pytest.raises(ClusterError, match="broker 2 runs already"):
        await driver.start_broker(2)


async def test_a_killed_broker_is_gone_at_once(driver: Any) -> None:
    able(driver, CanKill)
    await driver.kill_broker(1)
    dead = (await driver.status()).broker(1)
    assert (dead.state, dead.pid) == (STOPPED, None)
    with pytest.raises(ClusterError, match="does not run"):
        await driver.kill_broker(1)
    await driver.start_broker(1)
    await state_is(driver, 1, RUNNING)


async def test_a_paused_broker_stands_still_and_hears_nothing_until_it_is_resumed(driver: Any) -> None:
    able(driver, CanPause)
    await driver.pause_broker(0, at_most_s=60)
    assert (await driver.status()).broker(0).state == PAUSED
    with pytest.raises(DeadlineError, match=r"still runs 0\.1 s after SIGTERM"):
        await driver.stop_broker(0, timeout_s=0.1)
    assert (await driver.status()).broker(0).state == PAUSED
    await driver.resume_broker(0)
    await state_is(driver, 0, STOPPED)
    await driver.start_broker(0)


async def test_a_paused_broker_that_is_killed_is_gone(driver: Any) -> None:
    able(driver, CanPause)
    able(driver, CanKill)
    await driver.pause_broker(0, at_most_s=60)
    await driver.kill_broker(0)
    assert (await driver.status()).broker(0).state == STOPPED
    await driver.start_broker(0)


async def test_a_pause_ends_by_itself(driver: Any) -> None:
    able(driver, CanPause)
    await driver.pause_broker(0, at_most_s=0.5)
    await state_is(driver, 0, RUNNING)


async def test_a_second_pause_counts_from_its_own_beginning(driver: Any) -> None:
    able(driver, CanPause)
    await driver.pause_broker(0, at_most_s=60)
    await driver.pause_broker(0, at_most_s=0.5)
    await state_is(driver, 0, RUNNING)
    await driver.resume_broker(0)
    assert (await driver.status()).broker(0).state == RUNNING


async def test_an_unknown_broker_is_named_with_those_there_are(driver: ClusterDriver) -> None:
    with pytest.raises(ClusterError, match="no broker 7; there are: 0, 1, 2"):
        await driver.stop_broker(7, timeout_s=1)


async def test_a_second_cluster_in_the_same_folder_is_refused_and_the_first_stays(driver: ClusterDriver) -> None:
    with pytest.raises(ClusterError):
        await driver.start(ClusterRequest(brokers=1, properties={}))
    assert {broker.state for broker in (await driver.status()).brokers} == {RUNNING}


async def test_a_client_that_ends_when_asked_has_its_exit_status(driver: Any, tmp_path: Path) -> None:
    able(driver, CanRunClients)
    await driver.start_client("polite", POLITE, tmp_path / "log")
    await ready(tmp_path / "log")
    assert await driver.stop_client("polite", timeout_s=LONGEST_S) == 3
    assert await driver.stop_client("polite", timeout_s=LONGEST_S) == 3


async def test_a_client_that_does_not_end_is_killed(driver: Any, tmp_path: Path) -> None:
    able(driver, CanRunClients)
    await driver.start_client("stubborn", STUBBORN, tmp_path / "log")
    await ready(tmp_path / "log")
    assert await driver.stop_client("stubborn", timeout_s=0.1) is None

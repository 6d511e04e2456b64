# ruff: noqa: ASYNC240 - small local files are what is tested
"""What the process driver does beside what every driver must (`test_conformance.py`)."""

import asyncio
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cluster.capabilities import Direction, Side
from harness.cluster.clocks import read_clocks
from harness.cluster.driver import CLOCK, OVER_LINKS, ClusterRequest
from harness.cluster.processes.driver import ProcessDriver
from harness.errors import ClusterError
from harness.experiment.drive import create_topics
from harness.experiment.topics import TopicAdmin
from harness.scenario.model import TopicSpec
from harness.system.pids import ProcessIdentity, identify, read_pid_file, state_of
from harness.system.tail import whole_lines
from harness.system.waiting import until
from harness.zookeeper.kazoo_view import KazooView
from tests.cluster.test_faketime import needs_faketime

pytestmark = pytest.mark.cluster

REQUEST = ClusterRequest(brokers=3, properties={"zookeeper.session.timeout.ms": "1000"})
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
NEARLY_S = 1.0
"""Between two looks at clocks, one after the other, a busy machine may do something else."""


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[ProcessDriver]:
    """The driver of a cluster of this test's own, not started."""
    driver = ProcessDriver(tmp_path, "alone")
    yield driver
    await driver.stop()
    assert await driver.residue() == []


def pids_of(root: Path) -> dict[str, ProcessIdentity]:
    identities = {path.stem: read_pid_file(path) for path in (root / "cluster" / "pids").glob("*.pid")}
    return {name: identity for name, identity in identities.items() if identity is not None}


async def gone(processes: dict[str, ProcessIdentity]) -> None:
    async def alive() -> list[str]:
        return [name for name, process in processes.items() if process.alive()]

    await until(alive, lambda names: not names, what="end of all processes", timeout_s=120, every_s=0.01)


async def ready(log: Path) -> None:
    async def text() -> str:
        return log.read_text()

    await until(text, lambda seen: "ready" in seen, what="the client's first line", timeout_s=120, every_s=0.02)


async def test_every_process_has_a_pid_file_and_stopping_ends_each_though_one_is_frozen(
    alone: ProcessDriver, tmp_path: Path
) -> None:
    await alone.start(REQUEST)
    await alone.start_client("client", SLEEP, tmp_path / "client.log")
    await alone.pause_broker(1, at_most_s=60)
    processes = pids_of(tmp_path)
    frozen = state_of(processes["broker-1"].pid)
    assert frozen is not None
    assert frozen.state == "T"
    assert set(processes) == {"supervisor", "zookeeper-1", "broker-0", "broker-1", "broker-2", "client-client"}
    assert len(await alone.residue()) == len(processes) + 7 + 1

    await alone.stop()
    await gone(processes)


async def test_what_a_killed_supervisor_leaves_is_nothing_and_stop_knows_it(
    alone: ProcessDriver, tmp_path: Path
) -> None:
    await alone.start(ClusterRequest(brokers=1, properties={}, needs=OVER_LINKS))
    await alone.isolate(0, (Side.ZOOKEEPER,), Direction.BOTH, at_most_s=60)
    processes = pids_of(tmp_path)
    assert "relay" in processes
    processes["supervisor"].send(signal.SIGKILL)
    await gone(processes)

    async def left() -> list[str]:
        return [sentence.rpartition("/")[2] for sentence in await alone.residue()]

    # The first thread of a JVM may be gone before its last one closes the sockets.
    sockets = ["probes.sock still exists", "relay.sock still exists", "supervisor.sock still exists"]
    await until(left, lambda sentences: sentences == sockets, what="nothing but sockets left", timeout_s=120)
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


async def test_a_relay_that_has_ended_is_told_and_its_powers_say_who_does_not_answer(
    alone: ProcessDriver, tmp_path: Path
) -> None:
    assert (await alone.start(ClusterRequest(brokers=1, properties={}, needs=OVER_LINKS))).severed == ""
    pids_of(tmp_path)["relay"].send(signal.SIGKILL)

    async def severed() -> str:
        return (await alone.status()).severed

    await until(severed, lambda seen: "the relay ended" in seen, what="word of its end", timeout_s=120, every_s=0.02)
    with pytest.raises(ClusterError, match=r"no process answers at relay\.sock"):
        await alone.isolate(0, (Side.ZOOKEEPER,), Direction.BOTH, at_most_s=60)


async def test_a_connection_to_a_peer_address_by_no_broker_is_a_strangers(alone: ProcessDriver) -> None:
    status = await alone.start(ClusterRequest(brokers=1, properties={}, needs=OVER_LINKS))
    assert await alone.strangers() == set()
    _, writer = await asyncio.open_connection(*status.broker(0).peer_address.split(":"))
    await until(alone.strangers, lambda seen: len(seen) == 1, what="the stranger", timeout_s=120, every_s=0.02)
    writer.close()


async def test_a_relay_that_does_not_start_is_the_reason_why_the_cluster_does_not(
    alone: ProcessDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.cluster.processes.driver.save", lambda *_: None)
    with pytest.raises(ClusterError, match="relay ended with status 1"):
        await alone.start(ClusterRequest(brokers=1, properties={}, needs=OVER_LINKS))


async def test_stop_works_when_zookeeper_and_a_broker_are_dead_already(alone: ProcessDriver, tmp_path: Path) -> None:
    await alone.start(ClusterRequest(brokers=2, properties={}))
    processes = pids_of(tmp_path)
    for name in ("zookeeper-1", "broker-0"):
        processes[name].send(signal.SIGKILL)
    await alone.stop()
    await gone(processes)


async def test_a_cluster_can_be_started_again_with_its_data(alone: ProcessDriver) -> None:
    first = await alone.start(ClusterRequest(brokers=1, properties={}))
    async with KazooView(first.zookeeper_connect) as view:
        epoch = (await view.controller()).controller_epoch
    await alone.stop()
    second = await alone.start(ClusterRequest(brokers=1, properties={}))
    async with KazooView(second.zookeeper_connect) as view:
        assert (await view.controller()).controller_epoch > epoch


async def test_without_java_nothing_is_left_and_the_message_says_what_is_needed(
    alone: ProcessDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", os.fspath(Path(sys.executable).parent))
    assert shutil.which("java") is None
    with pytest.raises(ClusterError, match="no java in PATH"):
        await alone.start(ClusterRequest(brokers=1, properties={}))


async def test_links_of_a_cluster_without_a_relay_cannot_be_disturbed(alone: ProcessDriver) -> None:
    await alone.start(ClusterRequest(brokers=1, properties={}))
    with pytest.raises(ClusterError, match="links cannot be disturbed: this cluster was started without a relay"):
        await alone.isolate(0, tuple(Side), Direction.BOTH, at_most_s=60)


async def written(driver: ProcessDriver, topic: str) -> list[float]:
    """Make a topic, and return how many seconds each broker's wall clock is ahead by what it logged of that."""
    status = await driver.status()
    ends = [broker.state_change_log.stat().st_size for broker in status.brokers]
    spec = TopicSpec(name=topic, partitions=1, replication_factor=len(status.brokers))
    await create_topics(TopicAdmin(status.bootstrap_servers).create, [spec])

    def ahead_s(log: Path, end: int) -> float | None:
        lines = list(map(json.loads, whole_lines(log, end).splitlines()))
        own_ns = lines[-1]["ts"] - lines[-1]["mono"] if lines else None
        return None if own_ns is None else (own_ns - time.time_ns() + time.monotonic_ns()) / 1e9

    async def look() -> list[float | None]:
        return [ahead_s(broker.state_change_log, end) for broker, end in zip(status.brokers, ends, strict=True)]

    seen = await until(look, lambda each: None not in each, what="a line of each broker", timeout_s=120)
    return [each for each in seen if each is not None]


@needs_faketime
async def test_a_clock_is_set_for_later_processes_too_and_ends_by_itself(alone: ProcessDriver) -> None:
    await alone.start(replace(REQUEST, brokers=2, needs=frozenset({CLOCK})))
    assert await written(alone, "before") == pytest.approx([0, 0], abs=NEARLY_S)

    await alone.set_clock(1, step_s=-3600, rate=1, at_most_s=300)
    assert await written(alone, "set") == pytest.approx([0, -3600], abs=NEARLY_S)
    await alone.kill_broker(1)
    await alone.start_broker(1)
    assert await written(alone, "started-again") == pytest.approx([0, -3600], abs=NEARLY_S)
    await alone.reset_clock(1)
    await alone.reset_clock(1)
    assert await written(alone, "reset") == pytest.approx([0, 0], abs=NEARLY_S)

    await alone.set_clock(0, step_s=0, rate=2, at_most_s=300)
    await alone.kill_broker(0)
    await alone.start_broker(0)
    assert (await written(alone, "fast"))[0] > 0.5, "the drift is that since it was set, not since the start"
    await alone.set_clock(0, step_s=60, rate=1, at_most_s=0.1)
    events = (await alone.status()).broker(0).clock_log
    assert events is not None

    async def over() -> bool:
        last = read_clocks(events, "broker-0")[-1]
        return last.step_s == 0 and last.since_ns < time.monotonic_ns()

    await until(over, bool, what="end of the clock's setting", timeout_s=120)
    assert await written(alone, "over") == pytest.approx([0, 0], abs=NEARLY_S)


async def test_no_clock_is_set_where_brokers_were_not_started_for_it(alone: ProcessDriver) -> None:
    status = await alone.start(replace(REQUEST, brokers=1))
    assert status.broker(0).clock_log is None
    with pytest.raises(ClusterError, match="no clock can be set: this cluster was started without libfaketime"):
        await alone.set_clock(0, step_s=60, rate=1, at_most_s=1)
    with pytest.raises(ClusterError, match="started without libfaketime"):
        await alone.reset_clock(0)

"""What real brokers find on their disks after a power loss and after damage, and what a disk of their own leaves."""
# ruff: noqa: ASYNC240 - small local files only

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from harness.cluster.disks import small_disks
from harness.cluster.disks.damage import Damage, What
from harness.cluster.driver import DISK_SPACE, POWER, ClusterRequest
from harness.cluster.processes.driver import ProcessDriver
from harness.contracts.state_changes import LogFiles
from harness.errors import ClusterError
from harness.experiment.drive import create_topics
from harness.experiment.topics import TopicAdmin
from harness.scenario.model import TopicSpec
from harness.system.pids import read_pid_file
from harness.system.waiting import until

pytestmark = pytest.mark.cluster
needs_disks = pytest.mark.skipif(bool(small_disks.lacking()), reason=small_disks.lacking())
QUICK = {"zookeeper.session.timeout.ms": "1500", "offsets.topic.num.partitions": "1"}
ENOUGH_S = 120
RECORDS = 5


@pytest.fixture
async def driver(tmp_path: Path) -> AsyncIterator[ProcessDriver]:
    driver = ProcessDriver(tmp_path, "run")
    yield driver
    await driver.stop()
    assert await driver.residue() == []


async def write(driver: ProcessDriver) -> None:
    """Write a record after the other to a topic that the one broker has."""
    status = await driver.status()
    spec = TopicSpec(name="orders", partitions=1, replication_factor=1)
    await create_topics(TopicAdmin(status.bootstrap_servers).create, [spec])

    def send() -> None:
        producer = Producer({"bootstrap.servers": status.bootstrap_servers, "linger.ms": 0})
        for _ in range(RECORDS):
            producer.produce("orders", b"value")
            assert producer.flush(120) == 0

    await asyncio.to_thread(send)


async def opened(driver: ProcessDriver) -> list[tuple[int, int]]:
    """Start the broker and return where it found the end of the log, and how much it dropped."""
    logs = LogFiles(driver)
    position = await logs.end_of(0)
    await driver.start_broker(0)
    lines, _ = await logs.after(0, position, "recovery")
    return [(line["log_end_offset"], line["truncated_bytes"]) for line in lines if line["topic"] == "orders"]


def segment(driver: ProcessDriver) -> str:
    return "orders-0/00000000000000000000.log"


async def test_a_power_loss_takes_what_was_not_synced_and_no_more(driver: ProcessDriver) -> None:
    await driver.start(ClusterRequest(brokers=1, properties=QUICK, needs=frozenset({POWER})))
    await write(driver)
    before = await driver.bytes_on_disk(0)
    await driver.cut_power(0, torn=False)
    assert (await driver.files(0))[segment(driver)].startswith("0 bytes")
    assert await driver.bytes_on_disk(0) < before
    assert await opened(driver) == [(0, 0)]

    await write(driver)
    await driver.stop_broker(0, timeout_s=ENOUGH_S)
    await driver.start_broker(0)
    await driver.cut_power(0, torn=True)
    assert await opened(driver) == [(RECORDS, 0)], "a clean stop syncs"


async def test_without_a_log_of_syncs_no_power_can_be_cut(driver: ProcessDriver) -> None:
    await driver.start(ClusterRequest(brokers=1, properties=QUICK))
    with pytest.raises(ClusterError, match="syncs are not recorded"):
        await driver.cut_power(0, torn=False)
    assert (await driver.status()).broker(0).state == "running"


async def test_a_broker_drops_what_is_damaged_and_makes_what_is_gone(driver: ProcessDriver) -> None:
    await driver.start(ClusterRequest(brokers=1, properties=QUICK))
    await write(driver)
    with pytest.raises(ClusterError, match="broker 0 runs"):
        await driver.damage_disk(0, Damage(what=What.TAIL))
    await driver.kill_broker(0)
    await driver.damage_disk(0, Damage(what=What.TAIL, log="orders-0"))
    ((end, dropped),) = await opened(driver)
    assert end == RECORDS - 1
    assert dropped > 0
    await driver.kill_broker(0)
    await driver.damage_disk(0, Damage(what=What.DISK))
    assert await driver.files(0) == {}
    assert await opened(driver) == []


async def failed(driver: ProcessDriver, position: int) -> None:
    """Wait until the broker has met its full disk."""
    logs = LogFiles(driver)

    async def lines() -> list[dict[str, Any]]:
        return (await logs.after(0, position, "log_dir_failure"))[0]

    await until(lines, bool, what="an error of the disk", timeout_s=ENOUGH_S)


@needs_disks
async def test_a_full_disk_fails_and_is_as_before_when_it_has_space_again(driver: ProcessDriver) -> None:
    status = await driver.start(ClusterRequest(brokers=1, properties=QUICK, needs=frozenset({DISK_SPACE})))
    await write(driver)
    logs = LogFiles(driver)
    position = await logs.end_of(0)
    assert not await driver.disk_is_full(0)
    await driver.fill_disk(0, at_most_s=ENOUGH_S)

    async def full() -> bool:
        return await driver.disk_is_full(0)

    await until(full, bool, what="a full disk", timeout_s=ENOUGH_S)
    producer = Producer({"bootstrap.servers": status.bootstrap_servers, "linger.ms": 0})
    producer.produce("orders", bytes(20_000))
    producer.poll(0)
    await failed(driver, position)
    await driver.free_disk(0)
    await driver.free_disk(0)
    assert not await driver.disk_is_full(0)
    if (await driver.status()).broker(0).state != "stopped":
        await driver.kill_broker(0)
    ((end, _),) = await opened(driver)
    assert end == RECORDS
    producer.purge()

    folder = status.broker(0).log_dir
    assert list(folder.iterdir()) == [], "no other process sees it"
    assert await driver.copy_data() == []
    assert (folder / segment(driver)).stat().st_size > 0


@needs_disks
async def test_a_disk_of_ones_own_goes_with_a_supervisor_that_is_killed(driver: ProcessDriver, tmp_path: Path) -> None:
    await driver.start(ClusterRequest(brokers=1, properties=QUICK, needs=frozenset({DISK_SPACE})))
    await driver.fill_disk(0, at_most_s=ENOUGH_S)
    supervisor = read_pid_file(tmp_path / "cluster" / "pids" / "supervisor.pid")
    assert supervisor is not None
    supervisor.send(signal.SIGKILL)

    async def left() -> list[str]:
        return [sentence for sentence in await driver.residue() if "socket" not in sentence]

    await until(left, lambda sentences: not sentences, what="nothing left", timeout_s=ENOUGH_S, every_s=0.05)
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    (sentence,) = await driver.copy_data()
    assert "the supervisor is gone" in sentence


@needs_disks
async def test_only_a_cluster_with_disks_of_its_own_can_have_a_full_one(driver: ProcessDriver) -> None:
    await driver.start(ClusterRequest(brokers=1, properties=QUICK))
    with pytest.raises(ClusterError, match="without disks of its own"):
        await driver.fill_disk(0, at_most_s=1)

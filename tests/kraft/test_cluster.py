"""A real cluster without ZooKeeper, of three processes that are brokers and controllers."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster.driver import ClusterRequest
from harness.cluster.processes.driver import ProcessDriver
from harness.cluster.readiness import view_of
from harness.cluster.systems.system import system_named
from harness.kraft.metadata_log import read_quorum_log
from harness.kraft.observer import QuorumObserver
from harness.kraft.view import QuorumView
from harness.store.history import read_jsonl
from harness.system.waiting import until

KRAFT = "kafka:4.4.0"
LACKING = system_named(KRAFT).lacks()
pytestmark = [pytest.mark.cluster, pytest.mark.skipif(bool(LACKING), reason=LACKING)]
TIMEOUT_S = 120.0


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessDriver]:
    """The driver of a cluster that tests share; each leaves all three brokers running."""
    driver = ProcessDriver(tmp_path_factory.mktemp("run"), "run")
    asyncio.run(driver.start(ClusterRequest(brokers=3, properties={}, system=KRAFT)))
    yield driver
    asyncio.run(driver.stop())
    assert asyncio.run(driver.residue()) == []


async def test_a_started_cluster_has_a_quorum_and_no_zookeeper(driver: ProcessDriver) -> None:
    status = await driver.status()
    assert (status.zookeeper, status.zookeeper_connect, status.has_metadata) == ((), "", True)
    assert set(status.controllers) == {0, 1, 2}
    assert status.as_dict()["zookeeper_pid"] is None
    async with view_of(status.zookeeper_connect, status.controllers) as view:
        assert set(await view.registrations()) == {0, 1, 2}
        assert (await view.controller()).broker_id in {0, 1, 2}


async def test_when_the_leader_of_the_quorum_dies_another_one_leads_and_it_comes_back(driver: ProcessDriver) -> None:
    async with QuorumView((await driver.status()).controllers) as view:
        before, registered = await view.controller(), await view.registrations()
        await driver.kill_broker(before.broker_id)
        after = await until(
            view.controller,
            lambda seen: seen.broker_id not in (-1, before.broker_id),
            what="another leader",
            timeout_s=TIMEOUT_S,
        )
        assert after.controller_epoch > before.controller_epoch
        await until(
            view.registrations, lambda seen: before.broker_id not in seen, what="it is missed", timeout_s=TIMEOUT_S
        )
        await driver.start_broker(before.broker_id)
        again = (await view.registrations())[before.broker_id]
        assert again.czxid > registered[before.broker_id].czxid
        assert again.session != registered[before.broker_id].session


async def test_a_broker_that_is_asked_to_stop_is_let_go(driver: ProcessDriver) -> None:
    await driver.stop_broker(2, timeout_s=TIMEOUT_S)
    broker = (await driver.status()).broker(2)
    system = system_named(KRAFT)
    stops = system.state_changes(system.event_log(broker).read_bytes(), ["broker_stop"])
    assert [stop["controlled"] for stop in stops][-1:] == [True]
    await driver.start_broker(2)


async def test_what_is_asked_for_is_seen_live_and_in_the_log(driver: ProcessDriver, tmp_path: Path) -> None:
    status = await driver.status()
    observer = QuorumObserver(status.controllers, tmp_path / "seen.jsonl")
    await observer.start()
    async with QuorumView(status.controllers) as view:
        assert await view.create_topic("moved", {0: [0, 1]})
        assert not await view.create_topic("moved", {0: [0, 1]})
        assert await view.remnants("moved") == ["topic moved"]
        assert "moved" in await view.topics()
        assert await view.reassign("moved", 0, [2, 1])

        async def assignment() -> list[tuple[int, ...]]:
            return [each.assignment for each in await view.partitions() if each.topic == "moved"]

        await until(assignment, lambda seen: seen == [(2, 1)], what="the move", timeout_s=TIMEOUT_S)
        assert not await view.reassigning()
        await view.delete_topic("moved")
        await view.delete_topic("moved")
        assert await view.remnants("moved") == []

    def seen() -> set[tuple[int, str, str]]:
        lines = (line for line in read_jsonl(tmp_path / "seen.jsonl") if "path" in line)
        return {(line["zxid"], line["path"], line["type"]) for line in lines if "moved" in line["path"]}

    async def all_seen() -> bool:
        return any(type_ == "delete" for _, path, type_ in seen() if path == "/config/topics/moved")

    await until(all_seen, bool, what="the deletion in the observer's file", timeout_s=TIMEOUT_S)
    await observer.stop()
    log = read_quorum_log([status.broker(broker_id).log_dir for broker_id in status.controllers])
    assert log.damage == []
    assert {(each.zxid, each.path, each.type) for each in log.changes if "moved" in each.path} == seen()

"""Time that disks and processors take: what is seen meanwhile, and what is left when it is interrupted."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from harness.scenario.model import Latencies
from harness.simulation.cluster import SimulatedCluster
from harness.simulation.disk import MemoryStorage
from harness.simulation.latencies import LONGEST_ZOOKEEPER_S, STUCK_S, zookeeper_messages
from harness.simulation.loop import START_S, run, simulated_loop

SYNC_S = 0.5


def slow_disk() -> MemoryStorage:
    storage = MemoryStorage(sync_s=lambda: SYNC_S, read_s=lambda: SYNC_S)
    storage.replace("a", b"old")
    return storage


async def _nothing(storage: MemoryStorage) -> None:
    await asyncio.sleep(2 * SYNC_S)


async def _power_loss_before(storage: MemoryStorage) -> None:
    await asyncio.sleep(SYNC_S / 2)
    storage.lose_power()


async def _power_loss_after(storage: MemoryStorage) -> None:
    await asyncio.sleep(2 * SYNC_S)
    storage.lose_power()


async def _another_sync_and_power_loss(storage: MemoryStorage) -> None:
    storage.open_append("b").sync()
    storage.lose_power()


async def _death_of_the_process(storage: MemoryStorage) -> None:
    storage.abandon()
    await asyncio.sleep(2 * SYNC_S)


async def _replaced(storage: MemoryStorage) -> None:
    storage.replace("a", b"newer")


async def _removed(storage: MemoryStorage) -> None:
    storage.remove("a")


async def _moved(storage: MemoryStorage) -> None:
    storage.move("a", "b")


@pytest.mark.parametrize(
    ("meanwhile", "left", "in_place"),
    [
        pytest.param(_nothing, {"a": b"new"}, True, id="it is in place in the end"),
        pytest.param(_power_loss_before, {"a": b"old"}, False, id="a power loss before leaves the old one"),
        pytest.param(_power_loss_after, {"a": b"new"}, True, id="a power loss after leaves the new one"),
        pytest.param(_another_sync_and_power_loss, {"a": b"old"}, False, id="another sync does not put it in place"),
        pytest.param(_death_of_the_process, {"a": b"old"}, False, id="a dying process puts nothing in place"),
        pytest.param(_replaced, {"a": b"newer"}, False, id="what replaces it comes after it"),
        pytest.param(_removed, {}, False, id="what removes it comes after it"),
        pytest.param(_moved, {"b": b"old"}, False, id="what moves the file moves the old one"),
    ],
)
def test_a_file_is_replaced_off_the_loop(
    meanwhile: Callable[[MemoryStorage], Awaitable[None]], left: dict[str, bytes], in_place: bool
) -> None:
    async def work() -> None:
        storage = slow_disk()
        putting = asyncio.ensure_future(storage.replace_off_loop("a", b"new"))
        await asyncio.sleep(0)
        assert storage.read("a") == b"new", "it is seen at once"
        await meanwhile(storage)
        assert await putting is in_place
        assert {path: bytes(file.data) for path, file in storage.files.items() if file.data} == left

    run(work())


@pytest.mark.parametrize(
    ("then", "left"),
    [
        pytest.param(lambda file: None, b"first", id="what was written before is synced"),
        pytest.param(lambda file: file.append(b" second"), b"first", id="what is written meanwhile is not"),
        pytest.param(lambda file: file.truncate(0), b"", id="nothing is, if it was cut off meanwhile"),
    ],
)
def test_a_file_is_synced_off_the_loop(then: Callable[[object], None], left: bytes) -> None:
    async def work() -> None:
        storage = slow_disk()
        file = storage.open_append("log")
        file.append(b"first")
        syncing = asyncio.ensure_future(file.sync_off_loop())
        await asyncio.sleep(SYNC_S / 2)
        then(file)
        await syncing
        storage.lose_power()
        assert storage.read("log") == left

    run(work())


def test_a_read_off_the_loop_takes_its_time() -> None:
    async def work() -> float:
        await slow_disk().ready()
        return simulated_loop().time() - START_S

    assert run(work()) == SYNC_S


def test_a_broker_that_syncs_or_computes_does_nothing_else_and_is_not_paused() -> None:
    async def work() -> None:
        cluster = SimulatedCluster(range(1), seed=1, latencies=Latencies(stall_ms=200, slow_brokers=[0]))
        broker = cluster[0]
        await broker.start()
        stood_still = set()
        for _ in range(2000):
            await asyncio.sleep(0.01)
            life = broker._life
            assert life is not None
            stood_still.add(life.process.frozen)
            assert broker.state == "running"
        assert stood_still == {True, False}
        broker.pause()
        await asyncio.sleep(60)
        assert broker.state == "paused"
        assert broker._life is not None
        assert broker._life.process.frozen, "no stall ends a pause"
        broker.resume()
        await asyncio.sleep(3)
        assert broker.state == "running"

    run(work())


def test_operations_take_time_as_the_seed_says() -> None:
    def seconds(latencies: Latencies, seed: int) -> float:
        async def start() -> float:
            await SimulatedCluster(range(1), seed=seed, latencies=latencies)[0].start()
            return simulated_loop().time() - START_S

        return run(start())

    slow = Latencies(zookeeper_ms=40, sync_ms=20)
    assert seconds(slow, 1) == seconds(slow, 1) > 3 * seconds(Latencies(), 1)
    assert seconds(slow, 1) != seconds(slow, 2)


def test_messages_of_clients_of_zookeeper_are_stuck_now_and_then_and_those_between_its_servers_never() -> None:
    extra_s = zookeeper_messages(Latencies(zookeeper_ms=20), random.Random(1))
    assert extra_s is not None
    of_client = [extra_s(("broker-0", "zookeeper-1")) for _ in range(5000)]
    between_servers = [extra_s(("zookeeper-1", "zookeeper-2")) for _ in range(5000)]
    assert 0 < sum(each > LONGEST_ZOOKEEPER_S for each in of_client) < 100
    assert max(of_client) <= STUCK_S
    assert 0 < max(between_servers) <= LONGEST_ZOOKEEPER_S
    assert extra_s(("broker-0", "broker-1")) == 0

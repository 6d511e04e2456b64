"""What has outlived its time-out in a broker, and for so long that nothing explains it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from harness.broker.metrics.overdue import Overdue
from harness.broker.replicas.purgatory import Purgatory
from tests.broker.transactions.coordinating import ID, TIMEOUT_MS, Coordinating


class Never:
    """An operation that does not complete."""

    def try_complete(self, changed: object) -> bool:
        return False


def looking(here: Coordinating) -> tuple[Overdue, Any]:
    replicas: Any = SimpleNamespace(appends=Purgatory(), fetches=Purgatory(), deletions=Purgatory(), lag_s=10.0)
    replicas.counters, replicas.all = SimpleNamespace(failed_isr_updates=0), list
    overdue = Overdue(replicas=replicas, transactions=here.coordinator, wall_ms=lambda: here.now_ms, abort_every_s=10.0)
    return overdue, replicas


async def looks(overdue: Overdue, seconds: int) -> list[list[str]]:
    """Return what is overdue, every two seconds for so long."""
    seen = []
    for _ in range(seconds // 2):
        seen.append(overdue.now())
        await asyncio.sleep(2)
    return seen


async def test_a_transaction_that_nothing_aborts_is_overdue_after_two_rounds() -> None:
    here = Coordinating()
    await here.lead()
    await here.begin(0)
    overdue, _ = looking(here)
    assert not any(await looks(overdue, 60))
    here.now_ms += TIMEOUT_MS + 1
    assert await looks(overdue, 28) == [[]] * 13 + [[f"transaction {ID}"]]
    await asyncio.sleep(20)
    assert overdue.now() == [], "the broker was paused meanwhile"
    here.coordinator.transactions()[0].fence_failed = True
    assert not any(await looks(overdue, 60)), "its abort could not be stored"
    await here.coordinator.stop()


async def test_a_request_that_waits_past_its_deadline_is_overdue() -> None:
    here = Coordinating()
    await here.lead()
    overdue, replicas = looking(here)
    waiting = asyncio.create_task(replicas.fetches.wait(Never(), [("t", 0)], 30))
    assert not any(await looks(overdue, 20))
    next(iter(replicas.fetches._parked.values())).deadline_s = 0.0
    assert (await looks(overdue, 10))[-1] == ["fetch requests"]
    assert await waiting is False
    await here.coordinator.stop()


def partition(**other: Any) -> Any:
    """A partition with 100 records that is led here; broker 2 has all of them, and broker 3 has 40."""
    followers = {2: SimpleNamespace(log_end_offset=100), 3: SimpleNamespace(log_end_offset=40)}
    here = {"key": ("t", 0), "is_leader": True, "leader_epoch": 1, "zk_version": 1, "isr": (1, 2, 3)}
    log = SimpleNamespace(log_end_offset=100)
    return SimpleNamespace(**{**here, "proposed_isr": (), "followers": followers, "log": log} | other)


@pytest.mark.parametrize(
    ("other", "behind"),
    [
        pytest.param({}, ["t-0 in the ISR: broker 3"], id="it stays in the ISR"),
        pytest.param({"isr": (1, 2)}, [], id="it has left the ISR"),
        pytest.param({"proposed_isr": (1, 2)}, [], id="its removal is being written"),
        pytest.param({"is_leader": False}, [], id="the lead is lost"),
    ],
)
async def test_a_follower_that_lags_is_overdue(other: dict[str, Any], behind: list[str]) -> None:
    overdue, replicas = looking(Coordinating())
    led = partition(**other)
    replicas.all = lambda: [led]
    assert await looks(overdue, 40) == [[]] * 12 + [behind] * 8
    replicas.counters.failed_isr_updates += 1
    assert await looks(overdue, 24) == [[]] * 12, "its removal was refused"
    led.zk_version += 1
    assert await looks(overdue, 24) == [[]] * 12, "it has left the ISR and come back"
    await asyncio.sleep(20)
    assert await looks(overdue, 24) == [[]] * 12, "the broker was paused meanwhile"


async def test_a_follower_that_goes_on_at_the_pace_of_its_leader_is_not_overdue() -> None:
    overdue, replicas = looking(Coordinating())
    led = partition()
    replicas.all = lambda: [led]
    for _ in range(30):
        assert overdue.now() == []
        led.log.log_end_offset += 10
        led.followers[2].log_end_offset += 10
        led.followers[3].log_end_offset += 10
        await asyncio.sleep(2)
    led.leader_epoch += 1
    led.followers[3].log_end_offset = -1
    assert await looks(overdue, 26) == [[]] * 12 + [["t-0 in the ISR: broker 3"]]

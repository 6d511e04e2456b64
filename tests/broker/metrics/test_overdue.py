"""What has outlived its time-out in a broker, and for so long that nothing explains it."""

import asyncio
from types import SimpleNamespace
from typing import Any

from harness.broker.metrics.overdue import Overdue
from harness.broker.replicas.purgatory import Purgatory
from tests.broker.transactions.coordinating import ID, TIMEOUT_MS, Coordinating


class Never:
    """An operation that does not complete."""

    def try_complete(self, changed: object) -> bool:
        return False


def looking(here: Coordinating) -> tuple[Overdue, Any]:
    replicas: Any = SimpleNamespace(appends=Purgatory(), fetches=Purgatory(), deletions=Purgatory())
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

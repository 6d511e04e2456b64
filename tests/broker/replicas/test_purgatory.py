import asyncio
from dataclasses import dataclass, field

import pytest

from harness.broker.replicas.purgatory import Purgatory


@dataclass
class Counted:
    """Done at the nth try."""

    needed: int
    tries: list[str] = field(default_factory=list)

    def try_complete(self, changed: str) -> bool:
        self.tries.append(changed)
        return len(self.tries) >= self.needed


async def test_an_operation_is_tried_at_every_check_of_its_keys_until_it_is_done() -> None:
    purgatory: Purgatory[str] = Purgatory()
    operation = Counted(needed=2)
    waiting = asyncio.create_task(purgatory.wait(operation, ["a", "b", "a"], 10))
    await asyncio.sleep(0)
    assert [purgatory.check(key) for key in ("c", "a", "b", "a")] == [0, 0, 1, 0]
    assert operation.tries == ["a", "b"]
    assert await waiting is True
    assert len(purgatory) == 0


async def test_time_out_ends_the_wait_and_forgets_the_operation() -> None:
    purgatory: Purgatory[str] = Purgatory()
    loop = asyncio.get_running_loop()
    began = loop.time()
    operation = Counted(needed=1)
    assert await purgatory.wait(operation, ["a"], 5) is False
    assert loop.time() - began == pytest.approx(5)
    assert purgatory.check("a") == 0
    assert operation.tries == []


async def test_no_time_means_no_wait() -> None:
    purgatory: Purgatory[str] = Purgatory()
    assert await purgatory.wait(Counted(needed=1), ["a"], 0) is False
    assert len(purgatory) == 0


async def test_done_in_the_very_step_of_the_time_out_is_done() -> None:
    purgatory: Purgatory[str] = Purgatory()
    waiting = asyncio.create_task(purgatory.wait(Counted(needed=1), ["a"], 5))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(5, purgatory.check, "a")
    assert await waiting is True


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    purgatory: Purgatory[str] = Purgatory()
    operation = Counted(needed=1)
    waiting = asyncio.create_task(purgatory.wait(operation, ["a"], 5))
    await asyncio.sleep(0)
    waiting.cancel()
    assert purgatory.check("a") == 1  # between cancel and the task noticing it
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
    assert len(purgatory) == 0


async def test_one_check_completes_all_who_wait_for_the_key() -> None:
    purgatory: Purgatory[str] = Purgatory()
    waiting = [asyncio.create_task(purgatory.wait(Counted(needed=1), ["a", str(i)], 5)) for i in range(3)]
    await asyncio.sleep(0)
    assert purgatory.check("1") == 1
    assert purgatory.check("a") == 2
    assert await asyncio.gather(*waiting) == [True, True, True]

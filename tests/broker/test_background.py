"""Work that is done again and again, and long work that is cut: the loop is free meanwhile."""

import asyncio

import pytest

from harness.broker import background
from harness.broker.background import InSteps, every, sliced
from harness.broker.zookeeper.pipeline import all_of
from harness.simulation.loop import run


@pytest.mark.parametrize(
    ("at_once", "instants"),
    [
        pytest.param(False, [1005.0, 1010.0], id="after a pause"),
        pytest.param(True, [1000.0, 1005.0, 1010.0], id="at once"),
    ],
)
def test_a_round_that_fails_is_told_and_the_next_one_comes(
    caplog: pytest.LogCaptureFixture, *, at_once: bool, instants: list[float]
) -> None:
    rounds: list[float] = []

    async def work() -> None:
        rounds.append(asyncio.get_running_loop().time())
        if len(rounds) == 1:
            raise TypeError("bug")

    async def play() -> None:
        task = asyncio.create_task(every(5, work, name="work", at_once=at_once))
        await asyncio.sleep(11)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(play())
    assert rounds == instants
    assert "work.failed" in caplog.text


@pytest.mark.parametrize(
    ("items", "parts"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([1, 2], [[1, 2]], id="a slice"),
        pytest.param([1, 2, 3], [[1, 2], [3]], id="one more"),
    ],
)
def test_items_are_given_so_many_at_a_time(items: list[int], parts: list[list[int]]) -> None:
    assert list(sliced(items, 2)) == parts


@pytest.mark.parametrize(
    ("count", "turns"),
    [
        pytest.param(2, 0, id="a step has the loop to itself"),
        pytest.param(3, 1, id="the next one begins after others had it"),
        pytest.param(6, 2, id="and so on"),
    ],
)
async def test_others_have_their_turn_between_two_steps(
    count: int, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "DECISIONS_A_STEP", 2)
    delivered: list[int] = []
    others: list[int] = []

    async def other() -> None:
        while True:
            others.append(len(delivered))
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    async for item in InSteps(range(count)):
        delivered += [item]
    task.cancel()
    assert delivered == list(range(count))
    assert others == [2 * turn for turn in range(1, turns + 1)]


async def test_only_so_many_calls_are_on_their_way_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "DECISIONS_A_STEP", 2)
    under_way: set[int] = set()
    most = 0

    async def call(number: int) -> int:
        nonlocal most
        under_way.add(number)
        most = max(most, len(under_way))
        await asyncio.sleep(0)
        under_way.remove(number)
        if number == 1:
            raise ValueError("the second")
        return number

    with pytest.raises(ValueError, match="the second"):
        await all_of(map(call, range(5)))
    assert (most, under_way) == (2, set())
    assert await all_of(map(call, [7, 8, 9])) == [7, 8, 9]

import asyncio

import pytest

from harness.broker.background import every
from harness.simulation.loop import run


def test_a_round_that_fails_is_told_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    rounds: list[float] = []

    async def work() -> None:
        rounds.append(asyncio.get_running_loop().time())
        if len(rounds) == 1:
            raise TypeError("bug")

    async def play() -> None:
        task = asyncio.create_task(every(5, work, name="work"))
        await asyncio.sleep(11)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(play())
    assert rounds == [1005.0, 1010.0]
    assert "work.failed" in caplog.text

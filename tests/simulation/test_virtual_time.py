"""What keeps the tests of these two folders out of real time."""

import asyncio
import time

import pytest


async def test_an_asynchronous_test_has_a_clock_that_jumps() -> None:
    clock = asyncio.get_running_loop().time
    began_s = clock()
    await asyncio.sleep(3_000)
    assert clock() - began_s == 3_000


@pytest.mark.real_time("shows what a test has that says so")
async def test_one_that_says_why_has_a_real_one() -> None:
    assert isinstance(asyncio.get_running_loop(), asyncio.SelectorEventLoop)


def test_sleeping_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match="waits on the real clock"):
        time.sleep(0)


def test_a_loop_on_the_real_clock_fails() -> None:
    loop = asyncio.new_event_loop()
    with pytest.raises(pytest.fail.Exception, match="waits on the real clock"):
        loop.run_forever()
    loop.close()

import asyncio
import signal
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from harness.simulation.loop import LimitReached, Process, SimulatedLoop, SimulationError, Spinning, Stuck, run


def test_minutes_take_no_time_and_end_at_their_instant() -> None:
    async def wait() -> tuple[float, float]:
        clock = asyncio.get_running_loop().time
        began = clock()
        await asyncio.sleep(600)
        return began, clock() - began

    began, took = run(wait())
    assert took == 600
    assert began > 0


def test_callbacks_run_in_the_order_they_were_set_and_timers_of_one_instant_too() -> None:
    seen: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        at = loop.time() + 1
        for number in range(50):
            loop.call_at(at, seen.append, f"timer {number}")
            loop.call_soon(seen.append, f"soon {number}")
        loop.call_at(at, seen.append, "cancelled").cancel()
        await asyncio.sleep(2)

    run(main())
    assert seen == [f"soon {n}" for n in range(50)] + [f"timer {n}" for n in range(50)]


def test_waiting_for_ever_names_who_waits() -> None:
    async def forlorn() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stuck, match="forlorn"):
        run(forlorn())


async def _spin() -> None:
    for _ in count():
        await asyncio.sleep(0)


async def _hurry() -> None:
    for _ in count():
        await asyncio.sleep(0.001)


async def _tick() -> None:
    for _ in count():
        await asyncio.sleep(1)


@pytest.mark.parametrize(
    ("work", "limits", "reason"),
    [
        pytest.param(_spin, {"max_events": 1000}, "more than 1000 events", id="too many events"),
        pytest.param(_spin, {"max_pace": 1000}, "1000 at most are expected", id="no time passes between them"),
        pytest.param(_hurry, {"max_pace": 500, "max_time_s": 60}, "5 s after the start", id="too many for seconds"),
        pytest.param(_tick, {"max_time_s": 60, "max_pace": 10}, "60 s of virtual time: _tick", id="too much time"),
    ],
)
def test_a_run_without_end_is_ended(work: Callable[..., Any], limits: dict[str, Any], reason: str) -> None:
    with pytest.raises(LimitReached, match=reason):
        run(work(), **limits)


def test_a_run_without_end_may_leave_what_there_is() -> None:
    assert run(_hurry(), max_pace=500, ended_early=lambda loop, error: type(error)) is Spinning


async def _burst() -> None:
    for _ in range(4):
        for _ in range(900):
            await asyncio.sleep(0.001)
        await asyncio.sleep(1.1)


def test_a_burst_is_no_spin() -> None:
    run(_burst(), max_pace=500)


def test_a_signal_ends_a_run_when_no_callback_runs() -> None:
    seen: list[str] = []

    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        seen.append("the step goes on")
        await _spin()

    with pytest.raises(KeyboardInterrupt):
        run(main())
    assert seen == ["the step goes on"]


@pytest.mark.parametrize(
    "reach",
    [
        pytest.param(lambda loop: asyncio.to_thread(print), id="a thread"),
        pytest.param(lambda loop: asyncio.open_connection("127.0.0.1", 1), id="a connection"),
        pytest.param(lambda loop: asyncio.start_server(print, port=1), id="a server"),
        pytest.param(lambda loop: asyncio.create_subprocess_exec("true"), id="a process"),
        pytest.param(lambda loop: loop.getaddrinfo("localhost", 1), id="a name"),
        pytest.param(lambda loop: loop.add_reader(0, print), id="a file descriptor"),
        pytest.param(lambda loop: loop.add_signal_handler(signal.SIGTERM, print), id="a signal"),
        pytest.param(lambda loop: loop.call_soon_threadsafe(print), id="another thread's call"),
    ],
)
def test_what_reaches_outside_is_refused(reach: Callable[..., Any]) -> None:
    async def main() -> None:
        await reach(asyncio.get_running_loop())

    with pytest.raises(SimulationError, match="no such thing under virtual time"):
        run(main())


def test_an_error_that_nobody_waits_for_is_kept() -> None:
    async def fails() -> None:
        raise ValueError("lost")

    async def main() -> list[str]:
        task = asyncio.create_task(fails())
        await asyncio.sleep(1)
        del task
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        return loop.complaints

    assert "lost" in "".join(run(main()))


class _Worker:
    """A process that counts seconds, and receives messages."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.process = Process("worker")
        self.seen: list[str] = []
        self.message: asyncio.Future[str] = loop.create_future()
        self.process.call(self._start)

    def _start(self) -> None:
        self.tasks = [self.loop.create_task(self._count()), self.loop.create_task(self._listen())]

    async def _count(self) -> None:
        try:
            for second in range(1, 6):
                await asyncio.sleep(1)
                self.seen.append(f"{second} at {self.loop.time() % 1000:g}")
        finally:
            self.seen.append("counted")

    async def _listen(self) -> None:
        try:
            self.seen.append(f"{await self.message} at {self.loop.time() % 1000:g}")
        finally:
            self.seen.append("listened")


def _worked(story: Callable[[SimulatedLoop, _Worker], Awaitable[None]]) -> list[str]:
    async def main() -> _Worker:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        worker = _Worker(loop)
        await story(loop, worker)
        return worker

    return run(main()).seen


def test_a_frozen_process_does_all_that_was_due_late_and_in_order() -> None:
    async def story(loop: SimulatedLoop, worker: _Worker) -> None:
        await asyncio.sleep(1.5)
        loop.freeze(worker.process)
        await asyncio.sleep(0.2)
        worker.message.set_result("hello")
        await asyncio.sleep(2)
        assert worker.seen == ["1 at 1"]
        loop.thaw(worker.process)
        await asyncio.sleep(10)

    assert _worked(story) == [
        "1 at 1",
        "hello at 3.7",
        "listened",
        "2 at 3.7",
        "3 at 4.7",
        "4 at 5.7",
        "5 at 6.7",
        "counted",
    ]


def test_nothing_of_a_killed_process_runs_again_not_even_its_cleaning_up() -> None:
    seen: list[str] = []

    async def story(loop: SimulatedLoop, worker: _Worker) -> None:
        await asyncio.sleep(2.5)
        loop.freeze(worker.process)
        await asyncio.sleep(1)
        loop.kill(worker.process)
        loop.thaw(worker.process)
        worker.message.set_result("hello")
        worker.tasks.clear()
        await asyncio.sleep(10)
        seen.extend(worker.seen)

    _worked(story)
    assert seen == ["1 at 1", "2 at 2"]

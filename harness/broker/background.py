"""Runs long and periodic work of a broker, so that it serves its clients meanwhile.

Long work is cut by count and not by the clock, so that a schedule in virtual time is the same on every machine.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any, Generic, Self, TypeVar

from harness.broker.unexpected import failed, task_ended

log = logging.getLogger(__name__)

T = TypeVar("T")

PARTITIONS_A_REQUEST = 50
"""Of a LeaderAndIsr, which its receiver handles in one step: it creates folders and files for each new one."""
DECISIONS_A_STEP = 200
"""Of the controller: an election, a change of state, a request to ZooKeeper."""


async def every(seconds: float, work: Callable[[], Awaitable[None]], *, name: str, at_once: bool = False) -> None:
    """Do `work` after every pause, until cancelled; `at_once` is without the first pause.

    A round that fails is logged and the next one is tried, as in Kafka's `KafkaScheduler`: an unexpected error
    must not leave a broker that looks alive and has stopped working.
    """
    pause_s = 0.0 if at_once else seconds
    while True:
        await asyncio.sleep(pause_s)
        pause_s = seconds
        try:
            await work()
        except Exception as error:  # noqa: BLE001  logged and reported
            failed(log, error, "%s.failed", name)


def begin(tasks: "set[asyncio.Task[T]]", work: Coroutine[Any, Any, T], name: str) -> "asyncio.Task[T]":
    """Start a task, which is among `tasks` until it is done; an error that ends it is logged and reported."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    task.add_done_callback(reported)
    return task


def reported(task: "asyncio.Task[Any]") -> None:
    """Log and report the error that has ended a task, if any."""
    task_ended(log, task)


def sliced(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in order, in slices of this size."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


class InSteps(Generic[T]):
    """Yields the items in order, and gives others the loop after each slice.

    Not a generator: one that is not read to its end would be closed by a task of its own, at an unknown instant.
    """

    def __init__(self, items: Sequence[T]) -> None:
        self._items = iter(items)
        self._delivered = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        for item in self._items:
            if self._delivered and self._delivered % DECISIONS_A_STEP == 0:
                await asyncio.sleep(0)
            self._delivered += 1
            return item
        raise StopAsyncIteration

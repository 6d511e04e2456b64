"""Many ZooKeeper calls in flight at once, up to a limit so that their answers do not occupy the loop."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from harness.broker import background

T = TypeVar("T")


async def all_of(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results in order; every call has ended before the first error is raised."""
    tasks: list[asyncio.Future[T]] = []
    for some in background.sliced([*calls], background.DECISIONS_A_STEP):
        tasks += (begun := [asyncio.ensure_future(call) for call in some])
        await asyncio.gather(*begun, return_exceptions=True)
    return [task.result() for task in tasks]

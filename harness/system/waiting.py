"""Waiting with a deadline: the only way the harness waits for the cluster to change."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from harness.errors import ClusterError, DeadlineError

T = TypeVar("T")


async def until(
    look: Callable[[], Awaitable[T]],
    accept: Callable[[T], bool],
    *,
    what: str,
    timeout_s: float,
    every_s: float = 0.05,
) -> T:
    """Look again and again until `accept` agrees, and return what was seen then.

    A look that raises `ClusterError` (nothing answered) counts as not yet.

    Raises:
        DeadlineError: not within `timeout_s`; the message says what was last seen.
    """
    clock = asyncio.get_running_loop().time  # virtual in a simulation
    deadline = clock() + timeout_s
    last = "nothing"
    while True:
        try:
            seen = await look()
        except ClusterError as error:
            last = str(error)
        else:
            if accept(seen):
                return seen
            last = repr(seen)
        if clock() >= deadline:
            raise DeadlineError(f"{what}: not within {timeout_s:g} s; last saw {last}")
        await asyncio.sleep(every_s)

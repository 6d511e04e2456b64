"""How does the harness wait for the cluster to change? Always by polling with a deadline."""

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
    """Call `look` every `every_s` seconds until `accept` is true for its value, and return that value.

    A `ClusterError` of `look` (nothing answered) counts as not yet.

    Raises:
        DeadlineError: not within `timeout_s`; the message says `what` was awaited and what was last seen.
    """
    clock = asyncio.get_running_loop().time  # virtual in a simulation
    deadline = clock() + timeout_s
    last = "nothing"
    while True:
        try:
            value = await look()
        except ClusterError as error:
            last = str(error)
        else:
            if accept(value):
                return value
            last = repr(value)
        if clock() >= deadline:
            raise DeadlineError(f"{what}: not within {timeout_s:g} s; last saw {last}")
        await asyncio.sleep(every_s)

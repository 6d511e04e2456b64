"""How much is done in one step of the loop? Long work is cut, so that a broker hears its clients meanwhile.

It is cut by count and not by the clock, so that a schedule in virtual time is the same on every machine.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Generic, Self, TypeVar

T = TypeVar("T")

PARTITIONS_A_REQUEST = 50
"""Of a LeaderAndIsr, which its receiver obeys in one step: it makes folders and files for each that is new."""
DECISIONS_A_STEP = 200
"""Of the controller: an election, a change of state, a request to ZooKeeper."""


def sliced(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in order, so many at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


class InSteps(Generic[T]):
    """Gives the items in order, and lets others have the loop after so many.

    No generator: one that is not read to its end would be closed by a task of its own, at an instant nobody knows.
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

"""Requests that cannot be answered yet, woken by keys, bounded by a timeout.

Everything happens on the broker's loop: an operation that cannot complete at once is parked in the same step under
its keys, and is tried again at every `check` of one of them, before that call returns. So nothing is ever polled,
and nothing is missed between trying and parking.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

Key = TypeVar("Key")
KeyInput = TypeVar("KeyInput", contravariant=True)


class Delayed(Protocol[KeyInput]):
    """An operation that may have to wait."""

    def try_complete(self, changed: KeyInput) -> bool:
        """Whether it is done, after a change of one of its keys.

        Its outcome is fixed at the first True; no more calls follow.
        """
        ...


@dataclass(slots=True)
class _Parked(Generic[Key]):
    operation: Delayed[Key]
    keys: tuple[Key, ...]
    deadline_s: float
    done: asyncio.Future[None]


@dataclass(slots=True)
class Purgatory(Generic[Key]):
    """Operations that wait for a change of one of their keys."""

    _parked: dict[int, _Parked[Key]] = field(default_factory=dict)
    _by_key: dict[Key, dict[int, _Parked[Key]]] = field(default_factory=dict)
    _next_id: int = 0

    def __len__(self) -> int:
        """How many operations wait."""
        return len(self._parked)

    @property
    def parked(self) -> list[Delayed[Key]]:
        """The operations that wait, the oldest first."""
        return [each.operation for each in self._parked.values()]

    @property
    def deadlines_s(self) -> list[float]:
        """The instants on the loop's clock at which the operations end, the oldest operation first."""
        return [each.deadline_s for each in self._parked.values()]

    async def wait(self, operation: Delayed[Key], keys: Iterable[Key], timeout_s: float) -> bool:
        """Return True when the operation completed, False when `timeout_s` passed first; the caller has tried it."""
        if timeout_s <= 0:
            return False
        loop = asyncio.get_running_loop()
        parked = _Parked(operation, tuple(dict.fromkeys(keys)), loop.time() + timeout_s, loop.create_future())
        ticket = self._park(parked)
        timer = loop.call_later(timeout_s, self._expire, ticket)
        try:
            await parked.done
        finally:
            timer.cancel()
            expired = self._unpark(ticket)
        return not expired

    def check(self, key: Key) -> int:
        """Try every operation that waits for `key`, and return how many completed."""
        waiting = self._by_key.get(key)
        if not waiting:
            return 0
        done = [ticket for ticket, parked in waiting.items() if parked.operation.try_complete(key)]
        for ticket in done:
            parked = self._parked[ticket]
            self._unpark(ticket)
            _finish(parked)
        return len(done)

    def _park(self, parked: _Parked[Key]) -> int:
        ticket = self._next_id
        self._next_id += 1
        self._parked[ticket] = parked
        for key in parked.keys:
            self._by_key.setdefault(key, {})[ticket] = parked
        return ticket

    def _expire(self, ticket: int) -> None:
        parked = self._parked.get(ticket)
        if parked is not None:
            _finish(parked)

    def _unpark(self, ticket: int) -> bool:
        """Remove an operation; return whether it was still there."""
        parked = self._parked.pop(ticket, None)
        if parked is None:
            return False
        for key in parked.keys:
            waiting = self._by_key[key]
            del waiting[ticket]
            if not waiting:
                del self._by_key[key]
        return True


def _finish(parked: _Parked[Key]) -> None:
    if not parked.done.done():  # the waiting task may have been cancelled, or timed out in this very step
        parked.done.set_result(None)

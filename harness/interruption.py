"""Ctrl-C and SIGTERM: counted, and turned into the cancellation of what runs, so that it can heal and stop.

The first signal asks a phase to end in good order, another one to end at once. A phase that must not be cut short has
patience with the first, or with all.
"""

import asyncio
import math
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

from harness.errors import Interrupted

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM)
ENDLESS = math.inf


class Interrupts:
    """Holds both signals while it is entered; in a thread other than the main one it holds none."""

    def __init__(self) -> None:
        self.count = 0
        self._previous: dict[signal.Signals, Any] = {}
        self._cancel: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    def run(self, work: Coroutine[Any, Any, T], *, patience: float = 0) -> T:
        """Return what the coroutine comes to; each signal after the first `patience` of all cancels it once more.

        Raises:
            Interrupted: it ended by cancellation.
        """

        async def main() -> T:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None

            def cancel() -> None:
                if self.count > patience:
                    loop.call_soon_threadsafe(task.cancel)

            self._cancel = cancel
            try:
                return await work
            finally:
                self._cancel = None

        try:
            return asyncio.run(main())
        except asyncio.CancelledError:
            raise Interrupted("interrupted by a signal") from None

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self._cancel is not None:
            self._cancel()
        else:
            raise KeyboardInterrupt

"""Ctrl-C, SIGTERM and an alarm: counted, and turned into the cancellation of what runs, so that it can heal and stop.

The first signal asks a phase to end in good order, another one to end at once. A phase that must not be cut short has
patience with the first, or with all. SIGALRM is how a scheduler ends what takes too long: it counts as two signals, so
that it ends a phase with patience for one too.
"""

import asyncio
import math
import signal
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import ExitStack
from queue import SimpleQueue
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

from harness.errors import Interrupted

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
ENDLESS = math.inf
AGAIN_S = 0.05


class Interrupts:
    """Holds the signals while it is entered; in a thread other than the main one it holds none."""

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
        """Return what the coroutine comes to; the first signal after `patience` of them cancels it, so that it can
        clean up, and another one ends that too.

        Raises:
            Interrupted: it ended by cancellation.
        """

        async def main() -> T:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None

            def cancel() -> None:
                task.cancel()
                if self.count > patience + 1 and not task.done():
                    loop.call_later(AGAIN_S, cancel)  # at once means that cleaning up is cut short too

            def on_signal() -> None:
                if self.count > patience:
                    loop.call_soon_threadsafe(cancel)

            self._cancel = on_signal
            try:
                return await work
            finally:
                self._cancel = None

        try:
            return asyncio.run(main())
        except asyncio.CancelledError:
            raise Interrupted("interrupted by a signal") from None

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.count += 2 if number == signal.SIGALRM else 1
        if self._cancel is not None:
            self._cancel()
        else:
            raise KeyboardInterrupt


class Background:
    """A thread for work whose end a signal must not have to wait for, one piece after the other.

    Libraries that take over SIGINT when they start in the main thread, as Spark does, leave it alone here. Work that is
    not waited for any more ends with this process.
    """

    def __init__(self) -> None:
        self.shared = ExitStack()
        """What the pieces of work share; it is closed in the thread when the last one is done."""
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._left = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._carry_out, name="background", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._left:
            self.run(self.shared.close)
        self._work.put(None)

    def run(self, work: Callable[[], T]) -> T:
        """Return what the work comes to; a signal ends the wait for it at once."""
        answer: Future[T] = Future()

        def piece() -> None:
            try:
                answer.set_result(work())
            except BaseException as error:  # noqa: BLE001  handed to whoever waits
                answer.set_exception(error)

        self._work.put(piece)
        try:
            return answer.result()
        finally:
            self._left = not answer.done()

    def _carry_out(self) -> None:
        while (piece := self._work.get()) is not None:
            piece()

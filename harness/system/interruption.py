"""How do signals end a phase? Ctrl-C, SIGTERM and SIGALRM are counted and cancel what runs, so that it can clean up.

The first signal asks a phase to heal and stop, the next one to end at once. A phase that must complete tolerates the
first signal, or all. SIGALRM is a scheduler's time-out and counts as two, so it also ends a phase that tolerates one.
"""

import asyncio
import math
import signal
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from types import FrameType
from typing import Any, Self, TypeVar

from harness.errors import Interrupted

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
ALL_SIGNALS = math.inf
AGAIN_S = 0.05
MISSED_SIGNAL_S = 1.0
"""A signal that comes between a look for one and the wait for a lock is seen when that wait is over, not before."""


class Interrupts:
    """Handles the signals while it is entered; in a thread other than the main one it handles none."""

    def __init__(self) -> None:
        self.count = 0
        self._previous: dict[signal.Signals, Any] = {}
        self._cancel: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_error: object) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    def run(self, work: Coroutine[Any, Any, T], *, tolerated: float = 0) -> T:
        """Return the result of the coroutine. The first signal after `tolerated` ones cancels it; the next one cancels
        its clean-up too.

        Raises:
            Interrupted: a signal cancelled it.
        """

        async def main() -> T:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None

            def cancel() -> None:
                task.cancel()
                if self.count > tolerated + 1 and not task.done():
                    loop.call_later(AGAIN_S, cancel)  # until its clean-up has ended too

            def on_signal() -> None:
                if self.count > tolerated:
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


@contextmanager
def between_steps() -> Iterator[Callable[[], None]]:
    """Keep signals waiting until what is yielded is called, or a second one comes: their handlers may raise.

    What is raised in the middle of a step leaves coroutines that are never awaited, and is lost where Python itself
    called the code, as when an object goes away.
    """
    waiting: deque[tuple[int, FrameType | None]] = deque()
    handlers: dict[int, Any] = {}

    def let_in() -> None:
        while waiting:
            number, frame = waiting.popleft()
            handlers[number](number, frame)

    def on_signal(number: int, frame: FrameType | None) -> None:
        waiting.append((number, frame))
        if len(waiting) > 1:
            let_in()

    if threading.current_thread() is threading.main_thread():
        handlers |= {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}
    try:
        for number in handlers:
            signal.signal(number, on_signal)
        yield let_in
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        let_in()


class Background:
    """A thread that does blocking work, one call after the other, while a signal can end the wait for it at once.

    Libraries that replace the SIGINT handler when they start in the main thread, as Spark does, cannot do so here. Work
    whose result is no longer awaited ends with this process.
    """

    def __init__(self) -> None:
        self.resources = ExitStack()
        """What the calls share, such as a Spark session; closed in the thread after the last call."""
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._wait_interrupted = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._carry_out, name="background", daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        if not self._wait_interrupted:
            self.run(self.resources.close)
        self._work.put(None)

    def run(self, work: Callable[[], T]) -> T:
        """Return the result of the work, or raise its error; a signal ends the wait at once."""
        result: Future[T] = Future()

        def call() -> None:
            try:
                result.set_result(work())
            except BaseException as error:  # noqa: BLE001  raised where the result is awaited
                result.set_exception(error)

        self._work.put(call)
        try:
            while not wait([result], timeout=MISSED_SIGNAL_S).done:
                continue
            return result.result()
        finally:
            self._wait_interrupted = not result.done()

    def _carry_out(self) -> None:
        while (call := self._work.get()) is not None:
            call()

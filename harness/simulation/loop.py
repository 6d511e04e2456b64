"""An event loop whose clock jumps to the next timer: no selector, no thread, no file, and one order of events.

Callbacks run in the order they became ready, timers of one instant in the order they were set, so a run depends on
nothing but what it is given. A callback belongs to the *process* in whose context it was scheduled (`asyncio` gives
every task, and whatever a task waits for, the context the task was made in): a frozen process's callbacks wait, in
order, until it is thawed, those of a dead one are dropped.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context, ContextVar, copy_context
from functools import partial
from heapq import heapify, heappop, heappush, nsmallest
from typing import Any, NoReturn, TypeVar

from harness.errors import HarnessError
from harness.system.interruption import between_steps

T = TypeVar("T")

MAX_EVENTS = 20_000_000
MAX_TIME_S = 3600.0
_ROUNDS = 64
"""How often the loop looks for what is ready before it looks whether it went on for too long."""
_FEW_TIMERS = 64
"""So many are not worth looking through for cancelled ones."""
SPINS_S = 5
"""So many seconds in a row are too fast before something is said to spin: a burst after a fault is short."""
_SAMPLE = 200
"""Callbacks that are looked at to say what spins."""
START_S = 1000.0
"""Where the clock begins: not at 0, which too much code takes for never."""


class SimulationError(HarnessError):
    """A simulated run cannot go on; says why."""


class Stuck(SimulationError):
    """Everything waits for ever: nothing is ready and no timer is set."""


class LimitReached(SimulationError):
    """A run took more events or more virtual time than it may."""


class Spinning(LimitReached):
    """For some seconds processes did far more than their load asks of them: something goes round without a pause."""

    def __init__(self, message: str, busiest: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.busiest = busiest
        """Names of the processes that had most to do next, the busiest first."""


class Process:
    """What a callback belongs to, e.g. one broker between its start and its end."""

    __slots__ = ("context", "dead", "frozen", "halted", "held", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.context: Context = copy_context()
        self.context.run(_PROCESS.set, self)
        self.frozen = False
        self.dead = False
        self.halted = False
        """Frozen or dead."""
        self.held: deque[_Handle] = deque()
        """What became ready while it was frozen, in order."""

    def call(self, callback: Callable[..., T], *args: Any) -> T:
        """Call something at once as if this process did."""
        return self.context.copy().run(callback, *args)


_PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


def current_process() -> Process | None:
    """Return the process that runs now; None outside all of them."""
    return _PROCESS.get()


class _Handle(asyncio.TimerHandle):
    """A callback and when it is due; lighter than asyncio's own."""

    __slots__ = ()
    _when: float
    _callback: Callable[..., Any] | None
    """None when it was cancelled."""
    _args: tuple[Any, ...]
    _context: Context

    def cancel(self) -> None:
        self._callback = None
        self._args = ()

    def cancelled(self) -> bool:
        return self._callback is None

    def when(self) -> float:
        return self._when

    def __repr__(self) -> str:
        return f"<at {self._when:.6f} s: {self._callback} {self._args}>"


_new: Callable[[type[_Handle]], _Handle] = object.__new__
"""Makes a handle without a constructor: it is filled where it is made."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """Time passes only while nothing else is to be done."""

    def __init__(
        self, *, max_events: int = MAX_EVENTS, max_time_s: float = MAX_TIME_S, max_pace: int = MAX_EVENTS
    ) -> None:
        super().__init__()
        self.max_pace = max_pace
        """Callbacks in a second; beyond it for `SPINS_S` seconds, something goes round without a pause."""
        self.fastest = 0
        """Callbacks in the busiest second."""
        self._second_end_s = START_S
        self._second_events = 0
        """Callbacks by its beginning."""
        self._fast_seconds = 0
        self.events = 0
        """Callbacks carried out."""
        self.complaints: list[str] = []
        """Calls of the exception handler: errors of tasks that were never awaited."""
        self.let_signals_in: Callable[[], None] = _nothing
        """Called when no callback runs."""
        self._now_s = START_S
        self._end_s = START_S + max_time_s
        self._max_events = max_events
        self._sequence = 0
        self._soon: deque[_Handle] = deque()
        self._timers: list[tuple[float, int, _Handle]] = []
        self._sweep_at = _FEW_TIMERS
        self._held_tasks: list[set[asyncio.Task[Any]]] = []
        self.set_exception_handler(_complain)
        self.create_future = partial(asyncio.Future, loop=self)  # type: ignore[method-assign]  # one call less

    # --- time ---

    def time(self) -> float:
        """Return the virtual time, in seconds."""
        return self._now_s

    get_debug = staticmethod(bool)
    """Returns False: every future and task asks, and nothing answers quicker."""

    # --- scheduling ---

    def call_soon(  # type: ignore[override]  # asyncio's stub ties arguments to the callback's
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Have a callback run after all that is ready."""
        handle = _new(_Handle)
        handle._when = self._now_s
        handle._callback = callback
        handle._args = args
        handle._context = copy_context() if context is None else context
        self._soon.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Have a callback run after a while."""
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Have a callback run at an instant; one that has passed comes after all that is ready."""
        handle = _new(_Handle)
        handle._when = when
        handle._callback = callback
        handle._args = args
        handle._context = copy_context() if context is None else context
        self._sequence += 1
        timers = self._timers
        heappush(timers, (when, self._sequence, handle))
        if len(timers) > self._sweep_at:
            self._sweep(timers)
        return handle

    def _sweep(self, timers: "list[tuple[float, int, _Handle]]") -> None:
        """Drop the timers that were cancelled: nearly all time-outs are, long before they are due."""
        timers[:] = [timer for timer in timers if timer[2]._callback is not None]
        heapify(timers)
        self._sweep_at = max(_FEW_TIMERS, 2 * len(timers))

    # --- processes ---

    def freeze(self, process: Process) -> None:
        """Let nothing of a process run until it is thawed."""
        process.frozen = process.halted = True

    def thaw(self, process: Process) -> None:
        """Let a process go on, first with all that became due meanwhile, in its order."""
        process.frozen = False
        process.halted = process.dead
        self._soon.extend(process.held)
        process.held.clear()

    def kill(self, process: Process) -> None:
        """Let nothing of a process run ever again, not even the end of what it was doing."""
        process.dead = process.halted = True
        process.held.clear()
        # A pending task without a reference would be closed and run its `finally` clauses: a dead process does nothing.
        self._held_tasks.append(asyncio.all_tasks(self))

    # --- running ---

    def _run_once(self) -> None:
        """Run what is ready, then what is due at the next instant, and so on for a while."""
        self.let_signals_in()
        soon, timers = self._soon, self._timers
        for _ in range(_ROUNDS):
            if not soon:
                self._jump(timers)
            count = len(soon)
            self.events += count
            for _ in range(count):
                handle = soon.popleft()
                callback = handle._callback
                if callback is None:
                    continue
                context = handle._context
                process = context.get(_PROCESS)
                if process is None or not process.halted:
                    context.run(callback, *handle._args)
                elif not process.dead:
                    process.held.append(handle)
            if self._stopping:  # type: ignore[attr-defined]  # of asyncio's base class
                break
        if self.events - self._second_events > self.max_pace * SPINS_S:
            raise self._spins(self.events - self._second_events)
        if self.events > self._max_events:
            raise LimitReached(f"more than {self._max_events} events by {self._now_s - START_S:.3f} s")

    def _jump(self, timers: "list[tuple[float, int, _Handle]]") -> None:
        """Move the clock to the next timer and make all that are due by then ready."""
        while timers:
            when_s, _, handle = heappop(timers)
            if handle._callback is not None:
                break
        else:
            raise Stuck(f"everything waits for ever, since {self._now_s - START_S:.3f} s: {self._waiting()}")
        if when_s > self._now_s:
            self._now_s = when_s
            if when_s >= self._second_end_s:
                self._look_at_pace(when_s)
            if when_s > self._end_s:
                raise LimitReached(f"more than {self._end_s - START_S:g} s of virtual time: {self._waiting()}")
        self._soon.append(handle)
        while timers and timers[0][0] <= self._now_s:
            handle = heappop(timers)[2]
            if handle._callback is not None:
                self._soon.append(handle)

    def _look_at_pace(self, now_s: float) -> None:
        """Judge the second that has passed; raises Spinning."""
        took = self.events - self._second_events
        self.fastest = max(self.fastest, took)
        self._fast_seconds = self._fast_seconds + 1 if took > self.max_pace else 0
        self._second_events, self._second_end_s = self.events, float(int(now_s)) + 1
        if self._fast_seconds >= SPINS_S:
            raise self._spins(took)

    def _spins(self, took: int) -> Spinning:
        """Return the error, with the processes that take most of the steps, by a sample of what is due next."""
        due = [*list(self._soon)[:_SAMPLE], *(timer[2] for timer in nsmallest(_SAMPLE, self._timers))][:_SAMPLE]
        names = Counter(process.name for each in due if (process := each._context.get(_PROCESS)) is not None)
        busiest = [name for name, _ in names.most_common()]
        return Spinning(
            f"{took} steps in a second of virtual time, {self._now_s - START_S:.0f} s after the start, and "
            f"{self.max_pace} at most are expected; most of what is due is of {', '.join(busiest[:2]) or 'nothing'}",
            busiest,
        )

    def _waiting(self) -> str:
        """Return what waits, by the names of the coroutines."""
        tasks = [task for task in asyncio.all_tasks(self) if not task.done()]
        names = sorted({getattr(task.get_coro(), "__qualname__", "?") for task in tasks})
        return ", ".join(names) or "nothing"

    def close(self) -> None:
        """End the loop; what still waits ends without another step, whatever it would have done."""
        if self.is_closed():
            return
        for task in set().union(asyncio.all_tasks(self), *self._held_tasks):
            if not task.done():
                _end(task)
        self._soon.clear()
        self._timers.clear()
        self._held_tasks.clear()
        super().close()

    # --- what there is not ---

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Refuse: there is one thread."""
        _refuse("call_soon_threadsafe")


def simulated_loop() -> SimulatedLoop:
    """Return the loop that runs now, which has to be a simulated one."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop), "this runs in virtual time only"
    return loop


def _end(task: asyncio.Task[Any]) -> None:
    """Close a pending task's coroutine and ignore what it raises."""
    setattr(task, "_log_destroy_pending", False)  # noqa: B010  not in the stubs
    coroutine = task.get_coro()
    if isinstance(coroutine, Coroutine):
        with contextlib.suppress(Exception):  # what the dead say as they are buried
            coroutine.close()


def _nothing() -> None:
    """Nothing waits."""


def _complain(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    assert isinstance(loop, SimulatedLoop)
    error = context.get("exception")
    loop.complaints.append(f"{context['message']}: {error!r}" if error is not None else str(context["message"]))


def _refuse(what: str) -> NoReturn:
    raise SimulationError(f"{what}: there is no such thing under virtual time")


def _refusal(what: str) -> Callable[..., NoReturn]:
    def refuse(*_args: object, **_kwargs: object) -> NoReturn:
        _refuse(what)

    refuse.__doc__ = f"Refuse: {what} reaches outside the simulation."
    return refuse


_OUTSIDE = (
    "run_in_executor set_default_executor getaddrinfo getnameinfo create_connection create_server sendfile start_tls"
    " create_datagram_endpoint create_unix_connection create_unix_server connect_accepted_socket connect_read_pipe"
    " connect_write_pipe subprocess_shell subprocess_exec add_reader remove_reader add_writer remove_writer sock_recv"
    " sock_recv_into sock_recvfrom sock_sendall sock_sendto sock_connect sock_accept sock_sendfile add_signal_handler"
    " remove_signal_handler"
)
for _name in _OUTSIDE.split():
    setattr(SimulatedLoop, _name, _refusal(_name))


def run(
    work: Coroutine[Any, Any, T],
    *,
    max_time_s: float = MAX_TIME_S,
    max_events: int = MAX_EVENTS,
    max_pace: int = MAX_EVENTS,
    ended_early: Callable[[SimulatedLoop, SimulationError], T] | None = None,
) -> T:
    """Return what `work` comes to in virtual time.

    If it does not end, return what `ended_early` makes of that, before anything is closed.

    Raises:
        Stuck, LimitReached: it does not end, and there is no `ended_early`.
        SimulationError: it needs a thread, a socket, a process or a signal.
    """
    loop = SimulatedLoop(max_events=max_events, max_time_s=max_time_s, max_pace=max_pace)
    with between_steps() as loop.let_signals_in:
        try:
            return loop.run_until_complete(work)
        except (Stuck, LimitReached) as error:
            if ended_early is None:
                raise
            return ended_early(loop, error)
        finally:
            loop.close()

"""A schedule in a process of its own, and limits on what one may take: a bad schedule ends no other."""

import multiprocessing
import resource
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, TypeVar

from harness.errors import HarnessError

T = TypeVar("T")

MAX_CPU_S = 300.0
"""Far more than any schedule takes: by then it goes round in circles, and its process is ended."""
MAX_MEMORY_BYTES = 3 << 30
"""That one schedule may take; beyond it memory is refused."""


class ProcessDied(HarnessError):
    """A process ended without handing over what it had to do; says how."""


@contextmanager
def limited(max_cpu_s: float, max_memory_bytes: int) -> Iterator[None]:
    """Let what is done meanwhile take so much at most: too long ends this process, too much is a `MemoryError`."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = _address_space_bytes() + max_memory_bytes
    if before[1] != resource.RLIM_INFINITY:
        most = min(most, before[1])
    handler = signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    signal.setitimer(signal.ITIMER_PROF, max_cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGPROF, handler)


def in_own_process(work: Callable[[], T]) -> T:
    """Return what `work` returns in a process of its own.

    Raises:
        ProcessDied: it ended without returning anything.
    """
    ((_, made),) = in_own_processes([work], at_once=1)
    if isinstance(made, ProcessDied):
        raise made
    return made


def in_own_processes(
    works: Iterable[Callable[[], T]], *, at_once: int
) -> Generator[tuple[int, T | ProcessDied], None, None]:
    """Yield the index of each work with what it returns in a process of its own, in the order in which they end.

    Processes still running when the iteration is given up are ended.
    """
    context = multiprocessing.get_context("fork")
    waiting = enumerate(works)
    running: dict[Connection, tuple[int, ForkProcess]] = {}
    try:
        while True:
            for number, work in islice(waiting, at_once - len(running)):
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_hand_over, args=(sender, work))
                process.start()
                sender.close()
                running[receiver] = number, process
            if not running:
                return
            for ready in wait(list(running)):
                assert isinstance(ready, Connection), "only connections are waited for"
                number, process = running.pop(ready)
                yield number, _received(ready, process)
    finally:
        for receiver, (_, process) in running.items():
            process.kill()
            process.join()
            receiver.close()


def _received(receiver: Connection, process: ForkProcess) -> Any:
    """Return what a process hands over, or how it ended without that."""
    try:
        return receiver.recv()
    except EOFError:
        process.join()
        return ProcessDied(_ending(process.exitcode))
    finally:
        receiver.close()
        process.join()


def _hand_over(sender: Connection, work: Callable[[], object]) -> None:
    sender.send(work())


def _ending(exit_code: int | None) -> str:
    """Return how a process ended, in a sentence."""
    if exit_code == -signal.SIGPROF:
        return "its process was ended, because it took more CPU time than it may"
    if exit_code is not None and exit_code < 0:
        return f"its process died by {signal.Signals(-exit_code).name}"
    return f"its process ended by itself, with exit code {exit_code}"


def _address_space_bytes() -> int:
    """Return how much address space this process has taken."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()

"""What does the supervisor know of one child process, and how does the child end with its parent?

Standard library only: the supervisor imports this module and must start fast.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.system.pids import LINUX, state_of

PR_SET_PDEATHSIG = 1


@dataclass(slots=True, kw_only=True)
class Child:
    """One process of the cluster, running or ended; the next process of the same name replaces it."""

    name: str
    stage: int
    """Order of shutdown: the processes of a stage are ended together, lower stages first."""
    process: subprocess.Popen[bytes]
    log: str
    starts: int
    started_ns: int
    """When, on the monotonic clock."""
    grace_s: float | None = None
    """Seconds between SIGTERM and SIGKILL, however the cluster ends; None for a child without duties at its end."""
    status: int | None = None
    """Exit status once it has ended, negative for the signal that ended it."""
    exited: asyncio.Event = field(default_factory=asyncio.Event)
    resume_timer: asyncio.TimerHandle | None = None

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.status is None

    @property
    def state(self) -> str:
        """Return running, paused or exited."""
        if not self.running:
            return "exited"
        now = state_of(self.process.pid)
        return "paused" if now is not None and now.state in "Tt" else "running"

    def send(self, number: int) -> None:
        """Send a signal; nothing happens when it has ended."""
        if self.running:
            self.process.send_signal(number)


async def all_exited(children: list[Child], timeout_s: float) -> None:
    """Return when all have ended, or after `timeout_s`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            for child in children:
                await child.exited.wait()


def bound_to_parent(parent_pid: int, number: signal.Signals) -> Callable[[], None] | None:
    """Return a function to run between fork and exec that has the kernel signal the child when its parent ends.

    None where not Linux. With SIGTERM the child also leaves its parent's process group, which is killed as a whole, and
    starts with SIGTERM blocked: the signal stays pending until the child waits for it.
    """
    if not LINUX:
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def bind() -> None:
        if number == signal.SIGTERM:
            os.setsid()
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent_pid:  # it ended before the call above
            os._exit(1)

    return bind

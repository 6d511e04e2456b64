"""One child process of the supervisor: what is known of it, and how its life is bound to its parent's.

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
    """One process of the cluster, running or ended; a process of the same name started later replaces it."""

    name: str
    stage: int
    """Order of shutdown: the processes of a stage are ended together, lower stages first."""
    process: subprocess.Popen[bytes]
    log: str
    starts: int
    grace_s: float | None = None
    """Seconds that it may take to end, whatever ends the cluster; None for a child that is killed without regret."""
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
    """Return when all have ended, or when the time is over."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            for child in children:
                await child.exited.wait()


def bound_to_parent(parent_pid: int, *, killed: bool) -> Callable[[], None] | None:
    """Return what a child does between fork and exec so that the kernel ends it with its parent; Linux only.

    It is killed, or else told: then it gets SIGTERM, which waits until the child asks for it, and it leaves its
    parent's group, which is killed as a whole.
    """
    if not LINUX:
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    sent = signal.SIGKILL if killed else signal.SIGTERM

    def bind() -> None:
        if not killed:
            os.setsid()
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        prctl(PR_SET_PDEATHSIG, sent, 0, 0, 0)
        if os.getppid() != parent_pid:  # it died before the call above
            os._exit(1)

    return bind

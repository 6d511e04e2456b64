"""What does the supervisor know of one child process?

Standard library only: the supervisor imports this module and must start fast.
"""

import asyncio
import contextlib
import subprocess
from dataclasses import dataclass, field

from harness.system.pids import state_of
from harness.system.process_state import ProcessState


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
    def state(self) -> ProcessState:
        """Return what its process does."""
        if not self.running:
            return ProcessState.STOPPED
        now = state_of(self.process.pid)
        return ProcessState.PAUSED if now is not None and now.state in "Tt" else ProcessState.RUNNING

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

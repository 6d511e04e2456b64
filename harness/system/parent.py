"""How does a process end with the process that started it? The kernel sees to it (Linux).

Standard library only: the supervisor imports this module and must start fast.
"""

import ctypes
import os
import signal
from collections.abc import Callable

from harness.system.pids import LINUX

PR_SET_PDEATHSIG = 1


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

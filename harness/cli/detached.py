"""`chaos run --detach`: the run goes on in a process without a terminal."""

import os
import sys
from pathlib import Path


def leave_terminal(log: Path) -> int | None:
    """Continue in a process of its own session, whose output goes to `log`.

    Returns:
        In this process the pid of the new one, and in the new one None.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if pid := os.fork():
        return pid
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    return None

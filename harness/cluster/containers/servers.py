"""Which process of this machine is the server in a container, and when was it started?"""

import os
import time
from pathlib import Path

from harness.cluster.clocks import SECOND_NS
from harness.errors import ClusterError
from harness.system.pids import state_of


def child_of(pid: int) -> int:
    """Return the server of a container by its first process, both as this machine numbers them; raises ClusterError."""
    try:
        (child, *_) = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        raise ClusterError(f"process {pid} has no server as its child") from None
    return int(child)


def started_ns(pid: int) -> int:
    """Return when a process was started, on this machine's monotonic clock; raises ClusterError when it is gone."""
    state = state_of(pid)
    if state is None:
        raise ClusterError(f"process {pid} is gone")
    asleep_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
    return int(state.started) * SECOND_NS // os.sysconf("SC_CLK_TCK") - asleep_ns

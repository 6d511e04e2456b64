"""Limits a resource of a process for a while; SIGTERM ends it at once. A child of the cluster's supervisor.

`python -m harness.cluster.limits.limiter ROOT PROCESS PID RESOURCE AMOUNT SECONDS`. If it is killed, the driver or a
reaper lifts the limit.
"""

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.cluster.limits import descriptors, pressure
from harness.cluster.limits.control_groups import Group, group_of
from harness.cluster.limits.resources import Resource
from harness.system.pids import ProcessIdentity, identify

_AGAIN_S = 0.1
_BEYOND = 64 << 20
"""How much more memory than is left to take."""


@contextmanager
def few_files(pid: int, spare: int) -> Iterator[None]:
    """Limit the open files of a process to this many more than it has."""
    before = descriptors.leave(pid, spare)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            descriptors.lift(pid, before)


@contextmanager
def confined(pid: int, group: Group, amount: float) -> Iterator[None]:
    """Keep a process in a group of its own."""
    try:
        group.limit(amount)
        group.add(pid)
        yield
    finally:
        group.remove()


def press(process: ProcessIdentity, group: Group, spare: int, end_s: float) -> bool:
    """Take the remaining memory by other processes until the process is killed; return whether a signal came first."""
    argv = [sys.executable, "-m", pressure.__name__, str(process.pid), str(spare + _BEYOND)]
    while process.alive() and time.monotonic() < end_s:
        with subprocess.Popen(argv, preexec_fn=lambda: group.add(0)) as eater:  # noqa: S603
            eater.wait()
        if signal.sigtimedwait({signal.SIGTERM}, _AGAIN_S) is not None:
            return True
    return False


def main(arguments: list[str] | None = None) -> int:
    """Limit the process until the time is over or a signal arrives."""
    parser = argparse.ArgumentParser(prog="harness.cluster.limits.limiter", description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("process")
    parser.add_argument("pid", type=int)
    parser.add_argument("resource", type=Resource)
    parser.add_argument("amount", type=float)
    parser.add_argument("seconds", type=float)
    options = parser.parse_args(arguments)
    end_s = time.monotonic() + options.seconds
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    process = identify(options.pid)
    if process is None:
        return 1
    if options.resource is Resource.FILES:
        with few_files(process.pid, round(options.amount)):
            signal.sigtimedwait({signal.SIGTERM}, max(0.0, end_s - time.monotonic()))
        return 0
    group = group_of(options.root, options.process, options.resource)
    with confined(process.pid, group, options.amount):
        spare = round(options.amount)
        if options.resource is Resource.CPU or not press(process, group, spare, end_s):
            signal.sigtimedwait({signal.SIGTERM}, max(0.0, end_s - time.monotonic()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Delays calls of another process, or makes them fail, by strace, for a while.

When the parent of strace is killed, strace is too, and the kernel releases the traced process.
"""

import functools
import os
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

from harness.system.parent import bound_to_parent

_PROBE = ("strace", "-qq", "-o", os.devnull, "true")
_PROBE_TIMEOUT_S = 60.0


@functools.cache
def lacking() -> str:
    """Return why no process can be traced here; empty if one can. It is tried with one that ends at once."""
    try:
        probe = subprocess.run(  # noqa: S603
            _PROBE, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        return "strace is not installed (on Debian: apt-get install strace)"
    except subprocess.TimeoutExpired:
        return f"nothing was traced within {_PROBE_TIMEOUT_S:g} s"
    return "" if probe.returncode == 0 else f"no process can be traced: {probe.stderr.strip()}"


def tracing(pid: int, calls: str, effect: str, trace: Path, files: Iterable[str] = ()) -> list[str]:
    """Return the strace command for an effect on some calls of a process, only on certain files if any are named."""
    only = [part for file in files for part in ("-P", file)]
    what = ["-e", f"trace={calls}", "-e", f"inject={calls}:{effect}"]
    return ["strace", "-f", "-qq", "-p", str(pid), *only, *what, "-T", "-o", str(trace)]


def hold(argv: list[str], seconds: float) -> int:
    """Trace until the time is over or a signal arrives; return 1 if the process cannot be traced, or has ended."""
    bound = bound_to_parent(os.getpid(), signal.SIGKILL)
    with subprocess.Popen(argv, preexec_fn=bound) as tracer:  # noqa: S603
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})  # also the end of the tracer
        signal.sigtimedwait({signal.SIGTERM, signal.SIGCHLD}, seconds)
        orderly = tracer.poll() is None
        tracer.terminate()
    return 0 if orderly else 1

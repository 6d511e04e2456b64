"""How do the syncs of one broker take longer than the machine's? By strace, which holds them back and times them.

`python -m harness.cluster.slow_syncs PID EXTRA_S SECONDS TRACE` has them take longer for a while, and writes a line for
each into TRACE; SIGTERM ends it at once. If it is killed, so is strace, and the kernel lets the process go.
"""

import argparse
import functools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from harness.cluster.children import bound_to_parent

_CALLS = "fsync,fdatasync,msync"
_HELD_BACK = re.compile(r"\(DELAYED\) <([\d.]+)>")
_PROBE = ("strace", "-qq", "-o", os.devnull, "true")
_PROBE_TIMEOUT_S = 10.0


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


def tracing(pid: int, extra_s: float, trace: Path) -> list[str]:
    """Return the command that holds the syncs of a process back."""
    delay = f"inject={_CALLS}:delay_enter={round(extra_s * 1e6)}"
    return ["strace", "-f", "-qq", "-p", str(pid), "-e", f"trace={_CALLS}", "-e", delay, "-T", "-o", str(trace)]


def times_s(trace: Path) -> list[float]:
    """Return how long each sync took that was held back, in seconds; nothing where there is no trace."""
    if not trace.exists():
        return []
    return [float(taken) for taken in _HELD_BACK.findall(trace.read_text(encoding="utf-8", errors="replace"))]


def main(arguments: list[str] | None = None) -> int:
    """Hold syncs back until the time is over or a signal says so; return 1 if the process cannot be traced."""
    parser = argparse.ArgumentParser(prog="harness.cluster.slow_syncs", description=__doc__)
    parser.add_argument("pid", type=int)
    parser.add_argument("extra_s", type=float)
    parser.add_argument("seconds", type=float)
    parser.add_argument("trace", type=Path)
    options = parser.parse_args(arguments)
    argv = tracing(options.pid, options.extra_s, options.trace)
    bound = bound_to_parent(os.getpid(), signal.SIGKILL)
    with subprocess.Popen(argv, preexec_fn=bound) as tracer:  # noqa: S603
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})  # also the end of the tracer
        signal.sigtimedwait({signal.SIGTERM, signal.SIGCHLD}, options.seconds)
        orderly = tracer.poll() is None
        tracer.terminate()
    return 0 if orderly else 1


if __name__ == "__main__":
    sys.exit(main())

"""Delays the syncs of one server: a tracer holds them back and times them.

`python -m harness.cluster.disks.slow_syncs PID EXTRA_S SECONDS TRACE` delays them for a while, and writes a
line for each into TRACE; SIGTERM ends it at once.
"""

import argparse
import re
import sys
from pathlib import Path

from harness.cluster.disks.tracer import hold, tracing

_CALLS = "fsync,fdatasync,msync"
_HELD_BACK = re.compile(r"\(DELAYED\) <([\d.]+)>")


def times_s(trace: Path) -> list[float]:
    """Return the duration of each delayed sync, in seconds; empty without a trace."""
    if not trace.exists():
        return []
    return [float(taken) for taken in _HELD_BACK.findall(trace.read_text(encoding="utf-8", errors="replace"))]


def main(arguments: list[str] | None = None) -> int:
    """Delay syncs until the time is over or a signal arrives; return 1 if the process cannot be traced."""
    parser = argparse.ArgumentParser(prog="harness.cluster.disks.slow_syncs", description=__doc__)
    parser.add_argument("pid", type=int)
    parser.add_argument("extra_s", type=float)
    parser.add_argument("seconds", type=float)
    parser.add_argument("trace", type=Path)
    options = parser.parse_args(arguments)
    delay = f"delay_enter={round(options.extra_s * 1e6)}"
    return hold(tracing(options.pid, _CALLS, delay, options.trace), options.seconds)


if __name__ == "__main__":
    sys.exit(main())

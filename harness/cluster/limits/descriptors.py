"""How many files a process may have open: the kernel's soft limit, which a user may change for own processes.

In a container it is run by the engine, as the user of the server there: `python -m harness.cluster.limits.descriptors
PID`, 0 for the child of the container's first process. `--spare N` leaves it N more than now, `--limit N` so many in
in all, 0 for the maximum. It prints the limit. Standard library only.
"""

import argparse
import os
import resource
import sys
from pathlib import Path

KEPT_FREE = 256
"""Descriptors that a process needs beyond the requested number."""


def limit_of(pid: int) -> int:
    """Return how many files a process may have open; raises OSError when it is gone."""
    return resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]


def leave(pid: int, spare: int) -> int:
    """Limit a process to this many files more than it has; return the earlier limit. Raises OSError when it is gone."""
    before, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    held = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(held + spare, before), most))
    return before


def lift(pid: int, limit: int | None = None) -> None:
    """Set the limit of a process; None for the maximum. Raises OSError when it is gone."""
    most = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most if limit is None else limit, most))


def room_for(files: int) -> str:
    """Raise this process's limit to the maximum; return why this many more are still too many, empty if not."""
    lift(os.getpid())
    held, most = sum(1 for _ in Path("/proc/self/fd").iterdir()), limit_of(os.getpid())
    fits = held + files + KEPT_FREE <= most
    return "" if fits else f"this process has {held} files open and may have {most}, too few for {files} more"


def server_here() -> int:
    """Return the pid of the server in this container: the child of its first process."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        if int(status.read_text(encoding="utf-8").rpartition(")")[2].split()[1]) == 1:
            return int(status.parent.name)
    raise ProcessLookupError("no server runs here")


def main(arguments: list[str] | None = None) -> int:
    """Change the limit if requested, and print it."""
    parser = argparse.ArgumentParser(prog="harness.cluster.limits.descriptors", description=__doc__)
    parser.add_argument("pid", type=int)
    parser.add_argument("--spare", type=int)
    parser.add_argument("--limit", type=int)
    options = parser.parse_args(arguments)
    pid = options.pid or server_here()
    if options.limit is not None:
        lift(pid, options.limit or None)
    if options.spare is not None:
        leave(pid, options.spare)
    sys.stdout.write(f"{limit_of(pid)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Gives a broker a disk that can fill up: a file system in memory, mounted over its data directory.

The supervisor has a mount namespace of its own, in which its children run and these file systems are. With the last of
its processes the kernel removes both, even after a kill. From outside their files are seen through the supervisor.
"""

import functools
import os
import shutil
import subprocess
from pathlib import Path

DISK_BYTES = 128 << 20
IN_A_NAMESPACE = ("unshare", "--mount", "--propagation", "private")
"""Prefix of a command that gives it a mount namespace of its own."""
_PROBE_TIMEOUT_S = 60.0


def mounting(folder: Path) -> list[str]:
    """Return the command that gives a folder a file system of its own."""
    return ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=0700", "chaos", str(folder)]


@functools.cache
def lacking() -> str:
    """Return why no broker can have a disk of its own here; empty if it can."""
    if absent := [name for name in ("unshare", "mount") if shutil.which(name) is None]:
        return f"there is no {' and no '.join(absent)}"
    if os.geteuid() != 0:
        return "a file system of a limited size takes root"
    command = [*IN_A_NAMESPACE, *mounting(Path("/"))]
    try:
        probe = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no file system could be mounted within {_PROBE_TIMEOUT_S:g} s"
    return f"no file system can be mounted, even by root: {probe.stderr.strip()}" if probe.returncode else ""


def seen_through(pid: int, folder: Path) -> Path:
    """Return where a folder is seen as the process with this pid sees it."""
    return Path(f"/proc/{pid}/root{folder.resolve()}")

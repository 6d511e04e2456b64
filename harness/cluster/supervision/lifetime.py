"""When must a supervisor end: has its owner process ended, or was the cluster's folder moved or removed?

Standard library only: the supervisor imports this module and must start fast.
"""

import asyncio
import contextlib
import os
from pathlib import Path

from harness.system.pids import identify

OWNER_POLL_S = 0.2
FOLDER_POLL_S = 1.0


async def process_gone(pid: int) -> None:
    """Return when the process with this pid is gone."""
    identity = identify(pid)
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(ProcessLookupError):
            await _readable(os.pidfd_open(pid))
    while identity is not None and identity.alive():  # noqa: ASYNC110 - where there is no pidfd
        await asyncio.sleep(OWNER_POLL_S)


async def folder_moved(folder: Path) -> None:
    """Return when the working directory is no longer at this path (which holds no links).

    A cluster whose folder was removed or moved can be found by neither its user nor a reaper.
    """
    while _is_at(folder):  # noqa: ASYNC110 - the kernel has no event for it
        await asyncio.sleep(FOLDER_POLL_S)


def _is_at(folder: Path) -> bool:
    try:
        return folder.resolve() == folder and folder.samefile(".")
    except FileNotFoundError:
        return False
    except OSError:  # unknown for now: look again
        return True


async def _readable(descriptor: int) -> None:
    """Return when the descriptor has something to read (a pidfd: when its process has ended), and close it."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)

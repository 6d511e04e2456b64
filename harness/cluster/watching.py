"""What a supervisor lives for: the process that owns the cluster, and the folder in which the cluster is found.

Standard library only: the supervisor imports this module and must start fast.
"""

import asyncio
import contextlib
import os
from pathlib import Path

from harness.system.pids import identify

OWNER_POLL_S = 0.2
FOLDER_POLL_S = 1.0


async def gone(owner: int) -> None:
    """Return when the process with this pid is gone."""
    identity = identify(owner)
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(ProcessLookupError):
            await _readable(os.pidfd_open(owner))
    while identity is not None and identity.alive():  # noqa: ASYNC110 - where there is no pidfd
        await asyncio.sleep(OWNER_POLL_S)


async def moved(folder: Path) -> None:
    """Return when the working directory does not lie at this path, without links, any more.

    Whoever removed or moved it cannot reach the cluster that works in it, and a reaper does not find it there.
    """
    while _here(folder):  # noqa: ASYNC110 - nothing tells that a folder was moved
        await asyncio.sleep(FOLDER_POLL_S)


def _here(folder: Path) -> bool:
    try:
        return folder.resolve() == folder and folder.samefile(".")
    except FileNotFoundError:
        return False
    except OSError:  # it cannot be told now
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

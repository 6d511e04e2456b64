"""Which scratch folders are in use? Each is named after the process that made it.

A folder has its name from the start, so a live process's folder never looks abandoned.
"""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.system.pids import (
    GONE_STATES,
    ProcessIdentity,
    environment_values,
    identify,
    is_neighbour,
    state_of,
)

PREFIX = "chaos-spark-"
NAME = re.compile(rf"{PREFIX}(?P<pid>\d+)-(?P<started>\w+)-\w+")
MEMORY = Path("/dev/shm")  # noqa: S108  mkdtemp makes the names
"""Where Linux keeps files in memory."""
SCRATCH_VARIABLE = "CHAOS_SCRATCH"
"""Environment variable with a scratch folder: it marks the processes that work there, and end with its owner."""
FREE_BYTES = 256_000_000
"""Memory is used only when this much of it is free: in a container it is often small."""
UNNAMED_AGE_S = 24 * 3600.0
"""A folder that names no process counts as abandoned when it is older: judging takes minutes."""


def new_scratch_folder(parent: Path | None = None) -> Path:
    """Make an empty folder of this process, by default in the folder for temporary files."""
    me = identify(os.getpid())
    assert me is not None, "this process runs"
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{me.pid}-{_word(me.started)}-", dir=parent))


@contextmanager
def scratch_folder(*, small: bool = False) -> Iterator[Path]:
    """Yield an empty folder and remove it afterwards; for `small` files it is in memory where there is room."""
    folder = new_scratch_folder(MEMORY if small and _has_room() else None)
    try:
        yield folder
    finally:
        remove_scratch_folder(folder)


def _has_room() -> bool:
    if not _may_be_in_memory() or not os.access(MEMORY, os.W_OK):
        return False
    return shutil.disk_usage(MEMORY).free >= FREE_BYTES


def _may_be_in_memory() -> bool:
    """Return whether the user left open where temporary files go."""
    return "TMPDIR" not in os.environ and MEMORY.is_dir()


def abandoned_scratch_folders() -> list[Path]:
    """Return this user's scratch folders whose process is gone."""
    paths = sorted(path for parent in _parents() for path in parent.glob(f"{PREFIX}*"))
    return [path for path in paths if _is_own_folder(path) and not _in_use(path)]


def abandoned_processes() -> list[ProcessIdentity]:
    """Return the live processes that work in a scratch folder whose process is gone; the folder may be gone too."""
    marked = [(pid, Path(folder)) for pid, folder in environment_values(SCRATCH_VARIABLE)]
    pids = [
        pid
        for pid, folder in marked
        if folder.parent in _parents() and NAME.fullmatch(folder.name) and not _in_use(folder) and is_neighbour(pid)
    ]
    return [process for process in map(identify, pids) if process is not None and process.alive()]


def _parents() -> list[Path]:
    return [Path(tempfile.gettempdir()), *([MEMORY] if _may_be_in_memory() else [])]


def remove_scratch_folder(path: Path) -> None:
    """Remove a folder with its content; nothing happens when it is gone.

    Raises:
        OSError: it cannot be removed.
    """
    try:
        shutil.rmtree(path)
    except FileNotFoundError:  # another process, perhaps its JVM, removes files there at the same time
        shutil.rmtree(path, ignore_errors=True)


def _is_own_folder(path: Path) -> bool:
    try:
        return not path.is_symlink() and path.is_dir() and path.stat().st_uid == os.geteuid()
    except FileNotFoundError:
        return False


def _in_use(path: Path) -> bool:
    named = NAME.fullmatch(path.name)
    if named is None:
        return time.time() - path.stat().st_mtime < UNNAMED_AGE_S
    now = state_of(int(named["pid"]))
    return now is not None and _word(now.started) == named["started"] and now.state not in GONE_STATES


def _word(started: str) -> str:
    """Return a start time as part of a file name."""
    return re.sub(r"\W", "", started)

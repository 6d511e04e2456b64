"""Reserves disk space, so that a run can write its last lines and its verdict on a full disk.

A run folder has empty files that a full disk would not allow to be created later; the report takes the rest.
"""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from harness.store.folder import RunFolder

T = TypeVar("T")

PARTS = 8
PART_BYTES = 64 * 1024
"""More than a verdict or a seal takes."""
FULL = (errno.ENOSPC, errno.EDQUOT)


def keep_room(folder: RunFolder) -> None:
    """Reserve the space; raises OSError if there is none."""
    folder.reserve.mkdir()
    for number in range(PARTS):
        with (folder.reserve / str(number)).open("wb") as part:
            os.posix_fallocate(part.fileno(), 0, PART_BYTES)


def give_back(folder: RunFolder) -> None:
    """Release all of it; no-op if there is none."""
    shutil.rmtree(folder.reserve, ignore_errors=True)


def write_whole(folder: RunFolder, path: Path, text: str) -> None:
    """Write a file, all or nothing, in that space if needed; raises OSError."""
    with_room(folder, lambda: _replace(path, text))


def _replace(path: Path, text: str) -> None:
    temporary = path.with_suffix(".tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def with_room(folder: RunFolder, write: Callable[[], T]) -> T:
    """Write; on a full disk, retry after each released part of the space.

    `write` leaves nothing behind when it raises OSError.
    """
    while True:
        try:
            return write()
        except OSError as error:
            parts = sorted(folder.reserve.glob("*"))
            if error.errno not in FULL or not parts:
                raise
            parts[0].unlink(missing_ok=True)

"""Keeps a disk full for a while: `python -m harness.cluster.disks.ballast FOLDER SECONDS`; SIGTERM ends it at once,
and so does the removal of its file.

It writes a file until the disk is full, fills space that is freed meanwhile, and removes the file at the end. If it
is killed, the file goes with the disk.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

NAME = "ballast"
_CHUNKS = tuple(1 << bits for bits in (20, 16, 12, 0))
_AGAIN_S = 0.02


def fill(file: int) -> None:
    """Write until nothing more fits."""
    for size in _CHUNKS:
        try:
            while os.write(file, bytes(size)) == size:
                pass
        except OSError:
            continue  # a smaller piece may fit


def main(arguments: list[str] | None = None) -> int:
    """Fill the disk, and free it when the time is over or a signal says so."""
    parser = argparse.ArgumentParser(prog="harness.cluster.disks.ballast", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("seconds", type=float)
    options = parser.parse_args(arguments)
    end_s = time.monotonic() + options.seconds
    path = options.folder / NAME
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        while time.monotonic() < end_s and os.fstat(file).st_nlink:
            fill(file)
            if signal.sigtimedwait({signal.SIGTERM}, _AGAIN_S) is not None:
                break
    finally:
        path.unlink(missing_ok=True)
        os.close(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())

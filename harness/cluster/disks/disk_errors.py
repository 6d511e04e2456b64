"""How does a broker's disk fail while the machine's does not? By libfiu, which is loaded before the C library.

Told through a named pipe, it fails the calls by which our broker writes, reads and syncs its logs at a position, and no
others: logs for people, sockets and configuration go through other ones.

`python -m harness.cluster.disks.disk_errors PIPE ERROR SECONDS` has them fail for a while; SIGTERM ends it at once.
"""

import argparse
import errno
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import TextIO

from harness.system.libraries import installed

FOLDER = "disk-errors"
"""In the cluster's folder: for each process that can be told so, two named pipes."""
_LIBRARIES = ("fiu_run_preload.so", "fiu_posix_preload.so")
_ANSWER_TIMEOUT_S = 10


class DiskError(StrEnum):
    """What the disk says."""

    IO = "io"
    """That it cannot read, write or sync (EIO)."""
    READ_ONLY = "read-only"
    """That it takes nothing (EROFS)."""


_WRITES = ("posix/io/rw/pwrite", "posix/io/rw/ftruncate")
_FAILING = {
    DiskError.IO: (errno.EIO, (*_WRITES, "posix/io/rw/pread", "posix/io/sync/fsync")),
    DiskError.READ_ONLY: (errno.EROFS, _WRITES),
}
"""By error, its number and the calls that fail, as libfiu names them."""


def error_number(error: DiskError) -> int:
    """Return the number by which the operating system knows an error."""
    return _FAILING[error][0]


def libraries() -> list[Path]:
    """Return where what servers load is installed; nothing where it is not."""
    return installed("fiu", *_LIBRARIES)


def lacking() -> str:
    """Return why no disk can be made to fail here; empty if it can."""
    return "" if libraries() else "libfiu is not installed (on Debian: apt-get install fiu-utils)"


def environment(folder: Path, process: str) -> dict[str, str]:
    """Return what a process, started in the cluster's folder, needs in its environment for its disk to fail."""
    (folder / FOLDER).mkdir(exist_ok=True)
    return {"LD_PRELOAD": " ".join(map(str, libraries())), "FIU_CTRL_FIFO": f"{FOLDER}/{process}"}


def pipe_of(folder: Path, process: str, pid: int) -> Path:
    """Return the pipe of a process, without the ending of either."""
    return folder / FOLDER / f"{process}-{pid}"


def _tell(commands: TextIO, answers: TextIO, command: str) -> None:
    """Send a command to the process at the pipes; raises OSError when it has died or does not understand."""
    commands.write(f"{command}\n")
    commands.flush()
    if (answer := answers.readline().strip()) != "0":
        raise OSError(errno.EINVAL, f"{command}: {answer or 'no answer'}")


def main(arguments: list[str] | None = None) -> int:
    """Have the calls fail until the time is over or a signal says so; a broker that has died fails no more.

    The pipes stay open meanwhile: a process that opens its ends anew loses what is written just then.
    """
    parser = argparse.ArgumentParser(prog="harness.cluster.disks.disk_errors", description=__doc__)
    parser.add_argument("pipe", type=Path)
    parser.add_argument("error", type=DiskError)
    parser.add_argument("seconds", type=float)
    options = parser.parse_args(arguments)
    number, calls = _FAILING[options.error]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.alarm(_ANSWER_TIMEOUT_S)  # opening a pipe waits for the other end
    with Path(f"{options.pipe}.in").open("w") as commands, Path(f"{options.pipe}.out").open() as answers:
        try:
            for call in calls:
                _tell(commands, answers, f"enable name={call},failinfo={number}")
            signal.alarm(0)
            sys.stdout.write("failing\n")
            sys.stdout.flush()
            signal.sigtimedwait({signal.SIGTERM}, options.seconds)
        finally:
            signal.alarm(_ANSWER_TIMEOUT_S)
            for call in calls:
                _tell(commands, answers, f"disable name={call}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

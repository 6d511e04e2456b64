"""Makes a broker's disk fail while the machine's works, by libfiu, which is loaded before the C library.

On a command through a named pipe, it fails the calls by which our broker writes, reads and syncs its logs at a
position, and no others: text logs, sockets and configuration use other calls.

`python -m harness.cluster.disks.disk_errors PIPE ERROR SECONDS` makes them fail for a while; SIGTERM ends it at once.
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
"""In the cluster's folder: two named pipes for each process that loads libfiu."""
_LIBRARIES = ("fiu_run_preload.so", "fiu_posix_preload.so")
_ANSWER_TIMEOUT_S = 10


class DiskError(StrEnum):
    """The error of the disk."""

    IO = "io"
    """It cannot read, write or sync (EIO)."""
    READ_ONLY = "read-only"
    """It takes no writes (EROFS)."""


_WRITES = ("posix/io/rw/pwrite", "posix/io/rw/ftruncate")
_FAILING = {
    DiskError.IO: (errno.EIO, (*_WRITES, "posix/io/rw/pread", "posix/io/sync/fsync")),
    DiskError.READ_ONLY: (errno.EROFS, _WRITES),
}
"""By error, its number and the calls that fail, as libfiu names them."""


def error_number(error: DiskError) -> int:
    """Return the operating system's number of an error."""
    return _FAILING[error][0]


def libraries() -> list[Path]:
    """Return the folder of the libraries that servers load; None if they are not installed."""
    return installed("fiu", *_LIBRARIES)


def lacking() -> str:
    """Return why no disk can be made to fail here; empty if it can."""
    return "" if libraries() else "libfiu is not installed (on Debian: apt-get install fiu-utils)"


def environment(folder: Path, process: str) -> dict[str, str]:
    """Return the environment of a process, started in the cluster's folder, whose disk can fail."""
    (folder / FOLDER).mkdir(exist_ok=True)
    return {"LD_PRELOAD": " ".join(map(str, libraries())), "FIU_CTRL_FIFO": f"{FOLDER}/{process}"}


def pipe_of(folder: Path, process: str, pid: int) -> Path:
    """Return the path of a process's pipes, without either suffix."""
    return folder / FOLDER / f"{process}-{pid}"


def _tell(commands: TextIO, answers: TextIO, command: str) -> None:
    """Send a command to the process at the pipes; raises OSError when it has died or does not understand."""
    commands.write(f"{command}\n")
    commands.flush()
    if (answer := answers.readline().strip()) != "0":
        raise OSError(errno.EINVAL, f"{command}: {answer or 'no answer'}")


def main(arguments: list[str] | None = None) -> int:
    """Make the calls fail until the time is over or a signal arrives; a dead broker ends it too.

    The pipes stay open meanwhile, as a process that reopens its ends loses what is written in between.
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

"""Makes a disk fail, file by file, for a broker that writes its logs by the same calls as its sockets.

`python -m harness.cluster.disks.failing_calls PID ERROR SECONDS FOLDER SEEN TRACE` makes calls fail on the logs that
are in a data directory now, FOLDER to us and SEEN to the broker, and on checkpoints. It writes a line for each into
TRACE, and SIGTERM ends it at once. Logs created meanwhile do not fail: by then the broker has met an error, or it
writes little.
"""

import argparse
import errno
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.cluster.disks.disk_errors import DiskError, error_number
from harness.cluster.disks.tracer import hold, tracing

_WRITES = "write,writev,pwrite64,pwritev,ftruncate"
_FAILING = {DiskError.IO: f"{_WRITES},read,readv,pread64,preadv,sendfile,fsync,fdatasync", DiskError.READ_ONLY: _WRITES}
_CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
"""Each is first written to a file of this name and `.tmp`."""


def files_in(folder: Path) -> Iterator[str]:
    """Yield the paths in a data directory whose calls will fail."""
    yield from (str(path.relative_to(folder)) for path in sorted(folder.glob("*/*.log")))
    yield from (f"{name}.tmp" for name in _CHECKPOINTS)


def main(arguments: list[str] | None = None) -> int:
    """Make the calls fail until the time is over or a signal arrives; a dead broker ends it too."""
    parser = argparse.ArgumentParser(prog="harness.cluster.disks.failing_calls", description=__doc__)
    parser.add_argument("pid", type=int)
    parser.add_argument("error", type=DiskError)
    parser.add_argument("seconds", type=float)
    parser.add_argument("folder", type=Path)
    parser.add_argument("seen")
    parser.add_argument("trace", type=Path)
    options = parser.parse_args(arguments)
    files = [f"{options.seen}/{file}" for file in files_in(options.folder)]
    effect = f"error={errno.errorcode[error_number(options.error)]}"
    return hold(tracing(options.pid, _FAILING[options.error], effect, options.trace, files), options.seconds)


if __name__ == "__main__":
    sys.exit(main())

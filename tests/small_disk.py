"""A disk that is full, for tests: no file of this process grows past a size."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def small_disk(limit_bytes: int) -> Iterator[None]:
    """Let no file of this process grow past a size: not even the one that pytest's own output may go to."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)

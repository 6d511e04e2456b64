"""Reads a partition of a coordinator's topic to its end, a piece at a time."""

import logging
from collections.abc import Callable
from typing import NamedTuple

from harness.broker.coordinator.topic import CoordinatorLog
from harness.broker.unexpected import failed

_log = logging.getLogger(__name__)

LOAD_CHUNK_BYTES = 5 * 1024 * 1024


class LogRead(NamedTuple):
    """The end of a read log."""

    next_offset: int
    disk_error: str
    """The disk's error; empty if all was read."""


async def read_to_end(
    partition: str,
    find: Callable[[], CoordinatorLog | None],
    *,
    end: Callable[[CoordinatorLog], int],
    take: Callable[[bytes], int],
) -> LogRead:
    """Pass every piece of a log to `take`, which returns the start of the next one; `end` is called before each piece.

    `find` returns the log, before each piece too: the replica may move to another data directory meanwhile.

    An unreadable log ends the load with what was read, as in Kafka: a coordinator that serves nothing would block its
    keys for good.
    """
    log = find()
    disk_error = "" if log is not None else "this broker has none of it"
    offset = log.log_start_offset if log else 0
    try:
        while log is not None and offset < (up_to := end(log)):
            data = await _read(log, find, offset, up_to)
            if not data:
                break
            next_offset = take(data)
            if next_offset <= offset:
                raise ValueError(f"{len(data)} bytes at offset {offset} hold no batch")
            offset, log = next_offset, find()
    except Exception as failure:  # noqa: BLE001  logged; whatever it is, see above
        disk_error = str(failure) if isinstance(failure, OSError) else ""
        failed(_log, failure, "load.failed partition=%s offset=%d", partition, offset)
    return LogRead(offset, disk_error)


async def _read(log: CoordinatorLog, find: Callable[[], CoordinatorLog | None], offset: int, up_to: int) -> bytes:
    """Return the next piece, of the log that has taken the place of this one if that happens before the read."""
    while True:
        try:
            return await log.read_off_loop(offset, max_bytes=LOAD_CHUNK_BYTES, up_to=up_to, at_least_one=True)
        except Exception:
            now = find()
            if now is None or now is log:
                raise
            log = now

"""Writes the state changes that lines of Kafka's own log show as a broker's state-change log."""

import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import BinaryIO

from harness.broker.state_log import LineStateLog
from harness.cluster.clocks import Clock, Rectified
from harness.cluster.systems.kafka import log_reader
from harness.cluster.systems.kafka.process_state import ProcessState
from harness.events import Event

_VERSION_LOGGER = "org.apache.kafka.common.utils.AppInfoParser"
_VERSION = re.compile(r"Kafka version ?: (\S+)")


def version_in(line: log_reader.LogLine | None) -> str:
    """Return the version that a process logs at its start; empty for another line."""
    match = _VERSION.fullmatch(line.text) if line is not None and line.logger == _VERSION_LOGGER else None
    return match[1] if match else ""


def not_understood(unknown: Mapping[str, int]) -> list[str]:
    """Return a sentence for each logger with lines that should be understood and are not."""
    return [f"{count} lines of {logger} could not be understood" for logger, count in sorted(unknown.items())]


def _same(event: Event) -> Event | None:
    return event


def write_state_changes(
    broker_id: int,
    wording: log_reader.Wording,
    lines: Iterator[str],
    clocks: Sequence[Clock],
    out: BinaryIO,
    within: Callable[[Event], Event | None] = _same,
) -> Counter[str]:
    """Write the state changes in lines of one release; return the counts of unknown lines.

    Those of each process stand by themselves. `within` returns the part of an event that is evidence, or None.

    A log has the broker's wall clock; its instants are put on the monotonic clock by how far apart the machine's two
    are now, and by what was done to the broker's.
    """
    rectified = Rectified(clocks, time.time_ns() - time.monotonic_ns())

    def write(line: bytes) -> None:
        out.write(line)

    def wall_ns() -> int:
        return now_ns

    def monotonic_ns() -> int:
        return instant_ns

    log: LineStateLog | None = None
    of: ProcessState | None = None
    now_ns = instant_ns = 0
    reader = log_reader.LogReader(wording)
    for process, line, event in reader.events(lines):
        if (kept := within(event)) is None:
            continue
        now_ns, instant_ns = line.time_ns, rectified.instant_ns(line.time_ns)
        if log is None or process is not of:
            of = process
            log = LineStateLog(broker_id, secrets.token_hex(8), write, wall_ns, monotonic_ns)
        log.session_changed(process.session)
        log.registered(process.broker_epoch)
        log.emit(kept)
    return reader.unknown

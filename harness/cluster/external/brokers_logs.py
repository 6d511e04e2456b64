"""Makes a state-change log of the logs of an existing broker, which its owner's command has copied.

A broker that logs to several files would leave the order of their lines open, so one file must have all lines that the
patterns of its release know; files that this one was rotated to go before it.
"""

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from harness.cluster.systems.kafka.line_events import starts
from harness.cluster.systems.kafka.log4j import too_quiet
from harness.cluster.systems.kafka.log_reader import LogLine, LogReader, Wording, line_of, wording
from harness.cluster.systems.kafka.releases import release_of
from harness.cluster.systems.kafka.state_changes import not_understood, version_in, write_state_changes
from harness.errors import ClusterError
from harness.events import ControlReceive, Event

ROTATION_NS = 1_000_000_000
"""Threads may log in another order than that of their instants, so that a file may begin before the last one ends."""
CLOCK_NS = 600_000_000_000
"""Clocks that are further apart are of another time zone."""
SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOf:
    """Whose log is read, and for which run."""

    broker_id: int
    release: str
    levels: Mapping[str, str]
    """Of the broker's loggers, by name."""
    prefix: str
    """Prefix of the run's topics; events of other topics are no evidence."""
    began_ns: int
    """When the run began, by the wall clock; what processes that ended before it logged is no evidence."""
    now_ns: int


@dataclass(slots=True, kw_only=True)
class _File:
    """What was seen of a file: when its known lines begin and end, and where the last process before the run begins."""

    path: Path
    first_ns: int
    last_ns: int
    begins: int | None = None
    """Number of a line."""


def gather(folder: Path, of: LogOf, out: Path) -> list[str]:
    """Write the state changes of a run that the files in a folder show; return sentences on lines that are unknown.

    Raises:
        ClusterError: they do not show what the release logs; says what is missing.
    """
    known, files = wording(of.release), _files(folder, of)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("wb") as file:
        within = partial(_own, prefix=of.prefix)
        unknown = write_state_changes(of.broker_id, known, _since_start(files), (), file, within)
    return [f"{_subject(of)}: {sentence}" for sentence in not_understood(unknown)]


def described(folder: Path, of: LogOf) -> str:
    """Return what the files in a folder show; raises ClusterError as `gather` does."""
    events = LogReader(wording(of.release)).events(_since_start(_files(folder, of)))
    return f"{sum(1 for _ in events):,} state changes since its start, as {of.release} words them"


def _subject(of: LogOf) -> str:
    return f"the log of broker {of.broker_id}"


def _files(folder: Path, of: LogOf) -> list[_File]:
    """Return the files with lines that are known, in order of time; raises ClusterError as `gather` does."""
    if quiet := too_quiet(release_of(of.release), of.levels):
        raise ClusterError(f"{_subject(of)} is too quiet: {'; '.join(quiet)}")
    known, files = wording(of.release), []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        seen, says = _seen(path, of, known)
        if seen is not None:
            files.append((seen, says))
    files.sort(key=lambda each: each[0].first_ns)
    if not files:
        raise ClusterError(
            f"{_subject(of)} has no line that is known: expected are lines such as"
            " `2026-01-31 12:00:00,000 INFO kafka.server.BrokerServer: …` or Kafka's own `[…] INFO … (…)`"
        )
    for (before, _), (after, _) in pairwise(files):
        if before.last_ns > after.first_ns + ROTATION_NS:
            raise ClusterError(
                f"{_subject(of)} is in {before.path.name} and {after.path.name} at the same time, which leaves the"
                " order of its lines open: log all loggers to one file"
            )
    version = next((says for _, says in reversed(files) if says), "")
    if version and version != of.release:
        raise ClusterError(f"{_subject(of)} is of {version}, and the cluster file names the release {of.release}")
    first_ns, last_ns = files[0][0].first_ns, files[-1][0].last_ns
    if last_ns > of.now_ns + CLOCK_NS or last_ns < of.began_ns - CLOCK_NS:
        ahead_s = (last_ns - of.now_ns) / SECOND_NS
        raise ClusterError(
            f"{_subject(of)} ends {abs(ahead_s):,.0f} s {'after' if ahead_s > 0 else 'before'} now: its instants must"
            " be in UTC, and the clocks of the machines must agree"
        )
    if first_ns > of.began_ns:
        raise ClusterError(f"{_subject(of)} begins after the run: keep more of it, or copy the files it was rotated to")
    return [seen for seen, _ in files]


def _seen(path: Path, of: LogOf, known: Wording) -> tuple[_File | None, str]:
    """Return what is seen of a file, and the version that it says last; None for a file without a known line."""
    seen: _File | None = None
    version = ""
    for number, text in enumerate(_lines(path)):
        line = line_of(text)
        if line is None:
            continue
        version = version_in(line) or version
        if line.logger not in known.by_logger:
            continue
        if seen is None:
            seen = _File(path=path, first_ns=line.time_ns, last_ns=line.time_ns)
        seen.first_ns, seen.last_ns = min(seen.first_ns, line.time_ns), max(seen.last_ns, line.time_ns)
        if line.time_ns <= of.began_ns and _is_start(line, known):
            seen.begins = number
    return seen, version


def _is_start(line: LogLine, known: Wording) -> bool:
    return any(make is starts and pattern.fullmatch(line.text) for pattern, make in known.by_logger[line.logger])


def _since_start(files: list[_File]) -> Iterator[str]:
    """Yield the lines from the start of the last process before the run on; all, if that is not in the files."""
    first = next((place for place in reversed(range(len(files))) if files[place].begins is not None), 0)
    for file in files[first:]:
        skipped = file.begins or 0 if file is files[first] else 0
        for number, text in enumerate(_lines(file.path)):
            if number >= skipped:
                yield text


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, which may be compressed; a last line that is torn is a line too."""
    opening = gzip.open if path.suffix == ".gz" else open
    try:
        with opening(path, "rt", encoding="utf-8", errors="replace", newline="\n") as text:
            for line in text:
                yield line.rstrip("\r\n")
    except (OSError, EOFError) as error:
        raise ClusterError(f"{path.name} cannot be read: {error}") from error


def _own(event: Event, prefix: str) -> Event | None:
    """Return the part of an event that is about the run's topics or the broker itself; None if there is none.

    Of the topic of all groups' offsets there is none, as its first records may be older than the log.
    """
    if isinstance(event, ControlReceive):
        partitions = [each for each in event.partitions if each.topic.startswith(prefix)]
        return replace(event, partitions=partitions) if partitions or not event.partitions else None
    topic = getattr(event, "topic", None)
    return event if topic is None or topic.startswith(prefix) else None

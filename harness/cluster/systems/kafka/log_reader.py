"""Reads state changes from Kafka's own log.

A line that must be known and is not is counted: then this release words something in another way.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

from harness.cluster.systems.kafka.line_events import Make
from harness.cluster.systems.kafka.patterns import MISSING_FIELDS, PATTERNS, Pattern
from harness.cluster.systems.kafka.process_state import ProcessState
from harness.cluster.systems.kafka.releases import release_of
from harness.events import BrokerStart, Event

_INSTANT = r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d),(\d{3})"
_LINE = re.compile(_INSTANT + r" [A-Z]+ ([\w.$]+): (.*)")
"""As the harness configures it: %d %p %c: %m."""
_USUAL_LINE = re.compile(rf"\[{_INSTANT}\] +[A-Z]+ +(?P<text>.*) \((?P<logger>[\w.$]+)\)")
"""As Kafka's own configuration has it: [%d] %p %m (%c)."""


class LogLine(NamedTuple):
    """One line of the log."""

    time_ns: int
    logger: str
    text: str


def line_of(text: str) -> LogLine | None:
    """Return a line; None for one that goes on with the message of another, or is torn."""
    if match := _LINE.fullmatch(text):
        return LogLine(_instant_ns(match), match[3], match[4])
    match = _USUAL_LINE.fullmatch(text)
    return None if match is None else LogLine(_instant_ns(match), match["logger"], match["text"])


def _instant_ns(match: re.Match[str]) -> int:
    seconds = int(datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp())
    return (seconds * 1000 + int(match[2])) * 1_000_000


@dataclass(frozen=True, slots=True)
class Wording:
    """The patterns of one release."""

    by_logger: dict[str, list[tuple[re.Pattern[str], Make]]]
    watched: dict[str, list[re.Pattern[str]]]
    """Lines of a logger that some pattern must know."""
    emits: frozenset[str]
    """The kinds of events that they make."""
    missing_fields: frozenset[str]
    """Fields that those never have, as kind.field."""


@cache
def wording(version: str, cluster: str = "") -> Wording:
    """Return the wording of a release's log; of an upgraded broker, with the lines that `cluster`'s release adds.

    With the older protocol and format, lines that no fact uses may be worded in yet another way.
    """
    own = _patterns(version)
    if cluster:
        others = _patterns(cluster)
        common, helping = {other.emits for other in others}, {other.make for other in others if other.emits is None}
        own = [it for it in own if (it.make in helping if it.emits is None else it.emits in common)]
    kinds = {pattern.emits for pattern in own if pattern.emits is not None}
    by_logger: dict[str, list[tuple[re.Pattern[str], Make]]] = defaultdict(list)
    watched: dict[str, list[re.Pattern[str]]] = defaultdict(list)
    for pattern in own:
        by_logger[pattern.logger].append((re.compile(pattern.text), pattern.make))
        if pattern.watched:
            watched[pattern.logger].append(re.compile(pattern.watched))
    missing = (f"{kind.ev}.{name}" for kind in kinds for name in MISSING_FIELDS.get(kind, ()))
    return Wording(dict(by_logger), dict(watched), frozenset(kind.ev for kind in kinds), frozenset(missing))


def _patterns(version: str) -> list[Pattern]:
    release = release_of(version)
    of_time = [pattern for pattern in PATTERNS if pattern.since <= release.number < pattern.before]
    return [pattern for pattern in of_time if pattern.quorum is not release.zookeeper]


@dataclass(slots=True)
class LogReader:
    """Reads the log of one broker, process after process."""

    wording: Wording
    process: ProcessState = field(default_factory=ProcessState)
    """The process that wrote the last line."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Lines that some pattern must know and none does, by logger."""

    def events(self, lines: Iterator[str]) -> Iterator[tuple[ProcessState, LogLine, Event]]:
        """Yield what lines tell, with the process that wrote each.

        What a producer was answered comes late, with the line's instant; not at all where the process ended meanwhile.
        """
        for line in filter(None, map(line_of, lines)):
            self.process.reads(line.time_ns)
            event = self.event(line)
            if isinstance(event, BrokerStart):
                self.process = ProcessState()
            if event is not None:
                yield self.process, line, event
            for answer in self.process.due():
                yield self.process, line._replace(time_ns=answer.time_ns), answer.event

    def event(self, line: LogLine) -> Event | None:
        """Return what a line tells; None for nothing."""
        for pattern, make in self.wording.by_logger.get(line.logger, ()):
            match = pattern.fullmatch(line.text)
            if match is not None:
                return make(self.process, match)
        if any(pattern.fullmatch(line.text) for pattern in self.wording.watched.get(line.logger, ())):
            self.unknown[line.logger] += 1
        return None

"""What does Kafka's own log tell of state changes? One pattern a kind of line, for the releases from 2.4 on.

The lines are those of `LOG4J`: an instant in UTC, a level, a logger, a text. A line that must be
known and is not is counted: then this release words something in another way.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from harness.events import (
    NO_OFFSET,
    BecomeFollower,
    BecomeLeader,
    BrokerRegistered,
    BrokerStart,
    BrokerStop,
    Compaction,
    ControllerElected,
    Event,
    ZkSession,
)

LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
"""
"""Its logging configuration."""

_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) [A-Z]+ ([\w.$]+): (.*)")
_NO_EPOCH = -1


class Line(NamedTuple):
    """One line of the log."""

    time_ns: int
    logger: str
    text: str


def line_of(text: str) -> Line | None:
    """Return a line; None for one that goes on with the message of another, or is torn."""
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    seconds = int(datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp())
    return Line((seconds * 1000 + int(match[2])) * 1_000_000, match[3], match[4])


@dataclass(slots=True)
class Teller:
    """Turns the lines of one process into events; begins anew with each process."""

    session: int = 0
    """Id of its ZooKeeper session; 0 for none."""
    broker_epoch: int = -1
    """czxid of its registration."""
    expired: bool = False
    handed_over: bool = False
    """Whether the controller has moved all leaders away from it."""
    epochs: dict[tuple[str, int], int] = field(default_factory=dict)
    """The epoch in which it leads or follows each partition."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Lines that some pattern must know and none does, by logger."""

    def event(self, line: Line) -> Event | None:
        """Return what a line tells; None for nothing."""
        patterns = _PATTERNS.get(line.logger, ())
        for pattern, make in patterns:
            match = pattern.fullmatch(line.text)
            if match is not None:
                return make(self, match)
        if patterns and _MUST_BE_KNOWN.fullmatch(line.text):
            self.unknown[line.logger] += 1
        return None

    def previous_epoch(self, topic: str, partition: int, epoch: int) -> int:
        """Return the epoch before this one; Kafka's own lines of followers have the present one for it."""
        before = self.epochs.get((topic, partition), _NO_EPOCH)
        self.epochs[topic, partition] = epoch
        return before


Make = Callable[[Teller, re.Match[str]], Event | None]


def _start(_teller: Teller, _match: re.Match[str]) -> Event:
    return BrokerStart(config_digest="", clean_marker=False, planted_bugs=[])


def _handed_over(teller: Teller, _match: re.Match[str]) -> None:
    teller.handed_over = True


def _stop(teller: Teller, _match: re.Match[str]) -> Event:
    return BrokerStop(controlled=teller.handed_over)


def _connected(teller: Teller, match: re.Match[str]) -> Event:
    anew = teller.expired
    teller.session, teller.expired = int(match["session"], 16), False
    return ZkSession(state="reinit" if anew else "connected")


def _expired(teller: Teller, _match: re.Match[str]) -> Event:
    teller.session, teller.expired = 0, True
    return ZkSession(state="lost")


def _registered(teller: Teller, match: re.Match[str]) -> Event:
    teller.broker_epoch = int(match["czxid"])
    return BrokerRegistered(czxid=teller.broker_epoch)


def _elected(_teller: Teller, match: re.Match[str]) -> Event:
    return ControllerElected(controller_epoch=int(match["epoch"]), epoch_zk_version=int(match["version"]))


def _leader(teller: Teller, match: re.Match[str]) -> Event:
    topic, partition, epoch = match["topic"], int(match["partition"]), int(match["epoch"])
    return BecomeLeader(
        topic=topic,
        partition=partition,
        leader_epoch=epoch,
        previous_leader_epoch=teller.previous_epoch(topic, partition, epoch),
        log_start_offset=NO_OFFSET,
        high_watermark=int(match["high_watermark"]),
        log_end_offset=int(match["offset"]),
        isr=[int(member) for member in match["isr"].split(",") if member],
        zk_version=int(match["version"]),
    )


def _follower(teller: Teller, match: re.Match[str]) -> Event:
    topic, partition, epoch = match["topic"], int(match["partition"]), int(match["epoch"])
    return BecomeFollower(
        topic=topic,
        partition=partition,
        leader=int(match["leader"]),
        leader_epoch=epoch,
        previous_leader_epoch=teller.previous_epoch(topic, partition, epoch),
        log_start_offset=NO_OFFSET,
        high_watermark=int(match["high_watermark"]),
        log_end_offset=int(match["offset"]),
    )


def _compaction(_teller: Teller, match: re.Match[str]) -> Event:
    """The line is written before anything is taken; what was cleaned before is cleaned again."""
    return Compaction(
        topic=match["topic"], partition=int(match["partition"]), from_offset=0, until_offset=int(match["until"])
    )


_PARTITION = r"(?P<topic>[\w.-]+)-(?P<partition>\d+)"
_TERM = (
    r"starts at leader epoch (?P<epoch>\d+) from offset (?P<offset>\d+)"
    r" with (?:partition epoch|zk version) (?P<version>\d+)"
)
_PATTERNS: dict[str, tuple[tuple[re.Pattern[str], Make], ...]] = {
    "kafka.server.KafkaServer": (
        (re.compile(r"starting"), _start),
        (re.compile(r"\[.*\] Controlled shutdown request returned successfully.*"), _handed_over),
        (re.compile(r"\[.*\] shut down completed"), _stop),
    ),
    "org.apache.zookeeper.ClientCnxn": (
        (re.compile(r"Session establishment complete .*, session id = (?P<session>0x[0-9a-f]+), .*"), _connected),
    ),
    "kafka.zookeeper.ZooKeeperClient": ((re.compile(r"\[.*\] Session expired\."), _expired),),
    "kafka.zk.KafkaZkClient": (
        (re.compile(r"Registered broker .*, czxid \(broker epoch\): (?P<czxid>\d+)"), _registered),
    ),
    "kafka.controller.KafkaController": (
        (re.compile(r".* incremented to (?P<epoch>\d+) and epoch zk version is now (?P<version>\d+)"), _elected),
    ),
    "kafka.log.LogCleaner": (
        (
            re.compile(
                rf"Cleaner \d+: Building offset map for log {_PARTITION} for \d+ segments in offset range"
                r" \[\d+, (?P<until>\d+)\)\."
            ),
            _compaction,
        ),
    ),
    "state.change.logger": (
        (
            re.compile(
                rf"\[.*\] Leader {_PARTITION} (?:with topic id \S+ )?{_TERM},"
                r" high watermark (?P<high_watermark>\d+), ISR \[(?P<isr>[\d,]*)\].*"
            ),
            _leader,
        ),
        (
            re.compile(
                rf"\[.*\] Follower {_PARTITION} {_TERM} and high watermark (?P<high_watermark>\d+)\."
                r" Current leader is (?P<leader>-?\d+)\..*"
            ),
            _follower,
        ),
    ),
}
"""By logger, what it tells and what is made of that."""
_MUST_BE_KNOWN = re.compile(
    r"Registered broker.*|.*successfully elected as.*|\[Broker .*\] (?:Leader|Follower) .*"
    r"|Cleaner \d+: Building offset map for log .*"
)
"""How lines begin that some pattern must know."""
TELLS = frozenset(
    kind.ev
    for kind in (
        BrokerStart,
        BrokerStop,
        ZkSession,
        BrokerRegistered,
        ControllerElected,
        BecomeLeader,
        BecomeFollower,
        Compaction,
    )
)
"""The kinds of events that the patterns make."""


def processes(lines: Iterator[str]) -> Iterator[tuple[Teller, Line, Event]]:
    """Yield what a log tells, line by line, with the teller of the process that wrote it."""
    teller = Teller()
    for text in lines:
        line = line_of(text)
        event = line and teller.event(line)
        if line and isinstance(event, BrokerStart):
            teller = Teller(unknown=teller.unknown)
        if line and event:
            yield teller, line, event

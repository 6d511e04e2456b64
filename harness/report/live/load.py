"""The load of a run in progress: what clients have done so far, second by second, from their files of operations."""

import math
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.report.live.tail import Tail
from harness.store.history import OpKind, OpType
from harness.values import PROBE_PROCESS

RATED_S = 3.0
"""Interval over which rates are measured."""
MOST_BYTES = 8 << 20
"""Limit of one look at the file of one client; of more, only the end is read."""
MOST_STEPS = 480
"""Steps of time that are kept; when there are more, two become one."""
STEPS_PER_DOUBLING = 8
"""Latencies are counted in classes; a class is a ninth wider than the one below."""
PERCENTILE = 0.99
NS_PER_S = 1_000_000_000
OUTCOMES = {OpType.OK: "acknowledged", OpType.INFO: "unknown", OpType.FAIL: "failed"}

Partition = tuple[str, int]
Key = TypeVar("Key")


class _Record(msgspec.Struct):
    topic: str = ""
    partition: int = -1
    offset: int = -1


class _Line(msgspec.Struct):
    """The part of an `Operation` that is shown."""

    type: str
    kind: str
    index: int = -1
    time_ns: int = 0
    topic: str = ""
    partition: int = -1
    offset: int = -1
    group: str = ""
    mode: str = ""
    records: list[_Record] = []


_DECODER = msgspec.json.Decoder(_Line)


@dataclass(slots=True)
class _Step:
    """What happened in one step of time."""

    ended: Counter[str] = field(default_factory=Counter)
    latencies: Counter[int] = field(default_factory=Counter)
    """Acknowledged sends, by class of latency."""
    ends: dict[Partition, int] = field(default_factory=dict)
    """Where partitions ended, by the last acknowledged record."""
    positions: dict[tuple[str, Partition], int] = field(default_factory=dict)
    """Where readers were in their partitions."""

    def add(self, later: "_Step") -> None:
        self.ended.update(later.ended)
        self.latencies.update(later.latencies)
        _raise(self.ends, later.ends)
        _raise(self.positions, later.positions)

    @property
    def p99_ms(self) -> float | None:
        """The 99th percentile of latencies, up to a ninth too high."""
        left = PERCENTILE * self.latencies.total()
        for number, count in sorted(self.latencies.items()):
            left -= count
            if left <= 0:
                return float(2 ** (number / STEPS_PER_DOUBLING))
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The load over time; each list has a value for each step, the last one for the step that is complete."""

    begin_s: float
    """Begin of the first step, in seconds since the first operation."""
    step_s: int
    acknowledged_per_s: list[float]
    errors_per_s: list[float]
    """Sends that failed, or whose outcome is unknown."""
    p99_ms: list[float | None]
    """None where no send was acknowledged."""
    lag_records: list[float | None]
    """The largest lag of a reader in a partition, in acknowledged records; None before the first poll."""

    @property
    def end_s(self) -> float:
        """End of the last step."""
        return self.begin_s + self.step_s * len(self.acknowledged_per_s)


class Load:
    """Operations of clients, look by look."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tails: dict[Path, Tail] = {}
        self._invoked_ns: dict[tuple[Path, int], int] = {}
        self._steps: dict[int, _Step] = {}
        self._step_s = 1
        self.zero_ns: int | None = None
        """Instant of the first operation; None before it."""
        self._looks: deque[tuple[float, dict[str, int]]] = deque()
        """Instant, and ended sends by outcome."""
        self.ended: Counter[str] = Counter(dict.fromkeys(OUTCOMES.values(), 0))
        """Ended sends by outcome."""

    def look(self, now_s: float) -> Iterator[tuple[str, str]]:
        """Read what is new, and yield the rates since a few seconds ago; none at the first look."""
        self.read()
        self._looks.append((now_s, dict(self.ended)))
        while len(self._looks) > 2 and self._looks[1][0] <= now_s - RATED_S:
            self._looks.popleft()
        then_s, ended = self._looks[0]
        if now_s > then_s:
            rates = {name: (self.ended[name] - ended[name]) / (now_s - then_s) for name in OUTCOMES.values()}
            yield "sends a second", ", ".join(f"{rate:.0f} {name}" for name, rate in rates.items())

    def read(self) -> None:
        """Read what is new."""
        for path in sorted(self._folder.glob("*.jsonl")):
            if path not in self._tails:
                self._begin(path)
        for path, tail in self._tails.items():
            for text in tail.lines().splitlines():
                try:
                    line = _DECODER.decode(text)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue
                self._take(path, line)

    def series(self, now_ns: int | None) -> Series | None:
        """Return the load over time until the last complete step; None before there is one.

        Args:
            now_ns: The present instant; None if the load has ended.
        """
        if self.zero_ns is None or not self._steps:
            return None
        first, end = min(self._steps), max(self._steps) + 1
        if now_ns is not None:
            end = min((now_ns - self.zero_ns) // NS_PER_S // self._step_s, end + MOST_STEPS)
        steps = [self._steps.get(number, _Step()) for number in range(first, end)]
        if not steps:
            return None
        return Series(
            begin_s=float(first * self._step_s),
            step_s=self._step_s,
            acknowledged_per_s=[step.ended[OUTCOMES[OpType.OK]] / self._step_s for step in steps],
            errors_per_s=[(step.ended.total() - step.ended[OUTCOMES[OpType.OK]]) / self._step_s for step in steps],
            p99_ms=[step.p99_ms for step in steps],
            lag_records=list(_lags(steps)),
        )

    def _begin(self, path: Path) -> None:
        """Take the instant of a file's first line, as the file may be too long to be read whole."""
        try:
            with path.open("rb") as file:
                began_ns = _DECODER.decode(file.readline()).time_ns
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return  # it is empty, or its first line is not whole: the next look begins with it
        self._tails[path] = Tail(path, MOST_BYTES)
        if self.zero_ns is None or (not self._steps and began_ns < self.zero_ns):
            self.zero_ns = began_ns

    def _take(self, path: Path, line: _Line) -> None:
        if line.kind == OpKind.SEND and line.type == OpType.INVOKE:
            self._invoked_ns[path, line.index] = line.time_ns
        elif line.kind == OpKind.SEND and line.type in OUTCOMES:
            self._take_send(line, self._invoked_ns.pop((path, line.index), None))
        elif line.kind == OpKind.POLL and line.records and line.mode != "reread" and path.stem != PROBE_PROCESS:
            step, reader = self._step(line.time_ns), line.group or path.stem
            for record in line.records:
                _raise(step.positions, {(reader, (record.topic, record.partition)): record.offset + 1})

    def _take_send(self, line: _Line, invoked_ns: int | None) -> None:
        """Take the end of a send; its begin is unknown if it was not read."""
        outcome = OUTCOMES[OpType(line.type)]
        self.ended[outcome] += 1
        step = self._step(line.time_ns)
        step.ended[outcome] += 1
        if line.type != OpType.OK:
            return
        if invoked_ns is not None:
            step.latencies[_class_of(line.time_ns - invoked_ns)] += 1
        if line.offset >= 0:
            _raise(step.ends, {(line.topic, line.partition): line.offset + 1})

    def _step(self, time_ns: int) -> _Step:
        """Return the step of an instant."""
        assert self.zero_ns is not None, "a line was read"
        number = (time_ns - self.zero_ns) // NS_PER_S // self._step_s
        if number not in self._steps and len(self._steps) >= MOST_STEPS:
            self._widen()
            return self._step(time_ns)
        return self._steps.setdefault(number, _Step())

    def _widen(self) -> None:
        """Make one step of two."""
        self._step_s *= 2
        wide: dict[int, _Step] = {}
        for number, step in sorted(self._steps.items()):
            wide.setdefault(number // 2, _Step()).add(step)
        self._steps = wide


def _class_of(latency_ns: int) -> int:
    """Return the class of a latency: its upper bound is two to the class through `STEPS_PER_DOUBLING`, in ms."""
    return math.ceil(math.log2(max(latency_ns / 1e6, 0.01)) * STEPS_PER_DOUBLING)


def _raise(known: dict[Key, int], new: dict[Key, int]) -> None:
    for key, value in new.items():
        known[key] = max(value, known.get(key, value))


def _lags(steps: list[_Step]) -> Iterator[float | None]:
    """Yield the largest lag after each step, of the readers and partitions of which something was read."""
    ends: dict[Partition, int] = {}
    positions: dict[tuple[str, Partition], int] = {}
    for step in steps:
        _raise(ends, step.ends)
        _raise(positions, step.positions)
        lags = [ends.get(partition, 0) - position for (_, partition), position in positions.items()]
        yield max(0.0, *lags) if lags else None

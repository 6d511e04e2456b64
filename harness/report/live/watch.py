"""The state of a run in progress, from its folder alone, with any driver.

A look reads only what was written since the last one, and of a long file only its end, so that looking costs the
run nothing.
"""

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.errors import EvidenceError
from harness.progress import number_of
from harness.report.live.load import Load, Series
from harness.report.live.remaining import Remaining
from harness.report.live.tail import Tail
from harness.scenario.plan import PlannedFault, load_plan
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase

SHOWN = 4
"""Number of partitions that are named."""
LEADERS = re.compile(r"/brokers/topics/(?P<topic>[^/]+)/partitions/(?P<partition>\d+)/state")
REGISTRATION = re.compile(r"/brokers/ids/(?P<broker>\d+)")
TOPIC = re.compile(r"/brokers/topics/(?P<topic>[^/]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The state of a run."""

    phase: str
    """Empty before the first."""
    rows: list[tuple[str, str]]
    """Each fact about it, as (subject, text)."""

    @property
    def line(self) -> str:
        """All of it in one line."""
        return " · ".join(f"{about}: {words}" for about, words in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The state of a run as numbers."""

    phase: str
    in_force: list[str]
    """Kinds of the faults in force."""
    sends: dict[str, int]
    """Ended sends since the start, by outcome: acknowledged, unknown, failed."""
    brokers: int
    """Registered brokers."""
    partitions: int
    without_leader: int
    isr_not_full: int
    """Partitions with a replica outside the ISR."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWindow:
    """A fault that was or is in force."""

    fault: str
    begin_s: float
    end_s: float | None
    """None while it is in force. Both in seconds since the first operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The run so far."""

    series: Series
    windows: list[LiveWindow]


class Watch:
    """Looks at one run again and again."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._phases = Tail(folder.phases)
        self._phase: dict[str, Any] = {}
        self._load = Load(folder.operations)
        self._faults = _Faults(folder)
        self._cluster = _Cluster(folder.zookeeper)
        self._remaining = Remaining(folder)

    def look(self) -> Situation:
        """Return how the run is doing now."""
        for entry in self._phases.entries():
            self._phase = entry if entry.get("event") == "started" else {**self._phase, "event": "ended"}
        phase = str(self._phase.get("phase", ""))
        rows = []
        if self._driving:
            rows = [*self._faults.look(here=self._here), *self._load.look(time.monotonic()), *self._cluster.look()]
        return Situation(phase=phase, rows=[*self._left(phase), *rows])

    def past(self) -> Past | None:
        """Return the run so far, as of the last look; None before the load has lasted a step of time."""
        if not self._driving:
            self._load.read()
            for _ in self._faults.look(here=False):
                pass
        series = self._load.series(time.monotonic_ns() if self._driving and self._here else None)
        if series is None or self._load.zero_ns is None:
            return None
        return Past(series=series, windows=self._faults.windows(self._load.zero_ns))

    def numbers(self) -> Numbers:
        """Return the same as numbers."""
        situation = self.look()
        return Numbers(
            phase=situation.phase,
            in_force=[str(entry.get("fault", "")) for entry in self._faults.in_force()],
            sends=dict(self._load.ended),
            brokers=len(self._cluster.registered()),
            partitions=len(self._cluster.isrs),
            without_leader=len(self._cluster.without_leader()),
            isr_not_full=len(self._cluster.short()),
        )

    @property
    def _driving(self) -> bool:
        return self._phase.get("phase") == Phase.DRIVE and self._phase.get("event") == "started"

    @property
    def _here(self) -> bool:
        """Whether this machine carries it out, so that both have one monotonic clock."""
        return self._phase.get("host") == socket.gethostname()

    def _left(self, phase: str) -> Iterator[tuple[str, str]]:
        """Yield how long the run will still take."""
        with suppress(ValueError, TypeError):  # a line of something else
            began = datetime.fromisoformat(self._phase.get("utc", ""))
            load_left_s = self._faults.left_s(self._remaining.load_s) if self._driving and self._here else None
            if text := self._remaining.text(Phase(phase), began, load_left_s):
                yield "still takes", text


class _Faults:
    """Faults in force, and the next one."""

    def __init__(self, folder: RunFolder) -> None:
        self._path = folder.plan
        self._journal = Tail(folder.journal)
        self._planned: list[PlannedFault] = []
        self._begun: dict[int, dict[str, Any]] = {}
        self._over: set[int] = set()
        self._ended_ns: dict[int, int] = {}
        self._postponed: dict[int, dict[str, Any]] = {}

    def look(self, *, here: bool) -> Iterator[tuple[str, str]]:
        if not self._planned:
            with suppress(EvidenceError):  # the run that uses the plan reports the error
                self._planned = load_plan(self._path).faults
        for entry in self._journal.entries():
            number, step = entry.get("injection", -1), entry.get("step")
            if step == "postponed":
                self._postponed[number] = entry
            elif step == "healed" or (step in ("inconclusive", "failed") and number not in self._begun):
                self._over.add(number)
                self._ended_ns.setdefault(number, entry.get("time_ns", 0))
            else:
                self._begun.setdefault(number, entry)
        yield "in force", ", ".join(_named(entry) for entry in self.in_force()) or "no fault"
        known = {*self._begun, *self._over}
        if waiting := [entry for number, entry in self._postponed.items() if number not in known]:
            yield "postponed", ", ".join(map(_named, waiting))
        known |= self._postponed.keys()
        coming = [each for each in self._planned if each.injection not in known and not each.spare]
        if coming:
            first = min(coming, key=lambda each: each.at_s)
            yield "next", f"{first.fault} {first.target}".strip() + self._when(first, here=here)

    def in_force(self) -> list[dict[str, Any]]:
        """Return the journal's entry of each fault in force."""
        return [entry for number, entry in self._begun.items() if number not in self._over]

    def windows(self, zero_ns: int) -> list[LiveWindow]:
        """Return the faults that were or are in force, in their order."""
        return [
            LiveWindow(
                fault=_named(entry),
                begin_s=(entry["time_ns"] - zero_ns) / 1e9,
                end_s=(self._ended_ns[number] - zero_ns) / 1e9 if number in self._ended_ns else None,
            )
            for number, entry in self._begun.items()
        ]

    def left_s(self, load_s: float | None) -> float | None:
        """Return the time under load that is left of `load_s`; all of it if the schedule has not begun."""
        if load_s is None or (began_s := self._began_s()) is None:
            return load_s
        return max(began_s + load_s - time.monotonic(), 0.0)

    def _began_s(self) -> float | None:
        """Return when the schedule began, by this machine's clock; None if no fault has begun."""
        at_s = {each.injection: each.at_s for each in self._planned}
        begins = [entry["time_ns"] / 1e9 - at_s[number] for number, entry in self._begun.items() if number in at_s]
        return min(begins, default=None)

    def _when(self, planned: PlannedFault, *, here: bool) -> str:
        """Return the time until it is due; empty if the schedule has not begun."""
        if not here or (began_s := self._began_s()) is None:
            return ""
        return f" in {max(began_s + planned.at_s - time.monotonic(), 0):.0f} s"


def _named(entry: dict[str, Any]) -> str:
    return f"{entry.get('fault', '')} {', '.join(entry.get('targets') or ())}".strip()


class _Cluster:
    """Brokers, leaders and ISRs, by ZooKeeper."""

    def __init__(self, history: Path) -> None:
        self._history = Tail(history)
        self._brokers: dict[str, bool] = {}
        self._leaders: dict[str, int] = {}
        self.isrs: dict[str, list[int]] = {}
        self._replicas: dict[str, int] = {}

    def look(self) -> Iterator[tuple[str, str]]:
        for entry in self._history.entries():
            self._take(str(entry.get("path")), entry.get("type") == "delete", str(entry.get("data") or ""))
        if not self._brokers:
            return
        up = self.registered()
        yield "brokers", f"{len(up)} of {len(self._brokers)} registered: {', '.join(up) or 'none'}"
        yield "without leader", _listed(self.without_leader(), len(self._leaders))
        yield "ISR not full", _listed(self.short(), len(self.isrs))

    def registered(self) -> list[str]:
        """Return the registered brokers."""
        return [broker for broker, registered in sorted(self._brokers.items()) if registered]

    def without_leader(self) -> list[str]:
        """Return the partitions without a leader."""
        return [partition for partition, leader in self._leaders.items() if leader < 0]

    def short(self) -> list[str]:
        """Return the partitions with a replica outside the ISR, each with its ISR."""
        return [
            f"{partition} ({','.join(map(str, isr))})"
            for partition, isr in self.isrs.items()
            if len(isr) < self._replicas.get(partition, len(isr))
        ]

    def _take(self, path: str, deleted: bool, data: str) -> None:
        if registration := REGISTRATION.fullmatch(path):
            self._brokers[registration["broker"]] = not deleted
        elif state := LEADERS.fullmatch(path):
            partition = f"{state['topic']}-{state['partition']}"
            if deleted:
                self._leaders.pop(partition, None)
                self.isrs.pop(partition, None)
            elif isinstance(leader := _object(data).get("leader"), int):
                self._leaders[partition] = leader
                self.isrs[partition] = _object(data).get("isr") or []
        elif topic := TOPIC.fullmatch(path):
            for number, replicas in (_object(data).get("partitions") or {}).items():
                self._replicas[f"{topic['topic']}-{number}"] = len(replicas)


def _object(data: str) -> dict[str, Any]:
    """Return a znode's content as an object; empty if it is none."""
    try:
        content = json.loads(data)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _listed(partitions: list[str], of: int) -> str:
    if not partitions:
        return f"none of {number_of(of, 'partition')}"
    more = f" and {len(partitions) - SHOWN} more" if len(partitions) > SHOWN else ""
    return f"{len(partitions)} of {number_of(of, 'partition')}: {', '.join(partitions[:SHOWN])}{more}"

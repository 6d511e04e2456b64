"""The state of a run in progress, from its folder alone, with any driver.

A look reads only what was written since the last one, and of a long file only its end, so that looking costs the
run nothing.
"""

import json
import re
import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import EvidenceError
from harness.progress import number_of
from harness.scenario.plan import PlannedFault, load_plan
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase

RATED_S = 3.0
"""Interval over which rates are measured."""
MOST_BYTES = 1 << 20
"""Limit of one look at the clients' files."""
SHOWN = 4
"""Number of partitions that are named."""
ENDED = re.compile(rb'"type": ?"(ok|fail|info)", ?"kind": ?"send"')
LEADERS = re.compile(r"/brokers/topics/(?P<topic>[^/]+)/partitions/(?P<partition>\d+)/state")
REGISTRATION = re.compile(r"/brokers/ids/(?P<broker>\d+)")
TOPIC = re.compile(r"/brokers/topics/(?P<topic>[^/]+)")
OUTCOMES = {b"ok": "acknowledged", b"info": "unknown", b"fail": "failed"}


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


class Tail:
    """The growing end of a file, look by look."""

    def __init__(self, path: Path, most_bytes: int | None = None) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._offset = 0
        self._torn = b""

    def lines(self) -> bytes:
        """Return the whole new lines; if more than `most_bytes`, only the last ones."""
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, 2)
                if self._most_bytes is not None and size - self._offset > self._most_bytes:
                    self._offset, self._torn = size - self._most_bytes, b""
                file.seek(self._offset)
                new = self._torn + file.read()
        except OSError:
            return b""
        self._offset += len(new) - len(self._torn)
        whole, newline, self._torn = new.rpartition(b"\n")
        return whole + newline

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield those that are JSON objects."""
        for line in self.lines().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry


class Watch:
    """Looks at one run again and again."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._phases = Tail(folder.phases)
        self._phase: dict[str, Any] = {}
        self._load = _Load(folder.operations)
        self._faults = _Faults(folder)
        self._cluster = _Cluster(folder.zookeeper)

    def look(self) -> Situation:
        """Return how the run is doing now."""
        for entry in self._phases.entries():
            self._phase = entry
        phase = str(self._phase.get("phase", ""))
        if phase != Phase.DRIVE or self._phase.get("event") != "started":
            return Situation(phase=phase, rows=[])
        here = self._phase.get("host") == socket.gethostname()
        return Situation(phase=phase, rows=[*self._faults.look(here=here), *self._load.look(), *self._cluster.look()])

    def numbers(self) -> Numbers:
        """Return the same as numbers."""
        situation = self.look()
        return Numbers(
            phase=situation.phase,
            in_force=[str(entry.get("fault", "")) for entry in self._faults.in_force()],
            sends={name: self._load.ended[key] for key, name in OUTCOMES.items()},
            brokers=len(self._cluster.registered()),
            partitions=len(self._cluster.isrs),
            without_leader=len(self._cluster.without_leader()),
            isr_not_full=len(self._cluster.short()),
        )


class _Load:
    """Throughput of clients."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tails: dict[Path, Tail] = {}
        self._looks: deque[tuple[float, dict[bytes, int]]] = deque()
        """Instant, and ended operations by outcome."""
        self.ended = dict.fromkeys(OUTCOMES, 0)

    def look(self) -> Iterator[tuple[str, str]]:
        for path in sorted(self._folder.glob("*.jsonl")):
            for outcome in ENDED.findall(self._tails.setdefault(path, Tail(path, MOST_BYTES)).lines()):
                self.ended[outcome] += 1
        now_s = time.monotonic()
        self._looks.append((now_s, dict(self.ended)))
        while len(self._looks) > 2 and self._looks[1][0] <= now_s - RATED_S:
            self._looks.popleft()
        then_s, ended = self._looks[0]
        if now_s > then_s:
            rates = {name: (self.ended[key] - ended[key]) / (now_s - then_s) for key, name in OUTCOMES.items()}
            yield "sends a second", ", ".join(f"{rate:.0f} {name}" for name, rate in rates.items())


class _Faults:
    """Faults in force, and the next one."""

    def __init__(self, folder: RunFolder) -> None:
        self._path = folder.plan
        self._journal = Tail(folder.journal)
        self._planned: list[PlannedFault] = []
        self._begun: dict[int, dict[str, Any]] = {}
        self._over: set[int] = set()
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

    def _when(self, planned: PlannedFault, *, here: bool) -> str:
        """Return the time until it is due, by this machine's clock; empty if the schedule has not begun."""
        at_s = {each.injection: each.at_s for each in self._planned}
        begins = [entry["time_ns"] / 1e9 - at_s[number] for number, entry in self._begun.items() if number in at_s]
        if not begins or not here:
            return ""
        return f" in {max(min(begins) + planned.at_s - time.monotonic(), 0):.0f} s"


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

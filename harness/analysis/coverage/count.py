"""What did a run try and see? Its journal, the brokers' lines and what clients gave up with, read once."""

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.analysis.coverage import roles, transitions
from harness.analysis.coverage.roles import Situation
from harness.analysis.coverage.transitions import Transitions
from harness.broker.wire.error_codes import ErrorCode
from harness.contracts.faults import AIMED_AT
from harness.contracts.members import CLIENT
from harness.contracts.zookeeper_servers import servers_of
from harness.events import (
    KIND,
    ControlResponse,
    Fenced,
    GroupStateChange,
    OffsetCommit,
    OffsetFetch,
    OffsetForLeaderEpoch,
    ProduceResponse,
)
from harness.store.coverage import Counts, Coverage, Injected, Played, When, total
from harness.store.folder import RunFolder
from harness.store.history import InjectionStep

_ERROR = re.compile(rb'"error":(-?[1-9]\d{0,4})(?!\d)')
_API = re.compile(rb'"api":"(\w+)"')
_GROUP = re.compile(rb'"group":"((?:[^"\\]|\\.)*)"')
_GAVE_UP = re.compile(rb'"error":"(\w+)')
_BROKER = re.compile(r"\d{1,10}")
_OPERATION = re.compile(rb'"kind":"(\w+)"')

_ANSWERS = {
    ProduceResponse.ev: "Produce",
    OffsetCommit.ev: "OffsetCommit",
    OffsetFetch.ev: "OffsetFetch",
    OffsetForLeaderEpoch.ev: "OffsetForLeaderEpoch",
}
"""APIs whose every answer is a line of its own."""
_CONTROLLED = ("LeaderAndIsr", "StopReplica", "UpdateMetadata")
"""Whose answers the controller logs, and the broker once more if it refuses."""
_OF_GROUPS = {OffsetCommit.ev, GroupStateChange.ev}
DAMAGED = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""What comes of a line that is torn or damaged, which the checks say."""
_KINDS = {kind.encode(): kind for kind in transitions.KINDS | roles.KINDS}
_ANSWERED = {kind.encode() for kind in (*_ANSWERS, ControlResponse.ev, Fenced.ev)}
_GROUPED = {kind.encode() for kind in _OF_GROUPS}


def coverage_of(folder: RunFolder) -> Coverage:
    """Return the coverage in the run folder's evidence; unreadable lines do not count."""
    evidence = folder.evidence()
    brokers = _Brokers(transitions={}, errors={}, groups=set(), lines=[])
    for path in evidence["state_changes"]:
        brokers.read(path)
    for path in evidence["operations"]:
        _count_given_up(path, brokers.errors)
    injected = [each for path in evidence["journal"] for each in _injected(_windows(path), brokers)]
    return total([Coverage(injected=injected, transitions=brokers.transitions, errors=brokers.errors)])


def record(folder: RunFolder) -> None:
    """Write down what a run tried and saw, now that its evidence is all there is.

    Raises:
        OSError: it cannot be read or written.
    """
    coverage_of(folder).save(folder.coverage)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Brokers:
    """What the brokers' lines say."""

    transitions: Counts
    errors: Counts
    groups: set[str]
    lines: list[tuple[int, int, str, Mapping[str, Any]]]
    """Instant, number, kind and content of the lines about roles."""

    def read(self, path: Path) -> None:
        """Take in the lines of one broker."""
        counting = Transitions(self.transitions)
        with path.open("rb") as file:
            for text in file:
                if not (match := KIND.search(text)):
                    continue
                kind = match[1]
                if kind in _GROUPED and (group := _GROUP.search(text)):
                    self.groups.add(group[1].decode(errors="replace"))
                if kind in _ANSWERED:
                    self._answered(kind.decode(), text)
                elif kind in _KINDS:
                    self._see(_KINDS[kind], text, counting)

    def _answered(self, kind: str, text: bytes) -> None:
        if not (error := _ERROR.search(text)):
            return
        api = _ANSWERS.get(kind) or next((name.decode() for name in _API.findall(text)), "")
        if kind != Fenced.ev or api not in (*_CONTROLLED, *_ANSWERS.values()):
            _add(self.errors, api, _named(int(error[1])))

    def _see(self, kind: str, text: bytes, counting: Transitions) -> None:
        try:
            line = json.loads(text)
            if kind in transitions.KINDS:
                counting.see(kind, line)
            if kind in roles.KINDS:
                self.lines.append((int(line["mono"]), len(self.lines), kind, line))
        except DAMAGED:
            return


def _count_given_up(path: Path, errors: Counts) -> None:
    """Count the errors with which operations of a client ended, by operation."""
    content = path.read_bytes()
    for match in _GAVE_UP.finditer(content):
        operation = _OPERATION.search(content, content.rfind(b"\n", 0, match.start()) + 1)
        _add(errors, f"client's {operation[1].decode() if operation else 'operation'}", match[1].decode())


def _add(counts: Counts, of: str, name: str) -> None:
    by_name = counts.setdefault(of, {})
    by_name[name] = by_name.get(name, 0) + 1


def _named(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


@dataclass(slots=True, kw_only=True)
class _Window:
    """One injection of the journal."""

    fault: str
    targets: list[str]
    state: Mapping[str, Any]
    began_ns: int
    healed_ns: int | None = None
    confirmed: bool = False


def _windows(path: Path) -> list[_Window]:
    """Return the injections that were begun, in their order."""
    windows: dict[int, _Window] = {}
    for line in _entries(path):
        try:
            number, instant, step = line["injection"], int(line["time_ns"]), line["step"]
            state = dict(line["state"])
            targets = [str(target) for target in state.get(AIMED_AT, line["targets"])]
            window = windows.get(number)
            if window is None and step == InjectionStep.INTENDED:
                windows[number] = _Window(fault=str(line["fault"]), targets=targets, state=state, began_ns=instant)
            elif window is not None:
                window.targets = window.targets or targets
                window.confirmed |= step == InjectionStep.CONFIRMED
                window.healed_ns = instant if step == InjectionStep.HEALED else window.healed_ns
        except DAMAGED:
            continue
    return list(windows.values())


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    for text in path.read_bytes().splitlines():
        try:
            line = json.loads(text)
        except DAMAGED:
            continue
        if isinstance(line, dict) and "injection" in line:
            yield line


def _injected(windows: Iterable[_Window], brokers: _Brokers) -> Iterator[Injected]:
    """Yield each injection in each role of those that it was aimed at."""
    windows = sorted(windows, key=lambda window: window.began_ns)
    lines = sorted(brokers.lines, key=lambda each: each[:2])
    instants = [instant for instant, *_ in lines]
    situation, seen = Situation(brokers.groups), 0
    for window in windows:
        until = bisect_left(instants, window.began_ns)
        for _, _, kind, line in lines[seen:until]:
            with suppress(*DAMAGED):
                situation.see(kind, line)
        seen = max(seen, until)
        others = [other for other in windows if other is not window and _in_force(other, window.began_ns)]
        when = When.ANOTHER if others else When.QUIET if situation.is_in_sync else When.RECOVERING
        for role in _roles(window, situation):
            yield Injected(fault=window.fault, role=role, when=when, tried=1, confirmed=int(window.confirmed))


def _in_force(window: _Window, instant: int) -> bool:
    return window.began_ns <= instant and (window.healed_ns is None or window.healed_ns > instant)


def _roles(window: _Window, situation: Situation) -> set[Played]:
    if CLIENT in window.state:
        return {Played.CLIENT}
    if servers_of(window.state):
        return {Played.ZOOKEEPER}
    numbers = [int(target) for target in window.targets if _BROKER.fullmatch(target)]
    return {role for number in numbers for role in situation.roles_of(number)} or {Played.NONE}

"""Walks the state-change log of a broker in its order: which of its events are no legal step of their subject?

A broker's log is walked life by life. Within a life the state of a subject is known from its first line on if the life
is logged from its start; after a gap in the numbering of lines every state is unknown, and the next event of a subject
is taken as it is. A line that cannot be read is such a gap.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import DecodeError, structs
from msgspec.json import decode

from harness.events import BrokerStart
from harness.model.step import Event, Illegal, Key, Legal, Parts, Rule, Subject

NO_BROKER = -1
UNREADABLE = (DecodeError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What is raised where a line is not as `harness/events.py` has it: what follows is not known."""
COMMON = frozenset({"ts", "mono", "seq", "broker", "inc", "session", "broker_epoch"})


@dataclass(frozen=True, slots=True, kw_only=True)
class IllegalStep:
    """An event that breaks a rule, with the state before it."""

    rule: Rule
    subject: str
    key: Key
    """Which one of its kind."""
    broker: int
    incarnation: str
    seq: int
    time_ns: int | None
    """On the broker's monotonic clock; None in ZooKeeper's history."""
    before: str
    event: Event

    @property
    def name(self) -> str:
        """The subject as text."""
        return "-".join(map(str, self.key)) or f"broker {self.broker}"

    @property
    def partition(self) -> tuple[str | None, int | None]:
        """Topic and partition, where the step is about one."""
        topic, partition = self.event.get("topic"), self.event.get("partition")
        if self.subject in ("replica", "leader", "znodes"):
            topic, partition = self.key if len(self.key) > 1 else (None, None)
        return (topic, partition) if isinstance(topic, str) and isinstance(partition, int) else (None, None)


@dataclass(slots=True, kw_only=True)
class Walked:
    """What was walked of one kind of subject in one life of a broker."""

    subject: str
    broker: int
    incarnation: str
    steps: int = 0
    unread: int = 0
    """Events that lack a field, or have one of another type than the model reads."""


class Life:
    """One life of a broker, as it is walked."""

    def __init__(self, subjects: Sequence[Subject], broker: int, incarnation: str) -> None:
        self.walked = {
            each.name: Walked(subject=each.name, broker=broker, incarnation=incarnation) for each in subjects
        }
        self._subjects = subjects
        self._states: dict[str, dict[Key, Any]] = {each.name: {} for each in subjects}
        self._fresh: dict[str, Any] = {each.name: each.fresh for each in subjects}
        self._next = 0

    def follows(self, seq: int, kind: str) -> None:
        """Forget what is known where lines between are missing, or its start is."""
        if seq != self._next or (seq == 0 and kind != BrokerStart.ev):
            for subject in self._subjects:
                self.loses(subject)
        self._next = seq + 1

    def loses(self, subject: Subject) -> None:
        """Forget what is known of a kind of subject."""
        self._states[subject.name].clear()
        self._fresh[subject.name] = None

    def step(self, subject: Subject, legal: Legal, key: Key, event: Event) -> tuple[Rule, Any] | None:
        """Take an event as the next step; return the rule that it breaks and the state before it."""
        states = self._states[subject.name]
        before = states.get(key, self._fresh[subject.name])
        walked = self.walked[subject.name]
        walked.steps += 1
        try:
            after = legal(before, event)
        except UNREADABLE:
            walked.unread += 1
            states[key] = None
            return None
        if isinstance(after, Illegal):
            states[key] = after.then
            return after.rule, before
        states[key] = after
        return None


class Walker:
    """Walks the logs of brokers."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self._subjects = subjects
        self._by_kind: dict[str, list[tuple[Subject, Legal]]] = {}
        for subject in subjects:
            for kind, legal in subject.legal.items():
                self._by_kind.setdefault(kind, []).append((subject, legal))
        self._lives: dict[tuple[int, str], Life] = {}
        self._told: set[str] = set()

    @property
    def walked(self) -> list[Walked]:
        """What was walked so far, without what had no step."""
        return [each for life in self._lives.values() for each in life.walked.values() if each.steps]

    def walk(self, lines: Iterable[bytes | Event]) -> Iterator[IllegalStep]:
        """Yield the illegal steps of lines, or of their contents, in their order."""
        by_kind, life = self._by_kind, None
        for line in lines:
            try:
                event: Event = decode(line) if isinstance(line, bytes) else line
                life = self._life(event)
                life.follows(event["seq"], event["ev"])
                subjects = by_kind.get(event["ev"], ())
                self._told.add(event["ev"])
            except UNREADABLE:
                continue
            for subject, legal in subjects:
                try:
                    split = subject.parts.get(event["ev"])
                    parts = ((subject.key(event), event),) if split is None else split(event)
                except UNREADABLE:
                    life.loses(subject)
                    continue
                for key, part in parts:
                    broken = life.step(subject, legal, key, part)
                    if broken is not None:
                        yield _illegal(subject, key, broken, event)

    def may_judge(self, step: IllegalStep) -> bool:
        """Return whether the logs, once all are walked, have the lines without which a rule says nothing."""
        return not step.rule.needs or step.rule.needs in self._told

    def _life(self, event: Event) -> Life:
        place = event["broker"], event["inc"]
        life = self._lives.get(place)
        if life is None:
            life = self._lives[place] = Life(self._subjects, *place)
        return life


def _illegal(subject: Subject, key: Key, broken: tuple[Rule, Any], event: Event) -> IllegalStep:
    rule, before = broken
    return IllegalStep(
        rule=rule,
        subject=subject.name,
        key=key,
        broker=event["broker"],
        incarnation=event["inc"],
        seq=event["seq"],
        time_ns=event["mono"],
        before=described(before),
        event={name: value for name, value in event.items() if name not in COMMON},
    )


def described(state: Any) -> str:
    """Return a state as text: `role=leader leader_epoch=3`; what is unknown is left out."""
    fields = {} if state is None else structs.asdict(state)
    told = " ".join(f"{name}={_text(value)}" for name, value in fields.items() if value is not None)
    return told or "unknown"


def _text(value: Any) -> str:
    return str(sorted(value)) if isinstance(value, frozenset) else str(value)


def _illegal_change(subject: Subject, key: Key, broken: tuple[Rule, Any], change: Event, event: Event) -> IllegalStep:
    rule, before = broken
    return IllegalStep(
        rule=rule,
        subject=subject.name,
        key=key,
        broker=NO_BROKER,
        incarnation="",
        seq=change["zxid"],
        time_ns=None,
        before=described(before),
        event={"path": change["path"], **event},
    )


def _changes(lines: Iterable[bytes | Event]) -> Iterator[Event]:
    """Yield the lines that are changes of topics and their partitions."""
    for line in lines:
        if isinstance(line, bytes) and b"/topics/" not in line:
            continue
        try:
            change = decode(line) if isinstance(line, bytes) else line
            if isinstance(change["zxid"], int) and isinstance(change["path"], str):
                yield change
        except UNREADABLE:
            continue


class ZnodeWalker:
    """Walks ZooKeeper's history."""

    def __init__(self, subject: Subject, split: Parts) -> None:
        self._subject, self._split = subject, split
        self._life = Life((subject,), NO_BROKER, "")

    @property
    def walked(self) -> list[Walked]:
        """What was walked so far."""
        return [each for each in self._life.walked.values() if each.steps]

    def walk(self, lines: Iterable[bytes | Event]) -> Iterator[IllegalStep]:
        """Yield the illegal steps of a history, in the order of transactions; a change that is there twice is one."""
        seen = set()
        for change in sorted(_changes(lines), key=lambda change: change["zxid"]):
            place = change["zxid"], change["path"], change["type"]
            if place in seen:
                continue
            seen.add(place)
            try:
                parts = self._split(change)
            except UNREADABLE:
                continue
            for key, event in parts:
                broken = self._life.step(self._subject, self._subject.legal[event["ev"]], key, event)
                if broken is not None:
                    yield _illegal_change(self._subject, key, broken, change, event)

    def may_judge(self, step: IllegalStep) -> bool:
        """Return that the history is all that a rule about it needs."""
        return True

"""Which abstract states did a schedule reach? They are the signal of guided search, after ModelFuzz.

A state is symmetric in brokers: it says how many replicas of a partition are leader, alive, in the ISR, behind the high
watermark or behind in epochs, and never which broker that is. Features are states, ordered pairs of them under the
faults in force, transitions of the controller's and of groups' state machines, refused requests, and watermarks: how
far a quantity has come, in powers of two.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from typing import Any

from harness.events import (
    Append,
    BecomeFollower,
    BecomeLeader,
    ControllerElected,
    ControllerResigned,
    CoordinatorLoad,
    Event,
    Fenced,
    GroupStateChange,
    HighWatermark,
    IsrResult,
    PartitionStateChange,
    ReplicaStateChange,
    Truncate,
    ZkWrite,
)
from harness.scenario.plan import Plan
from harness.simulation.evidence import EPOCH_MS
from harness.simulation.loop import START_S
from harness.simulation.schedule import SimulatedHistory
from harness.store.history import InjectionStep, JournalEntry, ZnodeChange
from harness.values import TopicPartition

MOST_EPOCHS = 3
"""A follower that has missed so many leader epochs is as far behind as one that missed more."""
_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_BROKER = re.compile(r"/brokers/ids/(\d+)")
BEGUN, ENDED = InjectionStep.INJECTED, (InjectionStep.HEALED, InjectionStep.HEAL_FAILED)


def features_of(history: SimulatedHistory, begins_s: float = 0.0) -> dict[str, float]:
    """Return the features of a schedule, each with the second at which it was reached first.

    Args:
        history: Of the schedule.
        begins_s: What is taken off each instant: when the load began.
    """
    seen = _Seen()
    for now_ns, _, broker_id, what in _in_order(history):
        seen.now_s = round(now_ns / 1e9 - START_S - begins_s, 3)
        seen.take(broker_id, what)
    return seen.features


def load_began_s(history: SimulatedHistory, plan: Plan) -> float:
    """Return the second at which the load began, by the first fault that was carried out at its planned instant."""
    for entry in history.journal:
        if entry.step is InjectionStep.INTENDED:
            return entry.time_ns / 1e9 - START_S - plan.faults[entry.injection].at_s
    return 0.0


Moment = tuple[int, int, int, Any]
"""Virtual nanoseconds, a number that keeps the order of one source, the broker or -1, and what happened."""


def _in_order(history: SimulatedHistory) -> Iterator[Moment]:
    def logged(broker_id: int) -> Iterator[Moment]:
        return ((each.time_ns, n, broker_id, each.event) for n, each in enumerate(history.logs[broker_id].events))

    start_ns = round(START_S * 1_000_000_000)
    znodes = (((each.time_ms - EPOCH_MS) * 1_000_000 + start_ns, n, -1, each) for n, each in enumerate(history.znodes))
    journal = ((each.time_ns, n, -1, each) for n, each in enumerate(history.journal))
    return merge(*map(logged, sorted(history.logs)), znodes, journal, key=lambda moment: moment[0])


@dataclass(slots=True)
class _Replica:
    """What is known of one replica."""

    log_end_offset: int = 0
    epoch: int = -1
    """Of its newest batch, or the one in which it leads."""


@dataclass(slots=True)
class _Partition:
    """What is known of one partition."""

    leader: int = -1
    isr: frozenset[int] = frozenset()
    leader_epoch: int = -1
    high_watermark: int = 0
    replicas: dict[int, _Replica] = field(default_factory=dict)
    state: str = ""

    def abstract(self, alive: Iterable[int]) -> str:
        """Return its state without the names of brokers: a word a replica, sorted."""
        words = []
        for broker_id, replica in self.replicas.items():
            ahead = replica.log_end_offset - self.high_watermark
            missed = min(MOST_EPOCHS, max(0, self.leader_epoch - replica.epoch))
            words.append(
                ("L" if broker_id == self.leader else "f")
                + ("a" if broker_id in alive else "d")
                + ("i" if broker_id in self.isr else "o")
                + ("<" if ahead < 0 else ">" if ahead else "=")
                + str(missed)
            )
        return " ".join(sorted(words))


@dataclass(slots=True)
class _Seen:
    """All that has happened so far."""

    now_s: float = 0.0
    features: dict[str, float] = field(default_factory=dict)
    partitions: dict[TopicPartition, _Partition] = field(default_factory=dict)
    alive: set[int] = field(default_factory=set)
    in_force: dict[int, str] = field(default_factory=dict)
    """Faults by injection."""
    controllers: set[int] = field(default_factory=set)
    """Brokers that take themselves for the controller."""

    def take(self, broker_id: int, what: Event | ZnodeChange | JournalEntry) -> None:
        """Take in what happened next."""
        match what:
            case JournalEntry():
                self._fault(what)
            case ZnodeChange():
                self._znode(what)
            case Append() | HighWatermark() | BecomeLeader() | BecomeFollower() | Truncate():
                self._replica(broker_id, what)
            case ControllerElected():
                self.controllers.add(broker_id)
                self._under_faults(f"controllers {len(self.controllers)}")
            case ControllerResigned():
                self.controllers.discard(broker_id)
                self._under_faults(f"controllers {len(self.controllers)}")
            case PartitionStateChange() | ReplicaStateChange():
                kind = "partition" if isinstance(what, PartitionStateChange) else "replica"
                self._under_faults(f"{kind} {what.from_state}>{what.to_state}")
            case GroupStateChange():
                self._under_faults(f"group {what.from_state}>{what.to_state}")
            case _:
                self._single(what)

    def _single(self, what: Event) -> None:
        match what:
            case IsrResult():
                self._under_faults(f"isr {what.kind} {what.result}")
            case Fenced():
                self._reached(f"fenced {what.what} {what.api} {what.error}")
            case ZkWrite() if what.result != "ok":
                self._under_faults(f"write {what.op} {what.by} {what.result}")
            case CoordinatorLoad():
                self._under_faults("coordinator load")

    def _under_faults(self, feature: str) -> None:
        self._reached(feature)
        if self.in_force:
            self._reached(f"{feature} | {self._faults()}")

    def _reached(self, feature: str) -> None:
        self.features.setdefault(feature, self.now_s)

    def _faults(self) -> str:
        return ", ".join(sorted(self.in_force.values()))

    def _fault(self, entry: JournalEntry) -> None:
        if entry.step is BEGUN:
            self.in_force[entry.injection] = entry.fault
        elif entry.step in ENDED:
            self.in_force.pop(entry.injection, None)
        self._reached(f"faults {self._faults()}")

    def _znode(self, change: ZnodeChange) -> None:
        if matched := _BROKER.fullmatch(change.path):
            (self.alive.discard if change.type == "delete" else self.alive.add)(int(matched[1]))
            for partition in self.partitions.values():
                self._changed(partition)
        elif (matched := _STATE.fullmatch(change.path)) and change.data:
            state: Mapping[str, Any] = json.loads(change.data)
            partition = self._partition((matched[1], int(matched[2])))
            partition.leader, partition.leader_epoch = state["leader"], state["leader_epoch"]
            partition.isr = frozenset(state["isr"])
            for broker_id in state["isr"]:
                partition.replicas.setdefault(broker_id, _Replica())
            self._changed(partition)

    def _replica(self, broker_id: int, what: Append | HighWatermark | BecomeLeader | BecomeFollower | Truncate) -> None:
        partition = self._partition((what.topic, what.partition))
        replica = partition.replicas.setdefault(broker_id, _Replica())
        match what:
            case Append():
                replica.log_end_offset, replica.epoch = what.last_offset + 1, what.leader_epoch
            case HighWatermark(role="leader"):
                partition.high_watermark = what.new
            case BecomeLeader():
                replica.log_end_offset, replica.epoch = what.log_end_offset, what.leader_epoch
            case BecomeFollower():
                replica.log_end_offset = what.log_end_offset
                self._watermark("uncommitted tail of a follower", what.log_end_offset - what.high_watermark)
                self._watermark("epochs missed", what.leader_epoch - what.previous_leader_epoch - 1)
            case Truncate():
                self._watermark(f"cut by {what.reason}", replica.log_end_offset - what.to)
                replica.log_end_offset = what.to
        self._changed(partition)

    def _watermark(self, name: str, value: int) -> None:
        for power in range(max(0, value).bit_length()):
            self._reached(f"{name} 2^{power}")

    def _partition(self, key: TopicPartition) -> _Partition:
        """Return what is known of a partition."""
        return self.partitions.setdefault(key, _Partition())

    def _changed(self, partition: _Partition) -> None:
        """Note the state of a partition, and which one it follows under which faults, where it is another one."""
        state = partition.abstract(self.alive)
        if state == partition.state:
            return
        self._reached(state)
        if self.in_force:
            self._reached(f"{partition.state} > {state} | {self._faults()}")
        partition.state = state

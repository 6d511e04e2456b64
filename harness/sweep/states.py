"""Which abstract states did a schedule reach? They are the signal of guided search, after ModelFuzz.

States are those of partitions, reassignments, deletions, groups, transactions and of the controller's state machines.
They are symmetric in brokers: a state says which kinds of replicas there are (leader, alive, in the ISR, behind the
high watermark, behind in epochs), and never which broker that is or how many. A feature is a state, an ordered pair of
states, such a pair under one of the faults in force, a refused request, a request that waits at an election, or a
watermark: how far a quantity has come, in powers of two. It is a text that begins with its class and a colon.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from typing import Any

from harness.events import (
    Append,
    BatchRefused,
    BecomeFollower,
    BecomeLeader,
    ControllerElected,
    ControllerResigned,
    ControlReceive,
    CoordinatorLoad,
    CoordinatorUnload,
    Event,
    Fenced,
    GroupMemberChange,
    GroupStateChange,
    HighWatermark,
    IsrPropose,
    IsrResult,
    LogStart,
    MarkerRefused,
    OffsetCommit,
    PartitionStateChange,
    ProduceResponse,
    Recovery,
    ReplicaStateChange,
    TransactionalOffsetCommit,
    TransactionLoad,
    TransactionResponse,
    TransactionStateChange,
    TransactionUnload,
    Truncate,
    ZkWrite,
)
from harness.scenario.plan import Plan
from harness.simulation.evidence import EPOCH_MS
from harness.simulation.loop import START_S
from harness.simulation.schedule import SimulatedHistory
from harness.store.history import InjectionStep, JournalEntry, ZnodeChange
from harness.values import TopicPartition

MOST_MEMBERS = 3
"""A group of so many members is as large as one of more; so is a transaction of so many partitions."""
_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_TOPIC = re.compile(r"/brokers/topics/([^/]+)")
_BROKER = re.compile(r"/brokers/ids/(\d+)")
_DELETION = re.compile(r"/admin/delete_topics/([^/]+)")
_OF_DELETION = "ReplicaDeletion"
"""What the names of a replica's states begin with while its topic is deleted."""
BEGUN, ENDED = InjectionStep.INJECTED, (InjectionStep.HEALED, InjectionStep.HEAL_FAILED)


def class_of(feature: str) -> str:
    """Return the class of a feature."""
    return feature.partition(":")[0]


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
    deletion: str = ""
    """Its state in the deletion of its topic, as the controller has it; empty for none."""
    unanswered: set[int] = field(default_factory=set)
    """Last offsets of the batches that it appended as leader with acks=all and has not answered."""


@dataclass(slots=True)
class _Partition:
    """What is known of one partition."""

    leader: int = -1
    isr: frozenset[int] = frozenset()
    """ZooKeeper's."""
    leaders_isr: frozenset[int] = frozenset()
    proposal: str = ""
    """The change of the ISR that its leader has written to ZooKeeper and of which it has no answer: shrink, expand."""
    leader_epoch: int = -1
    high_watermark: int = 0
    replicas: dict[int, _Replica] = field(default_factory=dict)
    adding: frozenset[int] = frozenset()
    """By a reassignment."""
    removing: frozenset[int] = frozenset()

    def replica(self, broker_id: int) -> _Replica:
        """Return what is known of the replica on a broker."""
        return self.replicas.setdefault(broker_id, _Replica())

    def abstract(self, alive: Iterable[int]) -> str:
        """Return its state without the names of brokers: a word for each kind of replica, sorted.

        A word says leader or follower, alive or dead, in or out of ZooKeeper's and of the leader's ISR, its log end
        against the high watermark, and with a minus that it has no batch of the leader's epoch.
        """
        words = set()
        for broker_id, replica in self.replicas.items():
            ahead = replica.log_end_offset - self.high_watermark
            words.add(
                ("L" if broker_id == self.leader else "f")
                + ("a" if broker_id in alive else "d")
                + ("i" if broker_id in self.isr else "o")
                + ("i" if broker_id in self.leaders_isr else "o")
                + ("<" if ahead < 0 else ">" if ahead else "=")
                + ("-" if replica.epoch < self.leader_epoch else "")
            )
        return " ".join([*sorted(words), self.proposal]).rstrip()

    def reassignment(self, alive: Iterable[int]) -> str:
        """Return the state of its reassignment: of the replicas that it adds and removes; empty if there is none."""
        words = {
            sign + ("a" if broker_id in alive else "d") + ("i" if broker_id in self.isr else "o")
            for sign, brokers in (("+", self.adding), ("-", self.removing))
            for broker_id in brokers
        }
        return " ".join(sorted(words))


@dataclass(slots=True)
class _Seen:
    """All that has happened so far."""

    now_s: float = 0.0
    features: dict[str, float] = field(default_factory=dict)
    partitions: dict[TopicPartition, _Partition] = field(default_factory=dict)
    states: dict[tuple[str, object], str] = field(default_factory=dict)
    """Abstract states by class and by what has them."""
    deleted: set[str] = field(default_factory=set)
    """Topics that are to be deleted."""
    coordinated: dict[tuple[str, int], dict[str, str]] = field(default_factory=dict)
    """States of groups and of transactions, by class and partition of the coordinator's topic, and by their names."""
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
            case Append() | HighWatermark() | BecomeLeader() | BecomeFollower() | Truncate() | Recovery():
                self._replica(broker_id, what)
            case IsrPropose() | IsrResult():
                self._isr(what)
            case ProduceResponse():
                self._partition((what.topic, what.partition)).replica(broker_id).unanswered.discard(what.last_offset)
                self._refused("Produce", what.error)
            case ControllerElected() | ControllerResigned() | PartitionStateChange() | ReplicaStateChange():
                self._controller(broker_id, what)
            case _:
                self._coordinator(what)

    # --- what a feature is ---

    def _reached(self, feature: str) -> None:
        self.features.setdefault(feature, self.now_s)

    def _under_faults(self, kind: str, what: str) -> None:
        """Note what happened, and each of the faults in force meanwhile."""
        self._reached(f"{kind}: {what}")
        for fault in self.in_force.values():
            self._reached(f"{kind} under a fault: {what} | {fault}")

    def _enters(self, kind: str, of: object, state: str) -> None:
        """Note the state that something is in, and the pair with the one before it, where it is another one."""
        before = self.states.get((kind, of), "")
        if state != before:
            self.states[kind, of] = state
            self._reached(f"{kind}: {state}")
            self._under_faults(f"{kind} step", f"{before} > {state}")

    def _refused(self, api: str, error: int) -> None:
        if error:
            self._under_faults("refused", f"{api} {error}")

    def _watermark(self, name: str, value: int) -> None:
        for power in range(max(0, value).bit_length()):
            self._reached(f"watermark: {name} 2^{power}")

    # --- faults and ZooKeeper ---

    def _fault(self, entry: JournalEntry) -> None:
        if entry.step is BEGUN:
            self.in_force[entry.injection] = entry.fault
        elif entry.step in ENDED:
            self.in_force.pop(entry.injection, None)
        self._reached(f"faults: {', '.join(sorted(self.in_force.values()))}")

    def _znode(self, change: ZnodeChange) -> None:
        if matched := _BROKER.fullmatch(change.path):
            (self.alive.discard if change.type == "delete" else self.alive.add)(int(matched[1]))
            for key in self.partitions:
                self._changed(key)
        elif matched := _DELETION.fullmatch(change.path):
            (self.deleted.discard if change.type == "delete" else self.deleted.add)(matched[1])
            self._deletion(matched[1])
        elif not change.data:
            return
        elif matched := _STATE.fullmatch(change.path):
            self._state((matched[1], int(matched[2])), json.loads(change.data))
        elif matched := _TOPIC.fullmatch(change.path):
            self._assignment(matched[1], json.loads(change.data))

    def _state(self, key: TopicPartition, state: dict[str, Any]) -> None:
        partition = self._partition(key)
        partition.leader, partition.leader_epoch = state["leader"], state["leader_epoch"]
        partition.isr = frozenset(state["isr"])
        for broker_id in state["isr"]:
            partition.replica(broker_id)
        self._changed(key)

    def _assignment(self, topic: str, assignment: dict[str, Any]) -> None:
        adding, removing = assignment.get("adding_replicas", {}), assignment.get("removing_replicas", {})
        for number in assignment["partitions"]:
            partition = self._partition((topic, int(number)))
            partition.adding, partition.removing = (frozenset(each.get(number, ())) for each in (adding, removing))
            self._changed((topic, int(number)))

    # --- partitions ---

    def _replica(
        self, broker_id: int, what: Append | HighWatermark | BecomeLeader | BecomeFollower | Truncate | Recovery
    ) -> None:
        key = (what.topic, what.partition)
        partition = self._partition(key)
        replica = partition.replica(broker_id)
        match what:
            case Append():
                replica.log_end_offset, replica.epoch = what.last_offset + 1, what.leader_epoch
                if what.role == "leader" and what.acks == -1:
                    replica.unanswered.add(what.last_offset)
            case HighWatermark(role="leader"):
                partition.high_watermark = what.new
            case BecomeLeader():
                replica.log_end_offset, replica.epoch = what.log_end_offset, what.leader_epoch
                partition.leaders_isr, partition.proposal = frozenset(what.isr), ""
            case BecomeFollower():
                replica.log_end_offset = what.log_end_offset
                self._watermark("uncommitted tail of a follower", what.log_end_offset - what.high_watermark)
                self._watermark("epochs missed", what.leader_epoch - what.previous_leader_epoch - 1)
                self._watermark("produce requests that wait at an election", len(replica.unanswered))
                replica.unanswered.clear()
            case Truncate():
                self._watermark(f"cut by {what.reason}", replica.log_end_offset - what.to)
                replica.log_end_offset = what.to
            case Recovery():
                self._watermark("lost by a restart", replica.log_end_offset - what.log_end_offset)
                replica.log_end_offset = what.log_end_offset
                replica.unanswered.clear()
        self._changed(key)

    def _isr(self, what: IsrPropose | IsrResult) -> None:
        """Take in what the leader makes of its ISR; a proposal without an answer stays open."""
        partition = self._partition((what.topic, what.partition))
        if isinstance(what, IsrPropose):
            partition.proposal = what.kind
        else:
            partition.proposal = ""
            self._under_faults("isr", f"{what.kind} {what.result}")
            if what.result == "ok":
                partition.leaders_isr = frozenset(what.new)
        self._changed((what.topic, what.partition))

    def _partition(self, key: TopicPartition) -> _Partition:
        """Return what is known of a partition."""
        return self.partitions.setdefault(key, _Partition())

    def _changed(self, key: TopicPartition) -> None:
        """Note the states of a partition, of its reassignment, and of the deletion of its topic."""
        partition = self.partitions[key]
        self._enters("partition", key, partition.abstract(self.alive))
        self._enters("reassignment", key, partition.reassignment(self.alive))
        if key[0] in self.deleted:
            self._deletion(key[0])

    # --- the controller ---

    def _controller(
        self, broker_id: int, what: ControllerElected | ControllerResigned | PartitionStateChange | ReplicaStateChange
    ) -> None:
        match what:
            case ControllerElected() | ControllerResigned():
                elected = isinstance(what, ControllerElected)
                (self.controllers.add if elected else self.controllers.discard)(broker_id)
                self._under_faults("controllers", f"{len(self.controllers)}")
                if elected:
                    self._waits("reassignment", "deletion")
            case PartitionStateChange():
                self._under_faults("partition machine", f"{what.from_state} > {what.to_state}")
            case ReplicaStateChange():
                self._under_faults("replica machine", f"{what.from_state} > {what.to_state}")
                of_deletion = what.to_state.startswith(_OF_DELETION)
                state = what.to_state.removeprefix(_OF_DELETION) if of_deletion else ""
                self._partition((what.topic, what.partition)).replica(what.replica).deletion = state
                self._deletion(what.topic)

    def _deletion(self, topic: str) -> None:
        """Note the state of a topic's deletion: of each replica its own, and whether its broker is alive."""
        words = {
            f"{replica.deletion or 'Waiting'} {'alive' if broker_id in self.alive else 'dead'}"
            for (of, _), partition in self.partitions.items()
            if of == topic and topic in self.deleted
            for broker_id, replica in partition.replicas.items()
        }
        self._enters("deletion", topic, ", ".join(sorted(words)))

    def _waits(self, *kinds: str) -> None:
        """Note what a new controller finds unfinished."""
        for (kind, _), state in sorted(self.states.items(), key=str):
            if kind in kinds and state:
                self._reached(f"waits at an election: {kind} {state}")

    # --- coordinators, and requests that are refused ---

    def _coordinator(self, what: Event) -> None:
        match what:
            case GroupStateChange():
                state = f"{what.to_state} {min(MOST_MEMBERS, len(what.members))}"
                self._under_faults("group", f"{what.from_state} > {state}")
                self.coordinated.setdefault(("group", what.offsets_partition), {})[what.group] = what.to_state
            case GroupMemberChange():
                self._under_faults("group member", f"{what.change} {what.reason}")
            case TransactionStateChange():
                self._under_faults("transaction", f"{what.from_state} > {what.to_state}")
                self._reached(f"transaction: {what.to_state} {min(MOST_MEMBERS, len(what.partitions))}")
                of_partition = self.coordinated.setdefault(("transaction", what.state_partition), {})
                of_partition[what.transactional_id] = what.to_state
            case CoordinatorLoad() | TransactionLoad() | CoordinatorUnload() | TransactionUnload():
                kind = "group" if isinstance(what, CoordinatorLoad | CoordinatorUnload) else "transaction"
                self._under_faults("coordinator", what.ev)
                for state in sorted({*self.coordinated.get((kind, what.partition), {}).values()}):
                    self._reached(f"waits at an election: {kind} {state} {what.ev}")
            case _:
                self._single(what)

    def _single(self, what: Event) -> None:
        match what:
            case Fenced():
                self._under_faults("refused", f"{what.api} {what.what} {what.error}")
            case BatchRefused() | MarkerRefused() | OffsetCommit() | TransactionalOffsetCommit():
                self._refused(what.ev, what.error)
            case TransactionResponse():
                self._refused(what.api, what.error)
            case ZkWrite() if what.result != "ok":
                self._under_faults("refused", f"write {what.op} {what.by} {what.result}")
            case ControlReceive():
                verdicts = {what.verdict, *(each.verdict for each in what.partitions)}
                for verdict in sorted(verdicts - {"applied"}):
                    self._under_faults("refused", f"{what.api} {verdict}")
            case LogStart():
                self._under_faults("log start", what.cause)

"""Which steps may the state of a partition take in ZooKeeper's history, and which its assignment?

Both are walked in the order of transactions. Where a version is missing, the next one is taken as it is.
"""

import json
import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from harness.model.step import Event, Illegal, Key, Rule, Subject

TOPIC_PATH = re.compile(r"/brokers/topics/([^/]+)")
CONFIG_PATH = re.compile(r"/config/topics/([^/]+)")
STATE_PATH = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
WRITTEN, GONE = "written", "gone"
MADE, CONFIGURED = "made", "configured"
NO_LEADER = -1

CREATED = Rule(
    id="state.created",
    sentence="The state of a partition begins with leader epoch 0.",
    source="ZkPartitionStateMachine.initializeLeaderAndIsrForPartitions",
)
EPOCH_STEPS = Rule(
    id="state.epoch-steps",
    sentence="A write keeps the leader epoch or raises it by one.",
    source="LeaderAndIsr.newLeaderAndIsr, LeaderAndIsr.newEpoch",
)
ONE_LEADER = Rule(
    id="state.one-leader",
    sentence="A write that keeps the leader epoch keeps the leader.",
    source="ReplicationUtils.updateLeaderAndIsr, KIP-497",
)
CONTROLLER_EPOCH = Rule(
    id="state.controller-epoch",
    sentence="No write has an older controller epoch than the one before it.",
    source="KAFKA-6082",
)
ELECTED_ISR = Rule(
    id="state.elected-isr",
    sentence="A write that raises the leader epoch adds no broker to the ISR, except a new leader that is alone in it.",
    source="PartitionLeaderElectionAlgorithms, ZkReplicaStateMachine.removeReplicasFromIsr",
)
STARTED = Rule(
    id="reassignment.started",
    sentence="A reassignment begins with the target replicas and those of before, the new ones marked as adding.",
    source="KIP-455, ReplicaAssignment.reassignTo",
)
COMPLETED = Rule(
    id="reassignment.completed",
    sentence="A reassignment ends with its target, after all of it was in the ISR and when no removed replica is in "
    "it, or with the replicas of before.",
    source="KIP-455, KafkaController.onPartitionReassignment",
)
CONFIGURED_FIRST = Rule(
    id="topic.configured-first",
    sentence="The configuration of a topic is created before the topic, so that no broker makes a log without it.",
    source="AdminZkClient.createTopicWithAssignment",
)


class Znodes(Struct, frozen=True, kw_only=True):
    """What ZooKeeper has of a partition; None is unknown."""

    leader: int | None = None
    leader_epoch: int | None = None
    isr: frozenset[int] | None = None
    controller_epoch: int | None = None
    version: int | None = None
    replicas: tuple[int, ...] | None = None
    adding: frozenset[int] = frozenset()
    removing: frozenset[int] = frozenset()
    reached: bool | None = None
    """Whether all target replicas were in the ISR since the reassignment began."""
    untracked: frozenset[int] = frozenset()
    """Replicas that were in the ISR before they were added (KAFKA-9672). For the controller they do not exist, so it
    does not take them out of the ISR when they are removed (ReplicaStateMachine.doHandleStateChanges)."""
    assigned: int | None = None
    """Version of the topic's znode that named these replicas."""
    bare_since: int | None = None
    """Of a topic: the transaction that created it, if no configuration was known then."""

    @property
    def target(self) -> frozenset[int]:
        """The replicas that the reassignment is to leave."""
        return frozenset(self.replicas or ()) - self.removing


UNKNOWN = Znodes()


def _reaches(state: Znodes) -> Znodes:
    """Note that a reassignment may end."""
    if not (state.adding or state.removing) or state.isr is None or not state.target <= state.isr:
        return state
    return replace(state, reached=True)


def changes_state(state: Znodes | None, event: Event) -> Znodes | Illegal:
    """The state znode is written."""
    state = state or UNKNOWN
    epoch, isr, leader = event["leader_epoch"], frozenset(event["isr"]), event["leader"]
    after = _reaches(
        replace(
            state,
            leader=leader,
            leader_epoch=epoch,
            isr=isr,
            controller_epoch=event["controller_epoch"],
            version=event["version"],
        )
    )
    if event["type"] == "create":
        return after if epoch == 0 else Illegal(CREATED, after)
    if state.leader_epoch is None or state.isr is None or state.version != event["version"] - 1:
        return after
    if epoch not in (state.leader_epoch, state.leader_epoch + 1):
        return Illegal(EPOCH_STEPS, after)
    if epoch == state.leader_epoch and leader != state.leader:
        return Illegal(ONE_LEADER, after)
    if state.controller_epoch is not None and event["controller_epoch"] < state.controller_epoch:
        return Illegal(CONTROLLER_EPOCH, after)
    # The controller of a quorum completes a reassignment, whose steps are not known, by the write that adds a broker.
    completes = state.replicas is None and state.leader not in isr
    if epoch > state.leader_epoch and not (isr <= state.isr or isr == {leader} or completes):
        return Illegal(ELECTED_ISR, after)
    return after


def loses_state(state: Znodes | None, event: Event) -> Znodes | Illegal:
    """The state znode is deleted with its topic."""
    return replace(state or UNKNOWN, leader=None, leader_epoch=None, isr=None, version=None)


def is_assigned(state: Znodes | None, event: Event) -> Znodes | Illegal:
    """The topic's znode is written."""
    state = state or UNKNOWN
    replicas = tuple(event["replicas"])
    if event["adding"] is None:
        return replace(state, replicas=None, reached=None)
    adding, removing = frozenset(event["adding"]), frozenset(event["removing"])
    added, isr = adding - state.adding, state.isr or frozenset()
    untracked = frozenset() if event["type"] == "create" else (state.untracked - added) | (added & isr)
    named = replace(state, replicas=replicas, adding=adding, removing=removing, reached=False)
    after = _reaches(replace(named, untracked=untracked, assigned=event["version"]))
    # A controller that has not seen a new partition yet writes the topic without it (`setTopicAssignmentRaw`).
    if state.replicas is None or event["type"] == "create" or state.assigned != event["version"] - 1:
        return after
    origin, now = frozenset(state.replicas) - state.adding, frozenset(replicas)
    if adding or removing:
        if (adding, removing) == (state.adding, state.removing) and now == frozenset(state.replicas):
            return replace(after, reached=state.reached or after.reached)
        right = adding == now - origin and removing <= now and origin <= now
        return after if right else Illegal(STARTED, after)
    if now == origin:
        return after
    if not (state.adding or state.removing) or now != state.target:
        return Illegal(COMPLETED, after)
    known = state.isr is not None and state.reached is not None
    if known and (not state.reached or isr & (state.removing - state.untracked)):
        return Illegal(COMPLETED, after)
    return after


def is_made(state: Znodes | None, event: Event) -> Znodes | Illegal:
    """A topic is created; the state is None if its configuration is not known."""
    return Znodes(bare_since=event["zxid"] if state is None else None)


def is_configured(state: Znodes | None, event: Event) -> Znodes | Illegal:
    """The configuration of a topic is written or deleted; what an observer found at its start may be written later."""
    since = None if state is None or event["type"] != "create" else state.bare_since
    return Illegal(CONFIGURED_FIRST, Znodes()) if since is not None and event["zxid"] > since else Znodes()


def events_of(change: Event) -> list[tuple[Key, Event]]:
    """Return what a change of a znode does to partitions, each with its key."""
    path, type_ = change["path"], change["type"]
    common = {"type": type_, "version": change["version"], "zxid": change["zxid"]}
    if match := STATE_PATH.fullmatch(path):
        key = (match[1], int(match[2]))
        if type_ == "delete":
            return [(key, {**common, "ev": GONE})]
        return [(key, {**_object(change["data"]), **common, "ev": WRITTEN})]
    if match := CONFIG_PATH.fullmatch(path):
        return [((match[1],), {**common, "ev": CONFIGURED})]
    if (match := TOPIC_PATH.fullmatch(path)) and type_ != "delete":
        topic = _object(change["data"])
        made = type_ == "create" and "adding_replicas" in topic
        return [
            *([((match[1],), {**common, "ev": MADE})] if made else ()),
            *(
                ((match[1], int(partition)), {**common, "ev": "assigned", **assignment})
                for partition, assignment in _assignments(topic)
            ),
        ]
    return []


def _assignments(topic: Event) -> list[tuple[str, dict[str, Any]]]:
    """Return what the znode of a topic says of each partition; `adding` is None in a format without reassignments.

    Kafka before 2.4 writes that format, and a KRaft metadata log is translated to it.
    """
    if "adding_replicas" not in topic:
        unknown = {"adding": None, "removing": None}
        return [(partition, {"replicas": replicas, **unknown}) for partition, replicas in topic["partitions"].items()]
    adding, removing = topic["adding_replicas"], topic.get("removing_replicas") or {}
    return [
        (
            partition,
            {"replicas": replicas, "adding": adding.get(partition, ()), "removing": removing.get(partition, ())},
        )
        for partition, replicas in topic["partitions"].items()
    ]


def _object(data: str) -> dict[str, Any]:
    content = json.loads(data)
    return content if isinstance(content, dict) else {}


SUBJECT = Subject(
    name="znodes",
    rules=(CREATED, EPOCH_STEPS, ONE_LEADER, CONTROLLER_EPOCH, ELECTED_ISR, STARTED, COMPLETED, CONFIGURED_FIRST),
    legal={
        WRITTEN: changes_state,
        GONE: loses_state,
        "assigned": is_assigned,
        MADE: is_made,
        CONFIGURED: is_configured,
    },
    fresh=None,
)

"""Every rule of the model is broken by a log that differs from a legal one in one event, and by no other rule."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from harness.model.subjects import OF_BROKERS, OF_ZOOKEEPER, RULES, broker_walker, znode_walker
from harness.model.walk import IllegalStep
from tests.model import logs
from tests.model.logs import Event

LOGS = {
    name: getattr(logs, name)
    for name in (
        "REPLICA",
        "LEADER",
        "CONTROLLER",
        "GROUP",
        "TRANSACTION",
        "PRODUCER",
        "COORDINATOR",
        "CHECKPOINTS",
        "LIVE_BROKERS",
        "LEADERS_SENT",
        "HOLDINGS",
        "ZNODES",
    )
}


def illegal(name: str, events: list[Event]) -> list[IllegalStep]:
    if name == "ZNODES":
        return list(znode_walker().walk(logs.history(events)))
    walker = broker_walker()
    return list(filter(walker.may_judge, list(walker.walk(logs.lines(events)))))


def place(events: list[Event], ev: str, number: int = 0) -> int:
    """Return where the event of this number of its kind is."""
    return [index for index, event in enumerate(events) if event.get("ev") == ev][number]


Change = tuple[str, str, int, dict[str, Any]]
"""A log, the kind and number of an event in it, and what is changed of that."""


def changed(change: Change) -> list[Event]:
    name, ev, number, fields = change
    events: list[Event] = deepcopy(LOGS[name])
    index = place(events, ev, number)
    events[index] |= fields
    return events


def inserted(name: str, index: int, *events: Event) -> list[Event]:
    return [*LOGS[name][:index], *events, *LOGS[name][index:]]


def without(name: str, index: int) -> list[Event]:
    return [event for number, event in enumerate(LOGS[name]) if number != index]


def instead(name: str, index: int, event: Event) -> list[Event]:
    return [*LOGS[name][:index], event, *LOGS[name][index + 1 :]]


REFUSED: Event = {"ev": "txn_response", "state_partition": 0, "error": 16}
MUTANTS: dict[str, tuple[str, list[Event]]] = {
    # a replica
    "replica.loaded-first": ("REPLICA", inserted("REPLICA", 2, logs.recovered(2, 1))),
    "replica.closed-whole": (
        "REPLICA",
        [*changed(("REPLICA", "recovery", 0, {"clean": True, "recovery_point": 1})), logs.holds()],
    ),
    "checkpoint.whole": ("CHECKPOINTS", changed(("CHECKPOINTS", "hw_checkpoint", 1, {"count": 1}))),
    "replica.epoch-rises": (
        "REPLICA",
        inserted("REPLICA", 4, logs.follows(1, 2, high_watermark=1, previous_leader_epoch=1)),
    ),
    "replica.epoch-continues": ("REPLICA", changed(("REPLICA", "become_leader", 0, {"previous_leader_epoch": 0}))),
    "replica.role-keeps-log": ("REPLICA", changed(("REPLICA", "become_follower", 1, {"log_end_offset": 5}))),
    "replica.epoch-assigned": ("REPLICA", without("REPLICA", 10)[:11]),
    "replica.append-in-role": ("REPLICA", changed(("REPLICA", "append", 1, {"role": "leader", "isr_size": None}))[:9]),
    "replica.append-at-end": ("REPLICA", changed(("REPLICA", "append", 2, {"base_offset": 2}))),
    "replica.batch-epoch": ("REPLICA", changed(("REPLICA", "append", 2, {"batch_epoch": 1}))),
    "replica.epoch-before-batch": ("REPLICA", inserted("REPLICA", 21, logs.append("follower", 3, 4))),
    "replica.epoch-forward": ("REPLICA", inserted("REPLICA", 10, logs.assign(1, 3))),
    "replica.watermark-in-role": ("REPLICA", changed(("REPLICA", "hw", 0, {"leader_epoch": 0}))[:10]),
    "replica.watermark-continues": ("REPLICA", changed(("REPLICA", "hw", 0, {"old": 0}))),
    "replica.watermark-rises": ("REPLICA", inserted("REPLICA", 15, logs.mark("leader", 2, 4, 4, 4))),
    "replica.watermark-in-log": ("REPLICA", inserted("REPLICA", 21, logs.mark("follower", 3, 4, 5, 4))),
    "replica.leader-keeps-log": ("REPLICA", inserted("REPLICA", 19, logs.truncate(4, 4))),
    "replica.truncation-back": ("REPLICA", inserted("REPLICA", 21, logs.truncate(4, 5))),
    "replica.start-continues": ("REPLICA", inserted("REPLICA", 21, logs.starts_at(1, 3))),
    "replica.start-rises": ("REPLICA", inserted("REPLICA", 21, logs.starts_at(0, 2), logs.starts_at(2, 1))),
    "replica.deletes-committed": ("REPLICA", inserted("REPLICA", 21, logs.deleted(5))),
    "replica.cleans-committed": ("REPLICA", inserted("REPLICA", 21, logs.compacted(5))),
    "replica.start-past-deleted": ("REPLICA", inserted("REPLICA", 15, logs.deleted(2), logs.listed(-2, 0))),
    "replica.epochs-in-log": (
        "REPLICA",
        inserted("REPLICA", 21, logs.starts_at(0, 2), logs.tells_epochs([(1, 1), (2, 3)])),
    ),
    "replica.cleans-when-due": ("REPLICA", inserted("REPLICA", 21, logs.cleaned(10, 20), logs.cleaned(20, 10))),
    "replica.fetch-in-role": ("REPLICA", changed(("REPLICA", "fetch_resp", 0, {"leader_epoch": 1}))),
    "replica.fetch-watermark": ("REPLICA", changed(("REPLICA", "fetch_resp", 0, {"high_watermark": 5}))),
    "replica.fetch-committed": ("REPLICA", changed(("REPLICA", "fetch_resp", 0, {"high_watermark": 3}))),
    "replica.acknowledged": ("REPLICA", changed(("REPLICA", "produce_resp", 0, {"high_watermark": 3}))),
    "replica.ends-with-lead": (
        "REPLICA",
        inserted("REPLICA", 21, logs.produced(-1, 4, error=7) | {"mono": 2_000_000_000}),
    ),
    "replica.lists-own": ("REPLICA", inserted("REPLICA", 15, logs.listed(-2, 1))),
    "replica.lists-caught-up": ("REPLICA", inserted("REPLICA", 12, logs.listed(-1, 2))),
    "replica.verdict": ("REPLICA", inserted("REPLICA", 21, logs.told(2))),
    # a leader
    "leader.proposes": ("LEADER", inserted("LEADER", 13, logs.proposes("shrink", [1, 2], [1], 3))),
    "leader.proposes-from-own": (
        "LEADER",
        changed(("LEADER", "isr_propose", 1, {"old": [1, 3], "new": [1, 2, 3]}))[:7],
    ),
    "leader.one-proposal": ("LEADER", without("LEADER", 7)),
    "leader.expands": ("LEADER", changed(("LEADER", "isr_propose", 2, {"ends": [3, 1]}))),
    "leader.shrinks": ("LEADER", changed(("LEADER", "isr_propose", 0, {"new": [2]}))[:3]),
    "leader.answers-proposal": ("LEADER", changed(("LEADER", "isr_result", 1, {"new": [1, 3]}))),
    "leader.version-rises": (
        "LEADER",
        inserted(
            "LEADER", 11, logs.proposes("shrink", [1, 2], [1], 3), logs.answered([1, 2], [1], 3, new_zk_version=3)
        ),
    ),
    "leader.isr-as-taken": ("LEADER", changed(("LEADER", "hw", 0, {"isr": [1, 2]}))[:5]),
    "leader.stable-offset-rises": ("LEADER", changed(("LEADER", "lso", 0, {"new": 2}))),
    "leader.isr-size": ("LEADER", changed(("LEADER", "append", 0, {"isr_size": 2}))),
    # a controller
    "controller.elected-once": ("CONTROLLER", inserted("CONTROLLER", 19, logs.office("elected", 2))[:20]),
    "controller.epoch-rises": ("CONTROLLER", changed(("CONTROLLER", "controller_elected", 1, {"controller_epoch": 1}))),
    "controller.ready-once": ("CONTROLLER", inserted("CONTROLLER", 4, logs.office("ready", 1))),
    "controller.resigns-own": (
        "CONTROLLER",
        changed(("CONTROLLER", "controller_resigned", 0, {"controller_epoch": 3})),
    ),
    "controller.acts-in-term": ("CONTROLLER", inserted("CONTROLLER", 21, logs.written("/brokers/topics/events", 1))),
    "controller.acts-in-session": ("CONTROLLER", [*LOGS["CONTROLLER"], logs.written("/brokers/topics/events", 4)]),
    "controller.stops-when-moved": (
        "CONTROLLER",
        inserted("CONTROLLER", 20, logs.written("/brokers/topics/events", 1)),
    ),
    "controller.obeys-newer": ("CONTROLLER", instead("CONTROLLER", 6, logs.elected(previous=2))),
    "controller.partition-valid": (
        "CONTROLLER",
        inserted(
            "CONTROLLER",
            10,
            logs.moved("NonExistent", "Online"),
            logs.moved("New", "NonExistent"),
            logs.elected(),
            logs.moved("Online", "New"),
        ),
    ),
    "controller.partition-continues": ("CONTROLLER", instead("CONTROLLER", 10, logs.moved("Offline", "New"))),
    "controller.online-elected": ("CONTROLLER", instead("CONTROLLER", 6, logs.elected(result=None))),
    "controller.replica-valid": (
        "CONTROLLER",
        inserted("CONTROLLER", 19, logs.replica_moved("OnlineReplica", "NonExistentReplica")),
    ),
    "controller.replica-continues": ("CONTROLLER", without("CONTROLLER", 9)),
    "deletion.replicas-first": (
        "CONTROLLER",
        inserted("CONTROLLER", 14, logs.written("/brokers/topics/orders", 1, "delete")),
    ),
    "deletion.request-last": (
        "CONTROLLER",
        inserted("CONTROLLER", 16, logs.written("/admin/delete_topics/orders", 1, "delete")),
    ),
    # a group
    "group.state-valid": (
        "GROUP",
        inserted("GROUP", 6, logs.group_is("Empty", "Stable", 1), logs.group_is("", "", 1))[:7],
    ),
    "group.state-continues": ("GROUP", without("GROUP", 7)[:10]),
    "group.generation-steps": ("GROUP", changed(("GROUP", "group_state", 3, {"generation": 2}))[:8]),
    "group.members-fit": ("GROUP", changed(("GROUP", "group_state", 4, {"members": [{"member": "b"}]}))),
    "group.members-told": ("GROUP", changed(("GROUP", "group_member", 2, {"member": "c"}))),
    "group.assigned-once": ("GROUP", inserted("GROUP", 5, logs.stored(1, "a"))),
    "group.session-lasts": ("GROUP", changed(("GROUP", "group_member", 2, {"mono": 9_000_000_000}))),
    "group.stable-assigned": ("GROUP", without("GROUP", 4)),
    # a transaction
    "transaction.state-valid": (
        "TRANSACTION",
        inserted("TRANSACTION", 3, logs.transaction_is("CompleteCommit", "Ongoing"))[:4],
    ),
    "transaction.state-continues": ("TRANSACTION", without("TRANSACTION", 2)[:3]),
    "transaction.epoch-rises": ("TRANSACTION", changed(("TRANSACTION", "txn_state", 6, {"producer_epoch": 0}))),
    "transaction.markers-decided": ("TRANSACTION", changed(("TRANSACTION", "txn_marker_send", 0, {"commits": False}))),
    "transaction.producer-kept": (
        "TRANSACTION",
        changed(("TRANSACTION", "txn_state", 1, {"producer_id": 8}))[: place(LOGS["TRANSACTION"], "txn_state", 1) + 1],
    ),
    "replica.fences-by-epoch": ("REPLICA", [*LOGS["REPLICA"][:9], logs.refused(2, 1, 74)]),
    "producer.follows": ("PRODUCER", [*LOGS["PRODUCER"], logs.rejects(3, 0, 45)]),
    "producer.current": ("PRODUCER", [*LOGS["PRODUCER"], logs.rejects(2, 2, 47)]),
    "coordinator.unloaded": ("COORDINATOR", without("COORDINATOR", 4)),
    "coordinator.marks-own": ("COORDINATOR", [*LOGS["COORDINATOR"], {"ev": "txn_marker_send", "state_partition": 1}]),
    "coordinator.answers-own": ("COORDINATOR", changed(("COORDINATOR", "txn_response", 0, {"error": 16}))),
    "coordinator.loaded": (
        "COORDINATOR",
        [each for each in LOGS["COORDINATOR"] if each["ev"] not in ("txn_load", "txn_marker_send")],
    ),
    "holdings.controller-known": ("HOLDINGS", [*LOGS["HOLDINGS"], *[logs.holds(controller=-1)] * 16]),
    "controller.metadata-first": ("LIVE_BROKERS", [*LOGS["LIVE_BROKERS"], logs.sends_leader(8, 3, broker_epoch=9)]),
    "holdings.brokers-known": ("HOLDINGS", [*LOGS["HOLDINGS"], logs.holds(known_brokers=[1, 2, 3])]),
    "controller.leaders-sent": ("LEADERS_SENT", instead("LEADERS_SENT", 10, logs.reads_brokers(1, 1, 2, 3, 9))),
    "controller.live-sent": ("LIVE_BROKERS", without("LIVE_BROKERS", 10)),
    **{
        f"holdings.{rule}": ("HOLDINGS", [*LOGS["HOLDINGS"], logs.holds(**{field: ["g"]})])
        for rule, field in (
            ("timers-run", "timers_missing"),
            ("timers-end", "timers_left"),
            ("requests-claimed", "unclaimed"),
            ("answered-when-due", "due"),
            ("transactions-go-on", "stuck_transactions"),
            ("in-time", "overdue"),
            ("agrees", "differences"),
        )
    },
    **{
        f"holdings.{rule}": ("HOLDINGS", [*LOGS["HOLDINGS"], logs.holds(**left), logs.holds(**left)])
        for rule, left in (
            ("idle-fetcher", {"fetchers": [2, 3]}),
            ("channels-live", {"channels": [1, 2, 3], "controller_idle": True}),
            ("groups-led", {"group_partitions": list[int]()}),
            ("transactions-led", {"transaction_partitions": [0, 1]}),
            ("fetch-session", {"without_session": [2]}),
            ("view-agrees", {"controller_differences": ["replicas with a state"]}),
        )
    },
    "transaction.complete-empty": (
        "TRANSACTION",
        changed(("TRANSACTION", "txn_state", 3, {"partitions": ["orders-0"]})),
    ),
    # ZooKeeper
    "topic.configured-first": ("ZNODES", [LOGS["ZNODES"][12], LOGS["ZNODES"][11]]),
    "state.created": ("ZNODES", instead("ZNODES", 1, logs.state(1, 1, [1, 2], 0))[:2]),
    "state.epoch-steps": ("ZNODES", instead("ZNODES", 5, logs.state(1, 2, [1, 2], 3))[:6]),
    "state.one-leader": ("ZNODES", instead("ZNODES", 2, logs.state(2, 0, [2], 1))[:3]),
    "state.controller-epoch": ("ZNODES", instead("ZNODES", 9, logs.state(3, 3, [3], 6, controller=1))),
    "state.elected-isr": ("ZNODES", instead("ZNODES", 5, logs.state(1, 1, [1, 2, 3], 3))),
    "reassignment.started": ("ZNODES", instead("ZNODES", 4, logs.assigned([1, 3], 1, (3,), (2,)))[:5]),
    "reassignment.completed": ("ZNODES", instead("ZNODES", 8, logs.assigned([3], 2))),
}
"""By the rule that finds it and that no other rule joins."""


FURTHER: dict[str, tuple[str, str, list[Event]]] = {
    "a controller has a second channel to a broker": (
        "holdings.channels-live",
        "HOLDINGS",
        [*LOGS["HOLDINGS"], *[logs.holds(channels=[1, 2, 2], controller_idle=True)] * 2],
    ),
    "a follower appends before its end": (
        "replica.append-at-end",
        "REPLICA",
        changed(("REPLICA", "append", 1, {"base_offset": 1})),
    ),
    "a batch ends before it begins": (
        "replica.append-at-end",
        "REPLICA",
        changed(("REPLICA", "append", 1, {"last_offset": 1}))[:9],
    ),
    "a follower appends a batch of an epoch that is to come": (
        "replica.batch-epoch",
        "REPLICA",
        changed(("REPLICA", "append", 1, {"batch_epoch": 2}))[:9],
    ),
    "a follower appends an older batch after a newer one": (
        "replica.batch-epoch",
        "REPLICA",
        changed(("REPLICA", "append", 1, {"batch_epoch": 0}))[:9],
    ),
    "an older leader epoch is refused as unknown": (
        "replica.fences-by-epoch",
        "REPLICA",
        [*LOGS["REPLICA"][:9], logs.refused(0, 1, 75, mono=2_000_000_000)],
    ),
    "a request is refused for an epoch that the replica has not": (
        "replica.fences-by-epoch",
        "REPLICA",
        [*LOGS["REPLICA"][:9], logs.refused(0, 2, 74)],
    ),
    "an epoch is assigned before the end of the log": (
        "replica.epoch-forward",
        "REPLICA",
        inserted("REPLICA", 21, logs.assign(3, 1)),
    ),
    "a fetch gets what the log has not": (
        "replica.fetch-in-role",
        "REPLICA",
        changed(("REPLICA", "fetch_resp", 0, {"last_offset": 4}))[:16],
    ),
    "a log with records begins anew before its end": (
        "replica.truncation-back",
        "REPLICA",
        inserted("REPLICA", 21, logs.truncate(4, 3, "full")),
    ),
    "a coordinator refuses what it has, and then loses it": (
        "coordinator.answers-own",
        "COORDINATOR",
        [
            *LOGS["COORDINATOR"][:9],
            REFUSED,
            logs.follows(1, 0, topic="__transaction_state"),
            {"ev": "txn_unload", "partition": 0, "leader_epoch": 1},
            logs.holds(),
        ],
    ),
    "the log ends lower than a truncation between two batches left it": (
        "replica.truncation-back",
        "REPLICA",
        inserted(
            "REPLICA",
            21,
            logs.assign(3, 4),
            logs.append("follower", 3, 4),
            logs.append("follower", 3, 5, last_offset=6),
            logs.truncate(7, 5),
            logs.truncate(4, 5, "full"),
        ),
    ),
    "a follower appends again what a truncation between two batches left": (
        "replica.append-at-end",
        "REPLICA",
        inserted(
            "REPLICA",
            21,
            logs.assign(3, 4),
            logs.append("follower", 3, 4),
            logs.append("follower", 3, 5, last_offset=6),
            logs.truncate(7, 5),
            logs.append("follower", 3, 4),
        ),
    ),
    "a truncation begins from another end": (
        "replica.truncation-back",
        "REPLICA",
        inserted("REPLICA", 21, logs.truncate(3, 2)),
    ),
    "a new role has another start of the log": (
        "replica.start-continues",
        "REPLICA",
        inserted("REPLICA", 21, logs.starts_at(0, 2), logs.follows(4, 4, high_watermark=4)),
    ),
    "a follower says that a record of its lead is committed": (
        "replica.ends-with-lead",
        "REPLICA",
        inserted("REPLICA", 21, logs.produced(3, 4) | {"mono": 2_000_000_000}),
    ),
    **{
        f"ListOffsets tells {what}": ("replica.lists-own", "REPLICA", inserted("REPLICA", index, answer))
        for what, index, answer in (
            ("another local start than its own", 15, logs.listed(-4, 1)),
            ("another latest offset than the high watermark", 15, logs.listed(-1, 3)),
            ("a record that is not committed", 15, logs.listed(5, 4, found=6)),
            ("a record that is older", 15, logs.listed(5, 3, found=4)),
            ("an offset in another epoch", 15, logs.listed(-1, 4, 1)),
            ("an offset as a follower", 21, logs.listed(-1, 4, 3)),
        )
    },
    "ListOffsets finds no record before the high watermark has reached the epoch": (
        "replica.lists-caught-up",
        "REPLICA",
        inserted("REPLICA", 12, logs.listed(9, -1)),
    ),
    "a new role begins a log in what retention has deleted": (
        "replica.start-past-deleted",
        "REPLICA",
        inserted("REPLICA", 19, logs.deleted(2)),
    ),
    "a client deletes what is not committed": (
        "replica.deletes-committed",
        "REPLICA",
        inserted("REPLICA", 21, logs.starts_at(0, 5, "delete_records")),
    ),
    "a request of an older epoch is said to be the same": (
        "replica.verdict",
        "REPLICA",
        inserted("REPLICA", 21, logs.told(2, "ignored_same")),
    ),
    "a request of the same epoch is said to be older": (
        "replica.verdict",
        "REPLICA",
        inserted("REPLICA", 21, logs.told(3, "ignored_old")),
    ),
    "a leader proposes in another epoch": (
        "leader.proposes",
        "LEADER",
        changed(("LEADER", "isr_propose", 0, {"leader_epoch": 2}))[:3],
    ),
    "a leader proposes in the epoch before, in a log of one thread": (
        "leader.proposes",
        "LEADER",
        [
            logs.leads(1, 3, zk_version=1, isr=[1, 2, 3]),
            logs.leads(2, 3, zk_version=2, isr=[1, 2]),
            logs.proposes("shrink", [1, 2, 3], [1, 2], 1),
        ],
    ),
    "a leader proposes in the epoch before, from an ISR that it did not have": (
        "leader.proposes",
        "LEADER",
        [
            logs.leads(1, 3, zk_version=1, isr=[1, 2], log_start_offset=-1),
            logs.leads(2, 3, zk_version=2, isr=[1, 2], log_start_offset=-1),
            logs.proposes("shrink", [1, 2, 3], [1, 2], 1),
        ],
    ),
    "a leader proposes from another version": (
        "leader.proposes-from-own",
        "LEADER",
        changed(("LEADER", "isr_propose", 1, {"zk_version": 1}))[:7],
    ),
    "a proposal is from a version before the last but one": (
        "leader.proposes-from-own",
        "LEADER",
        [
            logs.leads(1, 3, zk_version=1),
            logs.mark("leader", 1, 0, 2, 3, cause="", isr=[1, 2], zk_version=2),
            logs.mark("leader", 1, 2, 3, 3, cause="", isr=[1, 2], zk_version=3),
            logs.proposes("expand", [1, 2], [1, 2, 3], 1),
        ],
    ),
    "an expansion adds no follower": (
        "leader.expands",
        "LEADER",
        changed(("LEADER", "isr_propose", 1, {"new": [1]}))[:7],
    ),
    "an expansion removes one too": (
        "leader.expands",
        "LEADER",
        changed(("LEADER", "isr_propose", 1, {"new": [2, 3]}))[:7],
    ),
    "an expansion is behind the start of the epoch": (
        "leader.expands",
        "LEADER",
        changed(("LEADER", "isr_propose", 1, {"epoch_start_offset": 4}))[:7],
    ),
    "a shrink adds a follower too": (
        "leader.shrinks",
        "LEADER",
        changed(("LEADER", "isr_propose", 0, {"new": [1, 3]}))[:3],
    ),
    "a shrink removes no follower": (
        "leader.shrinks",
        "LEADER",
        changed(("LEADER", "isr_propose", 0, {"new": [1, 2]}))[:3],
    ),
    "a controller is ready in another epoch": (
        "controller.ready-once",
        "CONTROLLER",
        changed(("CONTROLLER", "controller_ready", 0, {"controller_epoch": 2}))[:4],
    ),
    "a session begins while the last one is in office": (
        "controller.acts-in-session",
        "CONTROLLER",
        inserted("CONTROLLER", 4, {"ev": "zk_session", "state": "reinit", "session": "0x2"})[:5],
    ),
    "a group that is stable has no members": (
        "group.members-fit",
        "GROUP",
        changed(("GROUP", "group_state", 2, {"members": []}))[:6],
    ),
    "a member joins twice": ("group.members-told", "GROUP", inserted("GROUP", 2, logs.member("a", "joined"))),
    "an assignment is for another than the members": (
        "group.assigned-once",
        "GROUP",
        changed(("GROUP", "group_assignment", 0, {"assignments": [{"member": "z"}]})),
    ),
    "a reassignment marks a replica that is not new": (
        "reassignment.started",
        "ZNODES",
        instead("ZNODES", 4, logs.assigned([1, 3, 2], 1, (3, 1), (2,)))[:5],
    ),
    "a reassignment removes a replica that is none": (
        "reassignment.started",
        "ZNODES",
        instead("ZNODES", 4, logs.assigned([1, 3, 2], 1, (3,), (4,)))[:5],
    ),
    "a reassignment ends before its target was in the ISR": (
        "reassignment.completed",
        "ZNODES",
        [*LOGS["ZNODES"][:4], logs.state(1, 1, [1], 3), *LOGS["ZNODES"][4:5], logs.assigned([1, 3], 2)],
    ),
    "a reassignment ends while the old replica is in the ISR": (
        "reassignment.completed",
        "ZNODES",
        [*LOGS["ZNODES"][:7], logs.assigned([1, 3], 2)],
    ),
    "replicas change without a reassignment": (
        "reassignment.completed",
        "ZNODES",
        [*LOGS["ZNODES"][:4], logs.assigned([1, 3], 1)],
    ),
}
"""Other ways to break a rule: the rule, the log it is of, and that log."""
LEGAL: dict[str, tuple[str, list[Event]]] = {
    "a member that was heard of joins again, and has another session time-out": (
        "GROUP",
        [
            *LOGS["GROUP"][:7],
            logs.beats("b"),
            LOGS["GROUP"][7],
            logs.member("b", "removed") | {"reason": "session expired", "mono": 5_000_000_000},
            *LOGS["GROUP"][10:],
        ],
    ),
    "an event of a controller fails, and leaves its view half changed": (
        "HOLDINGS",
        [
            *LOGS["HOLDINGS"],
            logs.handled("NoNode"),
            *[logs.holds(controller_differences=["replicas with a state"])] * 2,
            logs.office("elected", 2),
        ],
    ),
    "a fetcher of Kafka appends under the epoch before": (
        "REPLICA",
        [*LOGS["REPLICA"], logs.append("follower", 2, 4) | {"batch_epoch": None}],
    ),
    "a log is cleaned because a record is dirty for too long": (
        "REPLICA",
        inserted("REPLICA", 21, logs.cleaned(20, 10, delay_ms=1)),
    ),
    "the answer to the deletion of a topic's znode is lost, and it is deleted again": (
        "CONTROLLER",
        instead("CONTROLLER", 16, logs.written("/brokers/topics/orders", 1, "delete") | {"result": "nonode"}),
    ),
    "a topic's configuration was deleted already": (
        "CONTROLLER",
        instead("CONTROLLER", 17, logs.written("/config/topics/orders", 1, "delete") | {"result": "nonode"}),
    ),
    "a controller reads the state of a newer one, and makes no election": (
        "CONTROLLER",
        inserted("CONTROLLER", 6, logs.elected(result=None, previous=2)),
    ),
    "replicas change in a format that does not have reassignments": (
        "ZNODES",
        [*LOGS["ZNODES"][:4], logs.znode("/brokers/topics/orders", {"version": 1, "partitions": {"0": [1, 3]}}, 1)],
    ),
    "a former replica that was in the ISR when it was added stays there when it is removed": (
        "ZNODES",
        [
            *LOGS["ZNODES"][:2],
            logs.assigned([3, 1, 2], 1, (3,), ()),
            logs.assigned([1, 2], 2),
            logs.state(1, 0, [1, 2, 3], 1),
            logs.assigned([3, 1, 2], 3, (3,), (1, 2)),
            logs.state(3, 1, [3], 2),
            logs.assigned([3], 4),
            logs.assigned([1, 3], 5, (1,), (3,)),
            logs.state(3, 1, [3, 1], 3),
            logs.assigned([1], 6),
        ],
    ),
    "a quorum completes a reassignment by the write that adds a broker and elects": (
        "ZNODES",
        [logs.state(1, 0, [1, 2], 0), logs.state(2, 1, [2, 3], 1)],
    ),
    "a proposal is logged after another thread has logged its state": (
        "LEADER",
        [
            logs.leads(1, 3, zk_version=1, isr=[2, 1]),
            logs.mark("leader", 1, 0, 3, 3, cause="", isr=[1, 2, 3], zk_version=2),
            logs.proposes("expand", [1, 2], [1, 2, 3], 1),
        ],
    ),
    "a proposal is logged after another thread has logged the next leader epoch": (
        "LEADER",
        [
            logs.leads(1, 3, zk_version=1, isr=[1, 2, 3], log_start_offset=-1),
            logs.leads(2, 3, zk_version=2, isr=[1, 2], log_start_offset=-1),
            logs.proposes("shrink", [1, 2, 3], [1, 2], 1),
        ],
    ),
    "a truncation beyond the end, where the leader has deleted all": (
        "REPLICA",
        inserted("REPLICA", 21, logs.truncate(4, 9, "full")),
    ),
    "an empty log begins anew with the whole batch within which its leader starts": (
        "REPLICA",
        inserted(
            "REPLICA",
            21,
            logs.truncate(4, 9, "full"),
            logs.starts_at(0, 9, "truncation"),
            logs.truncate(9, 7, "full"),
            logs.starts_at(9, 7, "truncation"),
        ),
    ),
    "retention and compaction up to the high watermark": (
        "REPLICA",
        inserted("REPLICA", 21, logs.deleted(4), logs.starts_at(0, 4), logs.compacted(4)),
    ),
    "an epoch without records is dropped, which begins where the log does since its records were deleted": (
        "REPLICA",
        inserted(
            "REPLICA",
            21,
            logs.assign(3, 4),
            logs.append("follower", 3, 4),
            logs.mark("follower", 3, 4, 5, 5),
            logs.starts_at(0, 5),
            logs.assign(3, 5),
            logs.append("follower", 3, 5),
        ),
    ),
    "leader epochs from the start of the log on": (
        "REPLICA",
        inserted("REPLICA", 21, logs.starts_at(0, 2), logs.tells_epochs([(1, 2), (2, 3)])),
    ),
    "a request that is answered just after the lead was lost": (
        "REPLICA",
        inserted("REPLICA", 21, logs.produced(-1, 4, error=7) | {"mono": 1_000_000_000}),
    ),
    "a request that is told that the lead was lost": (
        "REPLICA",
        inserted("REPLICA", 21, logs.produced(-1, 4, error=6) | {"mono": 9_000_000_000}),
    ),
    "ListOffsets tells the start, the high watermark and records": (
        "REPLICA",
        inserted(
            "REPLICA",
            15,
            logs.listed(-2, 0),
            logs.listed(-4, 0),
            logs.listed(-1, 4),
            logs.listed(5, 3, found=5),
            logs.listed(9, -1),
        ),
    ),
    "the latest offset of committed transactions": (
        "REPLICA",
        inserted("REPLICA", 15, logs.listed(-1, 3) | {"read_committed": True}),
    ),
    "a broker that is registered anew misses what waited for it": (
        "LIVE_BROKERS",
        [
            *LOGS["LIVE_BROKERS"][:8],
            logs.reads_brokers(5, 1, 2, 3, anew=2),
            logs.sends_live(6, 1, 1, 2, 3),
            logs.sends_live(6, 2, 1, 2, 3, broker_epoch=8),
            *LOGS["LIVE_BROKERS"][12:16],
        ],
    ),
    "a request for an earlier registration counts for none": (
        "LIVE_BROKERS",
        [
            *LOGS["LIVE_BROKERS"][:8],
            logs.reads_brokers(5, 1, 2, 3),
            logs.reads_brokers(6, 1, 2, anew=2),
            logs.sends_live(7, 1, 1, 2, 3, queued_ms=2),
            logs.sends_live(7, 2, 1, 2, queued_ms=3),
            logs.sends_live(7, 1, 1, 2),
            logs.sends_live(7, 2, 1, 2, broker_epoch=8),
            logs.handled("ok"),
        ],
    ),
    "ListOffsets finds a record, or nothing tiered, before the high watermark has reached the epoch": (
        "REPLICA",
        inserted("REPLICA", 12, logs.listed(-5, -1), logs.listed(1, 1, found=2)),
    ),
    "a truncation inside a batch, which goes altogether": (
        "REPLICA",
        inserted(
            "REPLICA",
            21,
            logs.assign(3, 4),
            logs.append("follower", 3, 4),
            logs.append("follower", 3, 5, last_offset=6),
            logs.truncate(7, 6),
            logs.truncate(5, 6, "full"),
        ),
    ),
    "a truncation before the start of the log": (
        "REPLICA",
        inserted("REPLICA", 21, logs.starts_at(0, 3), logs.truncate(4, 2), logs.starts_at(3, 2, "truncation")),
    ),
    "a role that no live leader has": ("REPLICA", inserted("REPLICA", 21, logs.told(9, "leader_unavailable"))),
    "a replica that was stopped is made anew": (
        "REPLICA",
        [*LOGS["REPLICA"], logs.told(-2, api="StopReplica"), logs.follows(0, 0, previous_leader_epoch=-1)],
    ),
    "an unclean election leaves the leader alone": ("ZNODES", [*LOGS["ZNODES"][:3], logs.state(2, 1, [2], 2)]),
    "a coordinator whose disk has failed refuses what it is about to unload": (
        "COORDINATOR",
        [
            *LOGS["COORDINATOR"][:10],
            *[REFUSED] * 2,
            {"ev": "txn_unload", "partition": 0, "leader_epoch": 0},
            logs.follows(1, 0, topic="__transaction_state"),
            logs.holds(transaction_partitions=[0], transaction_leads=[0]),
        ],
    ),
    "a reassignment is taken back": ("ZNODES", [*LOGS["ZNODES"][:5], logs.assigned([1, 2], 2)]),
    "a partition that a write of its topic left out is added again": (
        "ZNODES",
        [*LOGS["ZNODES"], logs.assigned([2], 4)],
    ),
    "a reassignment is written again": ("ZNODES", [*LOGS["ZNODES"][:7], logs.assigned([1, 3, 2], 2, (3,), (2,))]),
    "another reassignment takes its place": ("ZNODES", [*LOGS["ZNODES"][:5], logs.assigned([1, 4, 2], 2, (4,), (2,))]),
}


@pytest.mark.parametrize("case", FURTHER)
def test_it_is_broken_in_other_ways_too(case: str) -> None:
    rule, name, events = FURTHER[case]
    assert {step.rule.id for step in illegal(name, events)} == {rule}


@pytest.mark.parametrize("case", LEGAL)
def test_what_the_protocol_allows_breaks_no_rule(case: str) -> None:
    assert illegal(*LEGAL[case]) == []


@pytest.mark.parametrize("name", LOGS)
def test_a_log_of_legal_steps_breaks_no_rule(name: str) -> None:
    assert illegal(name, LOGS[name]) == []


@pytest.mark.parametrize("rule", MUTANTS)
def test_a_mutant_of_the_log_breaks_one_rule(rule: str) -> None:
    name, events = MUTANTS[rule]
    assert {step.rule.id for step in illegal(name, events)} == {rule}


def test_every_rule_has_a_mutant_of_its_own() -> None:
    assert sorted(MUTANTS) == sorted(rule.id for rule in RULES)


def test_every_rule_belongs_to_a_subject_and_is_a_sentence_with_a_source() -> None:
    for rule in RULES:
        assert rule.sentence[0].isupper()
        assert rule.sentence.endswith(".")
        assert rule.source


def _events_of(subjects: Any) -> Iterator[str]:
    for subject in subjects:
        yield from subject.legal


def test_the_model_reads_events_that_there_are() -> None:
    from harness.events import KINDS

    assert set(_events_of(OF_BROKERS)) <= KINDS.keys()
    assert set(_events_of([OF_ZOOKEEPER])) == {"written", "gone", "assigned", "made", "configured"}

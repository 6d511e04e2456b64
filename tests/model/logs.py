"""Logs in which every step is legal, one a kind of subject, in as few fields as the model reads."""

import json
from typing import Any

Event = dict[str, Any]
P: Event = {"topic": "orders", "partition": 0}
START: Event = {"ev": "broker_start"}


def lines(events: list[Event], *, broker: int = 1, inc: str = "a", first: int = 0) -> list[bytes]:
    """Return events as lines of one life of a broker."""
    common = {"broker": broker, "inc": inc, "session": "0x1", "mono": 0}
    numbered = ({**common, "seq": seq, **event} for seq, event in enumerate(events, first))
    return [json.dumps(event).encode() + b"\n" for event in numbered]


def leads(epoch: int, end: int, **other: Any) -> Event:
    role = {"previous_leader_epoch": epoch - 1, "log_start_offset": 0, "high_watermark": 0, "log_end_offset": end}
    return {"ev": "become_leader", **P, "leader_epoch": epoch, **role, "isr": [1, 2], "zk_version": epoch} | other


def follows(epoch: int, end: int, **other: Any) -> Event:
    return leads(epoch, end) | {"ev": "become_follower", "leader": 2} | other


def append(role: str, epoch: int, base: int, **other: Any) -> Event:
    batch = {"base_offset": base, "last_offset": base, "batch_epoch": epoch, "isr_size": 2 if role == "leader" else 0}
    return {"ev": "append", **P, "role": role, "leader_epoch": epoch, **batch} | other


def mark(role: str, epoch: int, old: int, new: int, end: int, **other: Any) -> Event:
    isr = [1, 2] if role == "leader" else []
    moved = {"old": old, "new": new, "log_end_offset": end, "isr": isr, "zk_version": epoch, "cause": "fetch"}
    return {"ev": "hw", **P, "role": role, "leader_epoch": epoch, **moved} | other


def stable(role: str, epoch: int, old: int, new: int) -> Event:
    return {"ev": "lso", **P, "role": role, "leader_epoch": epoch, "old": old, "new": new, "high_watermark": new}


def assign(epoch: int, start: int) -> Event:
    return {"ev": "epoch_assign", **P, "leader_epoch": epoch, "start_offset": start}


def truncate(end: int, to: int, reason: str = "epoch") -> Event:
    return {"ev": "truncate", **P, "log_end_offset": end, "to": to, "reason": reason}


def told(epoch: int, verdict: str = "applied", api: str = "LeaderAndIsr") -> Event:
    partition = {**P, "leader_epoch": epoch, "verdict": verdict}
    return {"ev": "ctl_recv", "api": api, "verdict": "applied", "partitions": [partition], "request_broker_epoch": 7}


def fetched(epoch: int, last: int, mark: int) -> Event:
    answer = {"replica": -1, "last_offset": last, "high_watermark": mark}
    return {"ev": "fetch_resp", **P, "leader_epoch": epoch, **answer}


def produced(last: int, mark: int, acks: int = -1, error: int = 0) -> Event:
    answer = {"acks": acks, "error": error, "last_offset": last, "high_watermark": mark}
    return {"ev": "produce_resp", **P, **answer}


def listed(asked: int, offset: int, epoch: int = 2, *, found: int = -1) -> Event:
    answer = {"offset": offset, "record_timestamp": found, "read_committed": False}
    return {"ev": "list_offsets", **P, "leader_epoch": epoch, "timestamp": asked, **answer}


def recovered(end: int, mark: int, start: int = 0) -> Event:
    return {"ev": "recovery", **P, "log_start_offset": start, "log_end_offset": end, "high_watermark": mark}


def starts_at(old: int, new: int, cause: str = "retention") -> Event:
    return {"ev": "log_start", **P, "old": old, "new": new, "high_watermark": 4, "cause": cause}


def deleted(end: int) -> Event:
    return {"ev": "segment_delete", **P, "base_offset": 0, "end_offset": end, "reason": "age", "high_watermark": end}


def tells_epochs(epochs: list[tuple[int, int]]) -> Event:
    return {"ev": "ofle", **P, "leader_epochs": [list(each) for each in epochs]}


def cleaned(clean: int, dirty: int, delay_ms: int = 0) -> Event:
    figures = {"clean_bytes": clean, "dirty_bytes": dirty, "min_dirty_ratio": 0.5, "delay_ms": delay_ms}
    return {"ev": "cleaning_start", **P, "from_offset": 0, "until_offset": 2, **figures}


def compacted(until: int) -> Event:
    return {"ev": "compaction", **P, "from_offset": 0, "until_offset": until}


REPLICA = [
    START,
    recovered(2, 1),
    follows(1, 2, high_watermark=1, previous_leader_epoch=-1),
    told(1),
    told(1, "ignored_same"),
    truncate(2, 1),
    assign(1, 1),
    append("follower", 1, 1),
    append("follower", 1, 2),
    mark("follower", 1, 1, 2, 3),
    assign(2, 3),
    leads(2, 3, high_watermark=2),
    told(2),
    append("leader", 2, 3),
    mark("leader", 2, 2, 4, 4),
    fetched(2, 3, 4),
    produced(3, 4),
    produced(-1, 4, error=19),
    told(1, "ignored_old"),
    follows(3, 4, high_watermark=4),
    told(3),
]
"""A replica is loaded, follows, leads, and follows again."""


def proposes(kind: str, old: list[int], new: list[int], version: int, **other: Any) -> Event:
    known = {"log_end_offset": 3, "high_watermark": 2, "epoch_start_offset": 1, "ends": [3] * len(new)}
    return {"ev": "isr_propose", **P, "kind": kind, "leader_epoch": 1, "old": old, "new": new} | {
        "zk_version": version,
        **known,
        **other,
    }


def answered(old: list[int], new: list[int], version: int, result: str = "ok", **other: Any) -> Event:
    now = version + (result == "ok")
    common = {"leader_epoch": 1, "old": old, "new": new, "zk_version": version, "result": result}
    return {"ev": "isr_result", **P, **common, "new_zk_version": now} | other


LEADER = [
    START,
    leads(1, 3, previous_leader_epoch=-1, isr=[1, 2]),
    proposes("shrink", [1, 2], [1], 1),
    answered([1, 2], [1], 1),
    mark("leader", 1, 0, 3, 3, isr=[1], zk_version=2),
    append("leader", 1, 3, isr_size=1),
    proposes("expand", [1], [1, 2], 2),
    answered([1], [1, 2], 2, "badversion"),
    proposes("expand", [1], [1, 2], 2),
    answered([1], [1, 2], 2),
    mark("leader", 1, 3, 4, 4, zk_version=3),
    stable("leader", 1, 3, 4),
    follows(2, 4, high_watermark=4),
]
"""A leader lets a follower out of its ISR and in again."""


def office(ev: str, epoch: int, **other: Any) -> Event:
    return {"ev": f"controller_{ev}", "controller_epoch": epoch, "epoch_zk_version": epoch} | other


def written(path: str, epoch: int, op: str = "set") -> Event:
    return {"ev": "zk_write", "path": path, "op": op, "result": "ok", "by": "controller", "controller_epoch": epoch}


def moved(now: str, before: str, epoch: int = 1, **other: Any) -> Event:
    states = {"from_state": f"{before}Partition", "to_state": f"{now}Partition"}
    return {"ev": "partition_state", **P, **states, "controller_epoch": epoch} | other


def replica_moved(now: str, before: str, epoch: int = 1, **other: Any) -> Event:
    states = {"replica": 2, "from_state": before, "to_state": now}
    return {"ev": "replica_state", **P, **states, "controller_epoch": epoch} | other


def elected(epoch: int = 1, result: Any = True, previous: int = 0) -> Event:
    before = {"controller_epoch": previous}
    return {"ev": "election", **P, "previous": before, "result": result, "controller_epoch": epoch}


CONTROLLER = [
    START,
    {"ev": "zk_session", "state": "connected"},
    office("elected", 1),
    office("ready", 1),
    moved("New", "NonExistent"),
    written("/brokers/topics/orders/partitions/0/state", 1, "create"),
    elected(),
    moved("Online", "New"),
    replica_moved("NewReplica", "NonExistentReplica"),
    replica_moved("OnlineReplica", "NewReplica"),
    moved("Offline", "Online"),
    replica_moved("OfflineReplica", "OnlineReplica"),
    moved("NonExistent", "Offline"),
    replica_moved("ReplicaDeletionStarted", "OfflineReplica"),
    replica_moved("ReplicaDeletionSuccessful", "ReplicaDeletionStarted"),
    replica_moved("NonExistentReplica", "ReplicaDeletionSuccessful"),
    written("/brokers/topics/orders", 1, "delete"),
    written("/config/topics/orders", 1, "delete"),
    written("/admin/delete_topics/orders", 1, "delete"),
    office("moved", 1),
    office("resigned", 1),
    {"ev": "zk_session", "state": "reinit", "session": "0x2"},
    office("elected", 4, session="0x2"),
]
"""A controller makes a partition, deletes its topic, loses its office to another and wins it back."""


def group_is(now: str, before: str, generation: int, *members: str) -> Event:
    named = [{"member": member} for member in members]
    group = {"group": "g", "coordinator_epoch": 0, "generation": generation}
    return {"ev": "group_state", **group, "from_state": before, "to_state": now, "members": named}


def member(name: str, change: str, old: str | None = None) -> Event:
    group = {"group": "g", "coordinator_epoch": 0, "member": name, "change": change, "old_member": old}
    return {"ev": "group_member", **group}


def beats(name: str) -> Event:
    group = {"group": "g", "coordinator_epoch": 0, "generation": 1}
    return {"ev": "group_heartbeat", **group, "member": name, "session_timeout_ms": 10_000}


def stored(generation: int, *members: str, reason: str = "stored") -> Event:
    told_to = [{"member": each} for each in members]
    group = {"group": "g", "coordinator_epoch": 0, "generation": generation, "reason": reason}
    return {"ev": "group_assignment", **group, "assignments": told_to}


GROUP = [
    START,
    member("a", "joined"),
    group_is("PreparingRebalance", "Empty", 0, "a"),
    group_is("CompletingRebalance", "PreparingRebalance", 1, "a"),
    stored(1, "a"),
    group_is("Stable", "CompletingRebalance", 1, "a"),
    member("b", "replaced", "a"),
    group_is("PreparingRebalance", "Stable", 1, "b"),
    beats("b"),
    member("b", "removed") | {"reason": "session expired", "mono": 10_000_000_000},
    group_is("Empty", "PreparingRebalance", 2),
    group_is("Dead", "Empty", 2),
    group_is("Dead", "Empty", 0),
    member("c", "joined"),
    group_is("PreparingRebalance", "Empty", 0, "c"),
]
"""A group gets its first member, which comes back under another id and leaves; a commit and a member make it anew."""


def transaction_is(now: str, before: str, *partitions: str, producer_epoch: int = 0) -> Event:
    producer = {"transactional_id": "t", "coordinator_epoch": 0, "producer_id": 7, "producer_epoch": producer_epoch}
    return {"ev": "txn_state", **producer, "from_state": before, "to_state": now, "partitions": list(partitions)}


def holds(**leftovers: Any) -> Event:
    """What broker 1 holds: it follows broker 2, is controller, and coordinates groups and transactions."""
    brokers = {"fetchers": [2], "followed": [2], "channels": [1, 2], "live": [1, 2]}
    groups = {"group_partitions": [0], "group_leads": [0]}
    transactions = {"transaction_partitions": [1], "transaction_leads": [1]}
    sessions: Event = {"without_session": [], "session_slots": 1000}
    office: Event = {"controller_idle": False, "unanswered": [], "controller": 1, "known_brokers": [1, 2]}
    waiting: Event = {"timers_missing": [], "timers_left": [], "unclaimed": [], "due": [], "stuck_transactions": []}
    waiting |= {"differences": [], "controller_differences": [], "overdue": []}
    return {"ev": "holdings", **brokers, **groups, **transactions, **sessions, **office, **waiting} | leftovers


def reads_brokers(at: int, *brokers: int, anew: int | None = None) -> Event:
    registrations = [(broker, 8 if broker == anew else 7) for broker in brokers]
    return {"ev": "registrations_read", "registrations": registrations, "mono": at * 1_000_000}


def sends_live(at: int, to: int, *live: int, queued_ms: float = 0, broker_epoch: int = 7) -> Event:
    message = {"api": "UpdateMetadata", "to": to, "live_brokers": list(live), "queued_ms": queued_ms}
    return {"ev": "ctl_send", **message, "target_broker_epoch": broker_epoch, "mono": at * 1_000_000}


def sends_leader(at: int, to: int, broker_epoch: int = 7) -> Event:
    """The controller sends LeaderAndIsr."""
    return sends_live(at, to) | {"api": "LeaderAndIsr", "live_brokers": None, "target_broker_epoch": broker_epoch}


def elects(number: int, *online: int, leaving: int, result: Any = True) -> Event:
    """A leader is elected as a broker in the ISR is about to leave; another one that is online is no replica."""
    candidates = {"online": [*online, 8], "shutting_down": [leaving, 9], "previous": {"isr": [*online, leaving]}}
    candidates |= {"strategy": "controlled_shutdown", "assigned": [*online, leaving, 9]}
    return {
        "ev": "election",
        "topic": "orders",
        "partition": number,
        **candidates,
        "result": result,
    }


def sends_leaders(to: int, *numbers: int) -> Event:
    """The controller sends LeaderAndIsr of these partitions."""
    partitions = [f"orders-{number}" for number in numbers]
    return sends_leader(0, to) | {"partitions": partitions}


def sends_metadata(to: int, made_seq: int) -> Event:
    """The controller sends UpdateMetadata, which it made before the line of this number."""
    return sends_live(0, to) | {"live_brokers": None, "made_seq": made_seq}


def handled(outcome: str) -> Event:
    return {"ev": "controller_event", "outcome": outcome}


LIVE_BROKERS: list[Event] = [
    START,
    office("elected", 1),
    reads_brokers(1, 1, 2, 3),
    sends_live(2, 1, 1, 2, 3),
    sends_live(2, 2, 1, 2, 3),
    reads_brokers(3, 1, 2),
    sends_live(4, 1, 1, 2),
    holds(controller_idle=True, unanswered=[2]),
    reads_brokers(5, 1, 2, 3),
    sends_live(6, 1, 1, 2, 3),
    sends_live(6, 2, 1, 2, queued_ms=2),
    sends_live(6, 2, 1, 2, 3),
    sends_live(6, 3, 1, 2, 3),
    handled("ok"),
    sends_leader(6, 3),
    holds(controller_idle=True, channels=[1, 2, 3], live=[1, 2, 3]),
    reads_brokers(7, 1, 2),
    handled("SessionExpired"),
    holds(controller_idle=True),
]
"""A controller sends two of its brokers that the third went and came back; then an event of it fails."""


def loads_groups(epoch: int) -> Event:
    return {"ev": "gc_load", "partition": 0, "leader_epoch": epoch}


def unloads_groups(epoch: int) -> Event:
    return {"ev": "gc_unload", "partition": 0, "leader_epoch": epoch}


def refused(got: int, have: int, error: int, **other: Any) -> Event:
    return {"ev": "fenced", "what": "leader_epoch", **P, "got": got, "have": have, "error": error} | other


def marked(*, commits: bool) -> Event:
    return {"ev": "txn_marker_send", "transactional_id": "t", "coordinator_epoch": 0, "commits": commits}


TRANSACTION = [
    START,
    transaction_is("Empty", "Empty"),
    transaction_is("Ongoing", "Empty", "orders-0"),
    transaction_is("PrepareCommit", "Ongoing", "orders-0"),
    marked(commits=True),
    transaction_is("CompleteCommit", "PrepareCommit"),
    transaction_is("Ongoing", "CompleteCommit", "orders-0", producer_epoch=1),
    transaction_is("PrepareAbort", "Ongoing", "orders-0", producer_epoch=1),
    marked(commits=False),
    transaction_is("CompleteAbort", "PrepareAbort", producer_epoch=1),
    transaction_is("Dead", "CompleteAbort", producer_epoch=1),
    transaction_is("Empty", "Empty"),
]
"""A producer commits a transaction and aborts the next; its id expires, and another one begins anew with it."""


def znode(path: str, data: Event, version: int, type_: str = "set") -> Event:
    return {"path": path, "type": type_, "version": version, "data": json.dumps(data)}


def state(leader: int, epoch: int, isr: list[int], version: int, controller: int = 1) -> Event:
    data = {"leader": leader, "leader_epoch": epoch, "isr": isr, "controller_epoch": controller}
    kind = "set" if version else "create"
    return znode("/brokers/topics/orders/partitions/0/state", data, version, kind)


def assigned(replicas: list[int], version: int, adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()) -> Event:
    data = {"partitions": {"0": replicas}, "adding_replicas": {}, "removing_replicas": {}}
    if adding or removing:
        data |= {"adding_replicas": {"0": list(adding)}, "removing_replicas": {"0": list(removing)}}
    return znode("/brokers/topics/orders", data, version, "set" if version else "create")


ZNODES = [
    assigned([1, 2], 0),
    state(1, 0, [1, 2], 0),
    state(1, 0, [1], 1),
    state(1, 0, [1, 2], 2),
    assigned([1, 3, 2], 1, (3,), (2,)),
    state(1, 1, [1, 2], 3),
    state(1, 1, [1, 2, 3], 4),
    state(1, 2, [1, 3], 5, controller=2),
    assigned([1, 3], 2),
    state(3, 3, [3], 6, controller=2),
    znode("/brokers/topics/orders/partitions/0/state", {}, -1, "delete"),
    znode("/config/topics/later", {}, 0, "create"),
    znode("/brokers/topics/later", {"partitions": {}, "adding_replicas": {}, "removing_replicas": {}}, 0, "create"),
    znode("/config/topics/later", {}, -1, "delete"),
    znode("/config/topics/later", {}, 0, "create"),
    znode("/brokers/topics/found", {"partitions": {}, "adding_replicas": {}, "removing_replicas": {}}, 0, "create"),
    znode("/config/topics/found", {}, 3, "set"),
]
"""A partition's ISR shrinks and grows, it moves from broker 2 to broker 3, and is deleted; a topic is created."""


def history(changes: list[Event]) -> list[bytes]:
    """Return changes as the lines of ZooKeeper's history, each in a transaction of its own."""
    numbered = ({"zxid": zxid, "time_ms": 0, **change} for zxid, change in enumerate(changes, 1))
    return [json.dumps(change).encode() + b"\n" for change in numbered]


_OFFSETS: Event = {"topic": "__consumer_offsets"}


def writes(producer_id: int, epoch: int, sequence: int, at: int, **other: Any) -> Event:
    producer = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
    return append("leader", 1, at, **producer, **other)


def rejects(epoch: int, sequence: int, error: int) -> Event:
    producer = {"producer_id": 7, "producer_epoch": epoch, "base_sequence": sequence}
    return {"ev": "batch_refused", **P, "leader_epoch": 1, "log_start_offset": 0, **producer, "error": error}


PRODUCER: list[Event] = [
    START,
    assign(1, 0),
    leads(1, 0, previous_leader_epoch=-1, isr=[1]),
    writes(7, 0, 0, 0, last_offset=1, isr_size=1),
    rejects(0, 3, 45),
    writes(7, 1, -1, 2, isr_size=1),
    rejects(0, 2, 47),
    rejects(2, 1, 45),
    writes(7, 2, 0, 3, isr_size=1),
    {"ev": "txn_verification", **P, "producer_id": 7},
    rejects(2, 1, 45),
    writes(7, 2, 1, 4, isr_size=1),
]
"""A leader refuses batches that are not the next ones, and of an epoch that a marker has ended."""

COORDINATOR: list[Event] = [
    START,
    leads(0, 0, previous_leader_epoch=-1, **_OFFSETS),
    loads_groups(0),
    follows(1, 0, **_OFFSETS),
    unloads_groups(1),
    leads(2, 0, **_OFFSETS),
    loads_groups(2),
    leads(0, 0, previous_leader_epoch=-1, topic="__transaction_state"),
    {"ev": "txn_load", "partition": 0, "leader_epoch": 0},
    {"ev": "txn_marker_send", "state_partition": 0},
    {"ev": "txn_response", "state_partition": 0, "error": 51},
    {"ev": "txn_response", "state_partition": 1, "error": 16},
    *[holds(transaction_partitions=[0], transaction_leads=[0])] * 16,
]

CHECKPOINTS: list[Event] = [
    START,
    leads(0, 0, previous_leader_epoch=-1),
    leads(1, 0),
    follows(1, 0, topic="events", previous_leader_epoch=-1, mono=5_000_000_000),
    {"ev": "hw_checkpoint", "count": 1, "mono": 32_000_000_000},
    {"ev": "hw_checkpoint", "count": 2, "mono": 36_000_000_000},
    told(3, api="StopReplica"),
    {"ev": "hw_checkpoint", "count": 1, "mono": 40_000_000_000},
    {"ev": "log_dir_failure"},
    {"ev": "hw_checkpoint", "count": 0, "mono": 50_000_000_000},
]
"""A broker leads a partition and follows another, loses the one to a deletion and the other with its disk."""


def told_live(*live: int, **other: Any) -> Event:
    return {"ev": "ctl_recv", "api": "UpdateMetadata", "verdict": "applied", "live_brokers": [*live], **other}


HOLDINGS: list[Event] = [
    START,
    holds(),
    told_live(1, 2),
    told_live(3, verdict="stale"),
    {**told_live(), "api": "LeaderAndIsr", "live_brokers": None},
    holds(fetchers=[2, 3]),
    holds(fetchers=[2]),
    holds(without_session=[2]),
    *[holds(without_session=[2], session_slots=0)] * 2,
    *[holds(channels=list[int]())] * 2,
    {"ev": "zk_session", "state": "connected"},
    *[holds(controller=-1)] * 15,
    {"ev": "zk_session", "state": "suspended"},
    *[holds(controller=-1)] * 16,
    {"ev": "zk_session", "state": "connected"},
]

LEADERS_SENT: list[Event] = [
    elects(0, 1, 2, leaving=3),
    START,
    office("elected", 1),
    reads_brokers(1, 1, 2, 3, 9),
    elects(0, 1, 2, leaving=3),
    elects(1, 1, 2, leaving=3, result=None),
    elects(2, 1, 2, leaving=3),
    sends_metadata(2, made_seq=4),
    sends_leaders(1, 0, 2),
    sends_leaders(2, 0),
    sends_leaders(2, 2),
    sends_leaders(3, 0, 2),
    sends_metadata(1, made_seq=7),
    sends_metadata(2, made_seq=7),
    sends_metadata(3, made_seq=7),
    handled("ok"),
    elects(1, 1, 2, leaving=3) | {"strategy": "offline"},
    sends_leaders(1, 1),
    sends_metadata(3, made_seq=17),
    reads_brokers(7, 1, 3, 9),
    reads_brokers(7, 1, 2, 3, 9),
    sends_metadata(2, made_seq=20),
    elects(0, 1, 2, leaving=3),
    handled("SessionExpired"),
    reads_brokers(8, 1, 2, 3, 9),
    sends_metadata(1, made_seq=23),
]

"""Which steps may one replica of a partition take between two starts of its broker?

It is loaded, takes a role in ever newer leader epochs, appends at its end what its role lets it append, and loses
records by truncation alone. Offsets of which a broker's log does not tell are None and are not judged.
"""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from harness.events import NO_OFFSET
from harness.model.step import Event, Illegal, Key, Rule, Subject
from harness.values import ACKS_ALL

LEADER, FOLLOWER, NO_ROLE = "leader", "follower", ""
NO_EPOCH = -1
LATEST, EARLIEST, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -4, -5
"""As timestamps in ListOffsets."""
FENCED, UNKNOWN_EPOCH = 74, 75
"""Kafka's numbers of FENCED_LEADER_EPOCH and UNKNOWN_LEADER_EPOCH."""
TIMED_OUT = 7
"""Kafka's number of REQUEST_TIMED_OUT."""
ANSWERED_WITHIN_NS = 1_000_000_000
"""An answer that was decided before the lead was lost is logged after that, within so much."""
CONSUMER = -1
"""As replica that fetches."""
REMEMBERED = 16
"""So many of the last batches are known by their base offsets."""
UNTOLD = -2
"""As newest epoch: what the log had when the broker started, of which no line tells."""


class Replica(Struct, frozen=True, kw_only=True):
    """One replica as its broker's log shows it; None is unknown."""

    role: str | None = None
    leader_epoch: int | None = None
    log_start: int | None = None
    deleted_to: int | None = None
    """End of the last segment that retention has deleted since the log was loaded or cut."""
    log_end: int | None = None
    high_watermark: int | None = None
    skipped: tuple[tuple[int, int], ...] = ()
    """Rises of the high watermark, from and to, that a thread has yet to log (decision 0084)."""
    newest_epoch: int | None = None
    """The last entry of the leader-epoch cache."""
    newest_start: int | None = None
    """Where that entry starts, if this life of the broker has assigned it."""
    batch_epoch: int | None = None
    """Of the last batch that was appended since the log was loaded or cut."""
    bases: tuple[int, ...] = ()
    """Base offsets of the last batches that were appended since the log was loaded."""
    epoch_start: int | None = None
    """Log end when a leader took its role."""
    role_ns: int | None = None
    """When it took its role, on the broker's monotonic clock."""


FRESH = Replica(role=NO_ROLE, leader_epoch=NO_EPOCH, log_start=0, log_end=0, high_watermark=0, newest_epoch=NO_EPOCH)
UNKNOWN = Replica()

LOADED_FIRST = Rule(
    id="replica.loaded-first",
    sentence="A log is loaded before its replica takes a role, and once in the life of a broker.",
    source="LogManager.loadLogs",
)
CLOSED_WHOLE = Rule(
    id="replica.closed-whole",
    sentence="A log that was closed cleanly was synced to its end: its recovery point is not before that.",
    source="LogManager.shutdown, LogManager.checkpointLogRecoveryOffsets",
    needs="holdings",
)
EPOCH_RISES = Rule(
    id="replica.epoch-rises",
    sentence="A replica takes a role only in a newer leader epoch than that of its last role.",
    source="ReplicaManager.becomeLeaderOrFollower",
)
EPOCH_CONTINUES = Rule(
    id="replica.epoch-continues",
    sentence="The leader epoch that a new role replaces is that of the last role.",
    source="Partition.makeLeader, Partition.makeFollower",
)
ROLE_KEEPS_LOG = Rule(
    id="replica.role-keeps-log",
    sentence="A new role moves neither the log end nor the high watermark.",
    source="Partition.makeLeader, Partition.makeFollower",
)
EPOCH_ASSIGNED = Rule(
    id="replica.epoch-assigned",
    sentence="A leader has its epoch in the leader-epoch cache, at its log end, before it leads.",
    source="KAFKA-7415, Partition.makeLeader",
    needs="epoch_assign",
)
APPEND_IN_ROLE = Rule(
    id="replica.append-in-role",
    sentence="A batch is appended in the role and leader epoch that the replica has.",
    source="Partition.appendRecordsToLeader, Partition.appendRecordsToFollowerOrFutureReplica",
)
APPEND_AT_END = Rule(
    id="replica.append-at-end",
    sentence="A leader appends exactly at its log end, a follower at it or beyond it.",
    source="UnifiedLog.append, ReplicaFetcherThread.processPartitionData",
)
BATCH_EPOCH = Rule(
    id="replica.batch-epoch",
    sentence="A batch has its leader's epoch, and no older one than the batches before it.",
    source="KIP-101, UnifiedLog.append",
)
EPOCH_BEFORE_BATCH = Rule(
    id="replica.epoch-before-batch",
    sentence="An epoch is in the leader-epoch cache before the first batch of it is appended.",
    source="KIP-101, LeaderEpochFileCache.assign",
    needs="epoch_assign",
)
EPOCH_FORWARD = Rule(
    id="replica.epoch-forward",
    sentence="The leader-epoch cache gains only newer epochs, each from the log end or beyond it.",
    source="LeaderEpochFileCache.assign",
)
WATERMARK_IN_ROLE = Rule(
    id="replica.watermark-in-role",
    sentence="A high watermark moves in the role and leader epoch that the replica has.",
    source="Partition.maybeIncrementLeaderHW, ReplicaFetcherThread.processPartitionData",
)
WATERMARK_CONTINUES = Rule(
    id="replica.watermark-continues",
    sentence="A high watermark moves from where it was.",
    source="UnifiedLog.updateHighWatermarkMetadata",
)
WATERMARK_RISES = Rule(
    id="replica.watermark-rises",
    sentence="The high watermark of a leader only rises.",
    source="UnifiedLog.maybeIncrementHighWatermark",
)
WATERMARK_IN_LOG = Rule(
    id="replica.watermark-in-log",
    sentence="A high watermark is at the log end at most.",
    source="UnifiedLog.updateHighWatermark",
)
LEADER_KEEPS_LOG = Rule(
    id="replica.leader-keeps-log",
    sentence="A leader truncates nothing.",
    source="KIP-101, AbstractFetcherThread.truncateToEpochEndOffsets",
)
TRUNCATION_BACK = Rule(
    id="replica.truncation-back",
    sentence=(
        "A truncation cuts the log from its end backwards, unless the log is empty, or the leader has deleted all that "
        "it has."
    ),
    source="UnifiedLog.truncateTo, UnifiedLog.truncateFullyAndStartAt",
)
START_CONTINUES = Rule(
    id="replica.start-continues",
    sentence="The start of a log moves from where it was, and a new role leaves it there.",
    source="UnifiedLog.maybeIncrementLogStartOffset, Partition.makeLeader",
    needs="log_start",
)
START_RISES = Rule(
    id="replica.start-rises",
    sentence="The start of a log only rises, unless a truncation cuts the log before it.",
    source="KIP-107, UnifiedLog.maybeIncrementLogStartOffset, UnifiedLog.truncateTo",
    needs="epoch_assign",
)
DELETES_COMMITTED = Rule(
    id="replica.deletes-committed",
    sentence="What retention or a client deletes is below the high watermark.",
    source="UnifiedLog.deletableSegments, UnifiedLog.maybeIncrementLogStartOffset",
    needs="epoch_assign",
)
START_PAST_DELETED = Rule(
    id="replica.start-past-deleted",
    sentence="A log starts behind the segments that retention has deleted.",
    source="UnifiedLog.deleteSegments, UnifiedLog.maybeIncrementLogStartOffset",
)
EPOCHS_IN_LOG = Rule(
    id="replica.epochs-in-log",
    sentence="The entries of the leader-epoch cache begin at the start of the log or later.",
    source="KIP-101, LeaderEpochFileCache.truncateFromStart",
)
CLEANS_COMMITTED = Rule(
    id="replica.cleans-committed",
    sentence="Compaction leaves what is not below the high watermark alone.",
    source="LogCleanerManager.cleanableOffsets",
    needs="epoch_assign",
)
CLEANS_WHEN_DUE = Rule(
    id="replica.cleans-when-due",
    sentence="A log is cleaned when its dirty share is above the least one, or a record in it is dirty for too long.",
    source="LogCleanerManager.grabFilthiestCompactedLog, KIP-354",
)
FETCH_IN_ROLE = Rule(
    id="replica.fetch-in-role",
    sentence="A fetch is answered in the leader epoch of the replica's role, and from its log.",
    source="KIP-320, Partition.readRecords",
)
FETCH_WATERMARK = Rule(
    id="replica.fetch-watermark",
    sentence="The high watermark in an answer is not above that of the replica.",
    source="Partition.fetchRecords",
)
FETCH_COMMITTED = Rule(
    id="replica.fetch-committed",
    sentence="A consumer gets only records below the high watermark.",
    source="Partition.readRecords, FetchIsolation.HIGH_WATERMARK",
)
ACKNOWLEDGED = Rule(
    id="replica.acknowledged",
    sentence="A producer that waits for all is answered when the high watermark is past its batch.",
    source="Partition.checkEnoughReplicasReachOffset",
)
ENDS_WITH_LEAD = Rule(
    id="replica.ends-with-lead",
    sentence=(
        "A request that waits for all replicas ends when the lead is lost: a follower answers no success and no "
        "time-out."
    ),
    source="DelayedProduce.tryComplete, ReplicaManager.completeDelayedFetchOrProduceRequests",
)
LISTS_OWN = Rule(
    id="replica.lists-own",
    sentence="ListOffsets gives a consumer the log start, the high watermark, or the offset of a committed record.",
    source="Partition.fetchOffsetForTimestamp",
)
LISTS_CAUGHT_UP = Rule(
    id="replica.lists-caught-up",
    sentence="A leader gives the latest offset, or finds no record of a timestamp, only once its high watermark has"
    " reached the start of its epoch.",
    source="KIP-207, Partition.fetchOffsetForTimestamp",
)
VERDICT = Rule(
    id="replica.verdict",
    sentence="LeaderAndIsr is applied only for a newer leader epoch: an equal or older one is ignored.",
    source="ReplicaManager.becomeLeaderOrFollower",
)

FENCES_BY_EPOCH = Rule(
    id="replica.fences-by-epoch",
    sentence=(
        "A request with an older leader epoch than the replica's is refused as fenced, and one with a newer as unknown."
    ),
    source="KIP-320, Partition.checkCurrentLeaderEpoch",
)


def _same(known: Any, told: Any) -> bool:
    """Return whether a value in the log agrees with the known one; a missing value agrees with any."""
    return known is None or told is None or told == NO_OFFSET or known == told


def loaded(state: Replica | None, event: Event) -> Replica | Illegal:
    """The broker has started and opened the log."""
    start, end = event["log_start_offset"], event["log_end_offset"]
    after = Replica(
        role=NO_ROLE,
        leader_epoch=NO_EPOCH,
        log_start=start,
        log_end=end,
        high_watermark=min(max(start, event["high_watermark"]), end),  # the line tells what the checkpoint has
        newest_epoch=UNTOLD,
    )
    if state is not None and state is not FRESH:
        return Illegal(LOADED_FIRST, after)
    point = event.get("recovery_point")
    return Illegal(CLOSED_WHOLE, after) if event.get("clean") and point is not None and point < end else after


def takes_role(state: Replica | None, event: Event) -> Replica | Illegal:
    """It leads or follows from now on."""
    leads, epoch = event["ev"] == "become_leader", event["leader_epoch"]
    state = state or UNKNOWN
    if event["previous_leader_epoch"] == NO_EPOCH and state.leader_epoch not in (None, NO_EPOCH):
        return Illegal(EPOCH_CONTINUES, _in_role(state, event, leads=leads))
    after = _in_role(state, event, leads=leads)
    if state.leader_epoch is not None and epoch <= state.leader_epoch:
        return Illegal(EPOCH_RISES, after)
    if not _same(state.leader_epoch, event["previous_leader_epoch"]) and event["previous_leader_epoch"] != NO_EPOCH:
        return Illegal(EPOCH_CONTINUES, after)
    tells_all = event["log_start_offset"] != NO_OFFSET  # others' lines come from several threads
    if tells_all and _starts_in_deleted(state, event["log_start_offset"]):
        return Illegal(START_PAST_DELETED, after)
    if tells_all and state is not FRESH:
        if not _same(state.log_start, event["log_start_offset"]):
            return Illegal(START_CONTINUES, after)
        if not _same(state.log_end, event["log_end_offset"]):
            return Illegal(ROLE_KEEPS_LOG, after)
        if not _same(state.high_watermark, event["high_watermark"]):
            return Illegal(ROLE_KEEPS_LOG, after)
    if leads and tells_all and state.newest_epoch not in (None, UNTOLD, epoch):
        return Illegal(EPOCH_ASSIGNED, after)
    return after


def _in_role(state: Replica, event: Event, *, leads: bool) -> Replica:
    """Return the state in a role; a follower may drop epochs without records at its log end, and logs nothing of it."""
    kept = leads or state.newest_epoch is None or state.newest_epoch == state.batch_epoch
    return Replica(
        role=LEADER if leads else FOLLOWER,
        leader_epoch=event["leader_epoch"],
        log_start=None if event["log_start_offset"] == NO_OFFSET else event["log_start_offset"],
        deleted_to=state.deleted_to,
        log_end=event["log_end_offset"],
        high_watermark=event["high_watermark"],
        newest_epoch=state.newest_epoch if kept else UNTOLD,
        newest_start=state.newest_start if kept else None,
        batch_epoch=state.batch_epoch,
        bases=state.bases,
        epoch_start=event["log_end_offset"] if leads else None,
        role_ns=event["mono"],
    )


def appends(state: Replica | None, event: Event) -> Replica | Illegal:
    """A batch is at the end of the log."""
    if state is None:
        state = UNKNOWN
    batch_epoch, base, epoch = event["batch_epoch"], event["base_offset"], event["leader_epoch"]
    follows = event["role"] == state.role == FOLLOWER and state.leader_epoch is not None
    if batch_epoch is None and follows and epoch < state.leader_epoch:
        epoch = state.leader_epoch  # Kafka stops the fetcher of the epoch before only after it has logged the new one
    after = replace(
        state,
        role=event["role"],
        leader_epoch=epoch,
        log_end=event["last_offset"] + 1,
        batch_epoch=batch_epoch,
        bases=(*state.bases, base)[-REMEMBERED:],
    )
    if state.role is not None and (event["role"] != state.role or epoch != state.leader_epoch):
        return Illegal(APPEND_IN_ROLE, after)
    end = state.log_end
    if (end is not None and (base < end or (base > end and event["role"] == LEADER))) or event["last_offset"] < base:
        return Illegal(APPEND_AT_END, after)
    if batch_epoch is None:
        return after
    leads = event["role"] == LEADER
    goes_back = state.batch_epoch is not None and batch_epoch < state.batch_epoch
    if batch_epoch > epoch or (leads and batch_epoch < epoch) or goes_back:
        return Illegal(BATCH_EPOCH, after)
    newest = state.newest_epoch
    if newest is not None and NO_EPOCH <= newest < batch_epoch:
        return Illegal(EPOCH_BEFORE_BATCH, replace(after, newest_epoch=batch_epoch))
    return after


def assigns_epoch(state: Replica | None, event: Event) -> Replica | Illegal:
    """The leader-epoch cache has one entry more."""
    if state is None:
        state = UNKNOWN
    newest, start = state.newest_epoch, event["start_offset"]
    after = replace(state, newest_epoch=event["leader_epoch"], newest_start=start)
    if (event["leader_epoch"], start) == (newest, state.newest_start) and start == state.log_end:
        return after  # an epoch without records is not in the copy of a log that has moved to another data directory
    back = newest is not None and event["leader_epoch"] <= newest
    if back or (state.log_end is not None and start < state.log_end):
        return Illegal(EPOCH_FORWARD, after)
    return after


def moves_watermark(state: Replica | None, event: Event) -> Replica | Illegal:
    """The high watermark is another one."""
    if state is None:
        state = UNKNOWN
    new, end = event["new"], event["log_end_offset"]
    after = replace(state, role=event["role"], leader_epoch=event["leader_epoch"], high_watermark=new)
    if state.role is not None and (event["role"] != state.role or event["leader_epoch"] != state.leader_epoch):
        return Illegal(WATERMARK_IN_ROLE, after)
    if not event["cause"] and state.high_watermark is not None:  # others' lines come from several threads
        rise = _out_of_order(state, event, after)
        if isinstance(rise, Illegal):
            return rise
        after = rise
    elif not _same(state.high_watermark, event["old"]):
        return Illegal(WATERMARK_CONTINUES, after)
    if event["role"] == LEADER and new <= event["old"]:
        return Illegal(WATERMARK_RISES, after)
    if state.log_end is not None and new > state.log_end:
        return Illegal(WATERMARK_IN_LOG, after)
    if end is not None and new > end:
        return Illegal(WATERMARK_IN_LOG, after)
    return after


def _out_of_order(state: Replica, event: Event, after: Replica) -> Replica | Illegal:
    """A rise from beyond the known one skips what another thread logs late; no two rises overlap."""
    old, new, known = event["old"], event["new"], state.high_watermark
    if old >= known:
        skipped = ((known, old),) if old > known else ()
        return replace(after, skipped=state.skipped + skipped)
    for low, high in state.skipped:
        if low <= old and new <= high:
            left = ((start, end) for start, end in ((low, old), (new, high)) if start < end)
            others = (each for each in state.skipped if each != (low, high))
            return replace(after, high_watermark=known, skipped=(*others, *left))
    return Illegal(WATERMARK_CONTINUES, after)


def truncates(state: Replica | None, event: Event) -> Replica | Illegal:
    """The log loses its end, which may then lie lower than asked: at the start of the batch that is cut in two."""
    if state is None:
        state = UNKNOWN
    to, full = event["to"], event["reason"] == "full"
    end = state.log_end
    watermark = state.high_watermark
    moves = watermark is None or watermark > to or full
    between_batches = full or to == end or to in state.bases
    after = replace(
        state,
        log_end=to if between_batches else None,
        deleted_to=None,
        bases=tuple(base for base in state.bases if base < to),
        high_watermark=None if moves else watermark,
        newest_epoch=UNTOLD,
        batch_epoch=None,
    )
    if state.role == LEADER:
        return Illegal(LEADER_KEEPS_LOG, after)
    grows = end is not None and to > end and not full
    keeps_nothing = full and end is not None and to < end and not _same(state.log_start, end)
    if not _same(end, event["log_end_offset"]) or grows or keeps_nothing:
        return Illegal(TRUNCATION_BACK, after)
    return after


def moves_start(state: Replica | None, event: Event) -> Replica | Illegal:
    """The first offset of the log is another one."""
    state = state or UNKNOWN
    old, new, cuts = event["old"], event["new"], event["cause"] == "truncation"
    moved = state.newest_start if state.newest_start is None else max(state.newest_start, new)
    after = replace(state, log_start=new, newest_start=moved)  # `LeaderEpochFileCache.truncateFromStart`
    if not _same(state.log_start, old):
        return Illegal(START_CONTINUES, after)
    if new <= old and not cuts:
        return Illegal(START_RISES, after)
    if state.high_watermark is not None and new > state.high_watermark and not cuts:
        return Illegal(DELETES_COMMITTED, after)
    return after


def deletes_segment(state: Replica | None, event: Event) -> Replica | Illegal:
    """Retention is about to delete a segment."""
    state = state or UNKNOWN
    uncommitted = state.high_watermark is not None and event["end_offset"] > state.high_watermark
    after = replace(state, deleted_to=event["end_offset"])
    return Illegal(DELETES_COMMITTED, after) if uncommitted else after


def _starts_in_deleted(state: Replica, start: int) -> bool:
    """Whether the log starts before the end of a segment that it does not have any more."""
    return state.deleted_to is not None and start < state.deleted_to


def answers_epoch(state: Replica | None, event: Event) -> Replica | Illegal:
    """A leader tells where an epoch ends, and logs all epochs that its log has."""
    state = state or UNKNOWN
    epochs = event["leader_epochs"] or ()
    is_before = state.log_start is not None and any(start < state.log_start for _, start in epochs)
    return Illegal(EPOCHS_IN_LOG, state) if is_before else state


def compacts(state: Replica | None, event: Event) -> Replica | Illegal:
    """A cleaner is about to remove records up to an offset."""
    state = state or UNKNOWN
    uncommitted = state.high_watermark is not None and event["until_offset"] > state.high_watermark
    return Illegal(CLEANS_COMMITTED, state) if uncommitted else state


def is_cleaned(state: Replica | None, event: Event) -> Replica | Illegal:
    """A cleaner has chosen the log."""
    state = state or UNKNOWN
    dirty, clean = event["dirty_bytes"], event["clean_bytes"]
    is_due = dirty > 0 and (event["delay_ms"] > 0 or dirty / (clean + dirty) > event["min_dirty_ratio"])
    return state if is_due else Illegal(CLEANS_WHEN_DUE, state)


def answers_fetch(state: Replica | None, event: Event) -> Replica | Illegal:
    """Records were read for a consumer or a follower."""
    if state is None:
        return UNKNOWN
    if state.role == NO_ROLE or (state.leader_epoch is not None and event["leader_epoch"] != state.leader_epoch):
        return Illegal(FETCH_IN_ROLE, state)
    if state.log_end is not None and event["last_offset"] >= state.log_end:
        return Illegal(FETCH_IN_ROLE, state)
    if state.high_watermark is not None and event["high_watermark"] > state.high_watermark:
        return Illegal(FETCH_WATERMARK, state)
    if event["replica"] == CONSUMER and event["last_offset"] >= event["high_watermark"]:
        return Illegal(FETCH_COMMITTED, state)
    return state


def lists(state: Replica | None, event: Event) -> Replica | Illegal:
    """A consumer was told an offset."""
    state = state or UNKNOWN
    asked, offset, mark = event["timestamp"], event["offset"], state.high_watermark
    if state.role is None:
        return state
    if state.role != LEADER or event["leader_epoch"] != state.leader_epoch:
        return Illegal(LISTS_OWN, state)
    if asked in (EARLIEST, EARLIEST_LOCAL) and _starts_in_deleted(state, offset):
        return Illegal(START_PAST_DELETED, state)
    rests_on_end = asked == LATEST or (offset == NO_OFFSET and asked != LATEST_TIERED)
    if rests_on_end and mark is not None and state.epoch_start is not None and mark < state.epoch_start:
        return Illegal(LISTS_CAUGHT_UP, state)
    return Illegal(LISTS_OWN, state) if _is_elsewhere(state, event, asked, offset) else state


def _is_elsewhere(state: Replica, event: Event, asked: int, offset: int) -> bool:
    """Whether the answer is none that the log can give, as far as it is known."""
    start, mark = state.log_start, state.high_watermark
    if asked in (EARLIEST, EARLIEST_LOCAL):
        return not _same(start, offset)
    if asked == LATEST:
        return mark is not None and (offset > mark if event["read_committed"] else offset != mark)
    if offset == NO_OFFSET:
        return False
    is_outside = (start is not None and offset < start) or (mark is not None and offset >= mark)
    return is_outside or event["record_timestamp"] < asked


def acknowledges(state: Replica | None, event: Event) -> Replica | Illegal:
    """A producer is answered; one that waits for less than all may be before the high watermark moves."""
    state = state or UNKNOWN
    if event["acks"] != ACKS_ALL:
        return state
    is_late = state.role_ns is not None and event["mono"] - state.role_ns > ANSWERED_WITHIN_NS
    if state.role == FOLLOWER and is_late and event["error"] in (0, TIMED_OUT):
        return Illegal(ENDS_WITH_LEAD, state)
    if event["error"] or event["last_offset"] == NO_OFFSET:
        return state
    return state if event["high_watermark"] > event["last_offset"] else Illegal(ACKNOWLEDGED, state)


def is_told(state: Replica | None, event: Event) -> Replica | Illegal:
    """A control request about the partition was handled; what became of the role stands in the lines before it."""
    state = state or UNKNOWN
    held, epoch, verdict = state.leader_epoch, event["leader_epoch"], event["verdict"]
    if event["api"] == "StopReplica":
        return UNKNOWN if verdict == "applied" else state
    if held is None or (verdict == "applied" and not event["is_exact"]):
        return state
    right = {
        "applied": held == epoch,
        "ignored_same": held == epoch,
        "ignored_old": held > epoch,
        "leader_unavailable": held < epoch,
        "not_assigned": held < epoch,
    }
    return state if right.get(verdict, True) else Illegal(VERDICT, state)


def refuses(state: Replica | None, event: Event) -> Replica | Illegal:
    """A request was refused for its leader epoch; another role may come between that and its line."""
    state = state or UNKNOWN
    got, have, held = event["got"], event["have"], state.leader_epoch
    if event["what"] != "leader_epoch":
        return state
    settled = state.role_ns is not None and event["mono"] - state.role_ns > ANSWERED_WITHIN_NS
    wrong = {FENCED: got >= have, UNKNOWN_EPOCH: settled and got <= have}.get(event["error"], False)
    return Illegal(FENCES_BY_EPOCH, state) if wrong or not _same(held, have) else state


def partitions_of(event: Event) -> list[tuple[Key, Event]]:
    """Return what a control request says of each partition; UpdateMetadata says nothing of replicas here."""
    if event["api"] == "UpdateMetadata" or event["verdict"] != "applied":
        return []
    # where the log lacks the broker epoch of a request, "applied" may be a role without a live leader
    request = {"api": event["api"], "is_exact": event["request_broker_epoch"] is not None}
    return [((each["topic"], each["partition"]), {**each, **request}) for each in event["partitions"]]


SUBJECT = Subject(
    name="replica",
    rules=(
        LOADED_FIRST,
        CLOSED_WHOLE,
        EPOCH_RISES,
        EPOCH_CONTINUES,
        ROLE_KEEPS_LOG,
        EPOCH_ASSIGNED,
        APPEND_IN_ROLE,
        APPEND_AT_END,
        BATCH_EPOCH,
        EPOCH_BEFORE_BATCH,
        EPOCH_FORWARD,
        WATERMARK_IN_ROLE,
        WATERMARK_CONTINUES,
        WATERMARK_RISES,
        WATERMARK_IN_LOG,
        LEADER_KEEPS_LOG,
        TRUNCATION_BACK,
        START_CONTINUES,
        START_RISES,
        DELETES_COMMITTED,
        START_PAST_DELETED,
        EPOCHS_IN_LOG,
        CLEANS_COMMITTED,
        CLEANS_WHEN_DUE,
        FETCH_IN_ROLE,
        FETCH_WATERMARK,
        FETCH_COMMITTED,
        ACKNOWLEDGED,
        ENDS_WITH_LEAD,
        LISTS_OWN,
        LISTS_CAUGHT_UP,
        VERDICT,
        FENCES_BY_EPOCH,
    ),
    legal={
        "recovery": loaded,
        "become_leader": takes_role,
        "become_follower": takes_role,
        "append": appends,
        "epoch_assign": assigns_epoch,
        "hw": moves_watermark,
        "truncate": truncates,
        "log_start": moves_start,
        "segment_delete": deletes_segment,
        "cleaning_start": is_cleaned,
        "compaction": compacts,
        "ofle": answers_epoch,
        "fetch_resp": answers_fetch,
        "produce_resp": acknowledges,
        "list_offsets": lists,
        "fenced": refuses,
        "ctl_recv": is_told,
    },
    fresh=FRESH,
    parts={"ctl_recv": partitions_of},
)

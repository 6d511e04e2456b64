"""Which steps may a leader take with its ISR, as its broker's log shows them?

A leader has the ISR that came with its role, and then each ISR that it proposed and ZooKeeper accepted. In a log
without answers another ISR may have been accepted unseen; then only lines on one version of the state are compared.
"""

from msgspec import Struct
from msgspec.structs import replace

from harness.model.replica import LEADER, partitions_of
from harness.model.step import Event, Illegal, Rule, Subject

OK = "ok"
UNSEEN = "unknown"
"""As result: the session ended before ZooKeeper answered."""


State = tuple[int | None, int | None, frozenset[int]]
"""Leader epoch, version and ISR."""


class Leader(Struct, frozen=True, kw_only=True):
    """One leader and its ISR; None is unknown."""

    leads: bool | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    zk_version: int | None = None
    proposed: tuple[int, ...] | None = None
    """The ISR that waits for an answer."""
    answered: bool = False
    """Whether this log has answers to proposals."""
    replaced: State | None = None
    """The state before the present one, where another thread may have yet to log its proposal from it."""


NO_LEADER = Leader(leads=False)
UNKNOWN = Leader()

LEADER_PROPOSES = Rule(
    id="leader.proposes",
    sentence="Only the leader of a partition proposes an ISR, in its own leader epoch.",
    source="Partition.maybeExpandIsr, Partition.maybeShrinkIsr",
)
FROM_OWN = Rule(
    id="leader.proposes-from-own",
    sentence="A proposal begins from the ISR and the version of the state that the leader has.",
    source="Partition.expandIsr, Partition.shrinkIsr",
)
ONE_PROPOSAL = Rule(
    id="leader.one-proposal",
    sentence="A leader proposes no other ISR before the last proposal is answered.",
    source="KIP-497, Partition.partitionState.isInflight",
)
EXPANDS = Rule(
    id="leader.expands",
    sentence="An expansion adds followers, all of whose logs reach the high watermark and the start of the epoch.",
    source="KAFKA-7128, Partition.isFollowerInSync",
)
SHRINKS = Rule(
    id="leader.shrinks",
    sentence="A shrink removes followers, and never the leader.",
    source="Partition.getOutOfSyncReplicas",
)
ANSWERS_PROPOSAL = Rule(
    id="leader.answers-proposal",
    sentence="An answer is to the ISR that was proposed last.",
    source="KIP-497, Partition.submitAlterPartition",
)
VERSION_RISES = Rule(
    id="leader.version-rises",
    sentence="A proposal that is taken raises the version of the state, and one that is refused does not move it.",
    source="ReplicationUtils.updateLeaderAndIsr",
)
ISR_AS_TAKEN = Rule(
    id="leader.isr-as-taken",
    sentence="The ISR that a leader waits for is that of the version of the state that it has.",
    source="Partition.maybeIncrementLeaderHW",
)
ISR_SIZE = Rule(
    id="leader.isr-size",
    sentence="A batch is appended under the ISR that the leader has.",
    source="Partition.appendRecordsToLeader",
)
STABLE_RISES = Rule(
    id="leader.stable-offset-rises",
    sentence="The last stable offset of a leader only rises.",
    source="KIP-98, UnifiedLog.maybeIncrementFirstUnstableOffset",
)


def leads(state: Leader | None, event: Event) -> Leader | Illegal:
    """It becomes leader, with the ISR that the controller tells it."""
    state = state or UNKNOWN
    several_threads = event["log_start_offset"] < 0  # as in the logs of others, where no role comes with a log's start
    return Leader(
        leads=True,
        leader_epoch=event["leader_epoch"],
        isr=tuple(event["isr"]),
        zk_version=event["zk_version"],
        answered=state.answered,
        replaced=_as_is(state) if several_threads and state.leads else None,
    )


def follows(state: Leader | None, event: Event) -> Leader | Illegal:
    """It leads no more, and has no ISR."""
    return Leader(leads=False, leader_epoch=event["leader_epoch"], answered=state is not None and state.answered)


def proposes(state: Leader | None, event: Event) -> Leader | Illegal:
    """It is about to write another ISR."""
    state = state or UNKNOWN
    old, new = tuple(event["old"]), tuple(event["new"])
    if (event["leader_epoch"], event["zk_version"], frozenset(old)) == state.replaced:
        return state
    after = replace(state, isr=old, zk_version=event["zk_version"], proposed=new)
    if state.leads is False or (state.leader_epoch is not None and event["leader_epoch"] != state.leader_epoch):
        return Illegal(LEADER_PROPOSES, after)
    if not _has(state, event["zk_version"], old):
        return Illegal(FROM_OWN, after)
    if state.answered and state.proposed is not None:
        return Illegal(ONE_PROPOSAL, after)
    joining, leaving = set(new) - set(old), set(old) - set(new)
    if event["kind"] == "expand":
        bound = max(event["high_watermark"], event["epoch_start_offset"])
        ends = dict(zip(new, event["ends"], strict=False))
        behind = (0 <= ends.get(each, bound) < bound for each in joining)
        if not joining or leaving or any(behind):
            return Illegal(EXPANDS, after)
    elif joining or not leaving or event["broker"] in leaving:
        return Illegal(SHRINKS, after)
    return after


def is_answered(state: Leader | None, event: Event) -> Leader | Illegal:
    """ZooKeeper, or the controller, has taken or refused it."""
    state = state or UNKNOWN
    new, before, version = tuple(event["new"]), event["zk_version"], event["new_zk_version"]
    taken = event["result"] == OK
    known = event["leader_epoch"] == state.leader_epoch
    after = replace(state, proposed=None, answered=True)
    if taken and known:
        after = replace(after, isr=new, zk_version=version)
    if state.answered and known and state.leads and state.proposed != new:
        return Illegal(ANSWERS_PROPOSAL, after)
    if taken and version <= before:
        return Illegal(VERSION_RISES, after)
    return after


def waits_for(state: Leader | None, event: Event) -> Leader | Illegal:
    """The high watermark rises, by the ISR that the line names."""
    state = state or UNKNOWN
    if event["role"] != "leader":
        return state
    isr, version = tuple(event["isr"]), event["zk_version"]
    after = replace(state, isr=isr, zk_version=version)
    if not event["cause"] and version != state.zk_version:  # others' lines come from several threads
        after = replace(after, replaced=_as_is(state))
    return after if _has(state, version, isr) else Illegal(ISR_AS_TAKEN, after)


def appends(state: Leader | None, event: Event) -> Leader | Illegal:
    """A batch is appended while the ISR has so many members."""
    size = event["isr_size"]
    if state is None or event["role"] != "leader" or size is None or state.isr is None or not state.answered:
        return state or UNKNOWN
    return state if size == len(state.isr) else Illegal(ISR_SIZE, state)


def is_stopped(state: Leader | None, event: Event) -> Leader | Illegal:
    """StopReplica may have taken the role; LeaderAndIsr shows in the lines of the role."""
    return UNKNOWN if event["api"] == "StopReplica" else state or UNKNOWN


def moves_stable_offset(state: Leader | None, event: Event) -> Leader | Illegal:
    """The last stable offset of a replica is another one."""
    known = state or UNKNOWN
    goes_back = event["role"] == LEADER and event["new"] <= event["old"]
    return Illegal(STABLE_RISES, known) if goes_back else known


def _as_is(state: Leader) -> State | None:
    """Return what a proposal begins from."""
    return None if state.isr is None else (state.leader_epoch, state.zk_version, frozenset(state.isr))


def _has(state: Leader, version: int, isr: tuple[int, ...]) -> bool:
    """Return whether a leader can have this ISR with this version."""
    if state.isr is None or state.zk_version is None:
        return True
    if version != state.zk_version:
        return version > state.zk_version and not state.answered
    return set(isr) == set(state.isr)


SUBJECT = Subject(
    name="leader",
    rules=(
        LEADER_PROPOSES,
        FROM_OWN,
        ONE_PROPOSAL,
        EXPANDS,
        SHRINKS,
        ANSWERS_PROPOSAL,
        VERSION_RISES,
        ISR_AS_TAKEN,
        ISR_SIZE,
        STABLE_RISES,
    ),
    legal={
        "become_leader": leads,
        "become_follower": follows,
        "isr_propose": proposes,
        "isr_result": is_answered,
        "hw": waits_for,
        "append": appends,
        "lso": moves_stable_offset,
        "ctl_recv": is_stopped,
    },
    fresh=NO_LEADER,
    parts={"ctl_recv": partitions_of},
)

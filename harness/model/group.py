"""Which steps may a consumer group take under one coordinator: its states, generations, members and assignments?

A coordinator's time with a group is one leader epoch of the partition of `__consumer_offsets` that holds the group.
"""

from msgspec import Struct
from msgspec.structs import replace

from harness.model.step import Event, Illegal, Key, Rule, Subject

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = "Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"
STEPS = {
    PREPARING: frozenset({STABLE, COMPLETING, EMPTY}),
    COMPLETING: frozenset({PREPARING}),
    STABLE: frozenset({COMPLETING}),
    EMPTY: frozenset({PREPARING}),
    DEAD: frozenset({STABLE, PREPARING, COMPLETING, EMPTY, DEAD}),
}
"""From which states each is reached: `GroupMetadata.validPreviousStates`."""
LOADED = ""
"""As state before, of a group that was read from the log."""
EXPIRED = "session expired"
"""As reason of a removal."""
EARLY_NS = 50_000_000
"""By so much a timer may be early on another clock."""


class Group(Struct, frozen=True, kw_only=True):
    """A group as its coordinator has it; None is unknown."""

    state: str | None = None
    generation: int | None = None
    members: frozenset[str] | None = None
    stored: int | None = None
    """The generation of the assignment that was stored last."""
    heard: dict[str, int] = {}
    """By member, until when its session lasts on the broker's monotonic clock, after its last heartbeat in this state:
    a member that joins again may have another time-out."""


UNKNOWN = Group()
MADE = Group(state=EMPTY, generation=0, members=frozenset(), stored=-1)
"""A group that has just been made (`GroupMetadataManager.addGroup`)."""

STATE_VALID = Rule(
    id="group.state-valid",
    sentence="A group enters a state only from one of its valid previous states.",
    source="GroupState.validPreviousStates",
)
STATE_CONTINUES = Rule(
    id="group.state-continues",
    sentence="A group changes from the state in which it is.",
    source="GroupMetadata.transitionTo",
)
GENERATION_STEPS = Rule(
    id="group.generation-steps",
    sentence="Only the end of a join phase changes the generation, by one.",
    source="GroupMetadata.initNextGeneration",
)
MEMBERS_FIT = Rule(
    id="group.members-fit",
    sentence="A group that is Empty has no members, and one that is CompletingRebalance or Stable has some.",
    source="GroupMetadata.initNextGeneration",
)
MEMBERS_TOLD = Rule(
    id="group.members-told",
    sentence="A member joins that is not in the group, and is removed or replaced while it is.",
    source="GroupMetadata.add, GroupMetadata.remove, GroupMetadata.replaceStaticMember",
    needs="group_state",
)
ASSIGNED_ONCE = Rule(
    id="group.assigned-once",
    sentence="The assignment of a generation is stored once, while the group waits for it, for its members alone.",
    source="GroupCoordinator.doSyncGroup",
)
STABLE_ASSIGNED = Rule(
    id="group.stable-assigned",
    sentence="A group becomes Stable with the stored assignment of its generation.",
    source="GroupCoordinator.doSyncGroup",
)

SESSION_LASTS = Rule(
    id="group.session-lasts",
    sentence="A member that was heard of is removed for its silence only after its session time-out.",
    source="GroupCoordinator.completeAndScheduleNextHeartbeatExpiration",
)


def hears(state: Group | None, event: Event) -> Group | None:
    """A heartbeat of a member is accepted."""
    if state is None:
        return None
    until_ns = event["mono"] + event["session_timeout_ms"] * 1_000_000
    return replace(state, heard={**state.heard, event["member"]: until_ns})


def changes_state(state: Group | None, event: Event) -> Group | Illegal:
    """The group is in another state, or was read from the log."""
    known = state or UNKNOWN
    before, now, generation = event["from_state"], event["to_state"], event["generation"]
    if known.state == DEAD and before == EMPTY:
        known = replace(MADE, members=known.members)  # a member or a commit makes the group anew, which is not logged
    members = frozenset(each["member"] for each in event["members"])
    after = replace(known, state=now, generation=generation, members=members, heard={})
    if before == LOADED:
        return replace(after, stored=generation)
    if before not in STEPS.get(now, ()):
        return Illegal(STATE_VALID, after)
    if known.state is not None and known.state != before:
        return Illegal(STATE_CONTINUES, after)
    joined = before == PREPARING and now in (COMPLETING, EMPTY)
    if known.generation is not None and generation != known.generation + joined and now != DEAD:
        return Illegal(GENERATION_STEPS, after)
    if (now == EMPTY and members) or (now in (COMPLETING, STABLE) and not members):
        return Illegal(MEMBERS_FIT, after)
    if now == STABLE and known.state is not None and known.stored is not None and known.stored != generation:
        return Illegal(STABLE_ASSIGNED, after)
    return after


def changes_members(state: Group | None, event: Event) -> Group | Illegal:
    """A member joined, is removed, or has another id."""
    known = state or UNKNOWN
    if known.members is None:
        return known
    member, change = event["member"], event["change"]
    gone = {"joined": None, "removed": member, "replaced": event["old_member"]}.get(change)
    left = known.members - {gone}
    after = replace(known, members=left if change == "removed" else left | {member})
    wrong = member in known.members if change == "joined" else gone not in known.members
    if wrong:
        return Illegal(MEMBERS_TOLD, after)
    expired = change == "removed" and event.get("reason") == EXPIRED
    is_early = expired and event["mono"] + EARLY_NS < known.heard.get(member, 0)
    return Illegal(SESSION_LASTS, after) if is_early else after


def is_assigned(state: Group | None, event: Event) -> Group | Illegal:
    """The assignment of a generation is stored or loaded."""
    known = state or UNKNOWN
    generation, reason = event["generation"], event["reason"]
    after = replace(known, stored=generation)
    if reason != "stored" or known.state is None:
        return after
    told = frozenset(each["member"] for each in event["assignments"])
    right = known.state == COMPLETING and known.generation == generation and known.stored != generation
    return after if right and told <= (known.members or frozenset()) else Illegal(ASSIGNED_ONCE, after)


def _of_group(event: Event) -> Key:
    return event["group"], event["coordinator_epoch"]


SUBJECT = Subject(
    name="group",
    rules=(
        STATE_VALID,
        STATE_CONTINUES,
        GENERATION_STEPS,
        MEMBERS_FIT,
        MEMBERS_TOLD,
        ASSIGNED_ONCE,
        STABLE_ASSIGNED,
        SESSION_LASTS,
    ),
    legal={
        "group_state": changes_state,
        "group_member": changes_members,
        "group_assignment": is_assigned,
        "group_heartbeat": hears,
    },
    fresh=MADE,
    key=_of_group,
)

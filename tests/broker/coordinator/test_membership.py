"""One group, step by step, in the pure state machine: answers, timers, and stored records."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from harness.broker.coordinator.effects import (
    JOIN_TIMER,
    SYNC_TIMER,
    CancelTimer,
    Effect,
    JoinAnswer,
    SendAnswer,
    SetTimer,
    Store,
    SyncAnswer,
    Timer,
    TimerKind,
)
from harness.broker.coordinator.group import Group, GroupState, loaded_group
from harness.broker.coordinator.group_records import GroupMetadata, StoredMember
from harness.broker.coordinator.membership import NEW_MEMBER_JOIN_MS, Membership
from harness.broker.coordinator.requests import GroupLimits, Join, Sync
from harness.broker.wire.error_codes import ErrorCode
from harness.events import GroupAssignment, GroupMemberChange, GroupStateChange

SESSION_MS, REBALANCE_MS = 10, 60
LIMITS = GroupLimits(initial_rebalance_delay_ms=3, max_size=3)


@dataclass
class World:
    """A group with what it has asked for; members are known by names that are their ids."""

    membership: Membership = field(default_factory=lambda: Membership(Group(name="g", state_since_ms=None), LIMITS))
    answers: list[str] = field(default_factory=list)
    timers: dict[Timer, int] = field(default_factory=dict)
    stores: list[Store] = field(default_factory=list)
    log_lines: list[str] = field(default_factory=list)
    """Lines of the state-change log, in short."""
    now_ms: int = 0
    _tickets: list[str] = field(default_factory=list)

    @property
    def group(self) -> Group:
        return self.membership.group

    def ticket(self, member: str) -> int:
        self._tickets.append(member)
        return len(self._tickets) - 1

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendAnswer(ticket=ticket, answer=JoinAnswer() as answer):
                    members = " ".join(each.member_id for each in answer.members)
                    skip = " and need not assign" if answer.skip_assignment else ""
                    what = f"{answer.generation} by {answer.protocol} led by {answer.leader} [{members}]{skip}"
                    self.answers.append(f"{self._tickets[ticket]}: {what if not answer.error else answer.error.name}")
                case SendAnswer(ticket=ticket, answer=SyncAnswer() as answer):
                    what = answer.assignment.decode() if not answer.error else answer.error.name
                    self.answers.append(f"{self._tickets[ticket]}: {what}")
                case SetTimer(timer=timer, after_ms=after_ms):
                    self.timers[timer] = after_ms
                case CancelTimer(timer=timer):
                    self.timers.pop(timer, None)
                case Store():
                    self.stores.append(effect)
                case GroupStateChange(from_state=before, to_state=after, generation=generation, reason=reason):
                    members = " ".join(each.member for each in effect.members)
                    self.log_lines.append(f"{before} to {after} in {generation} [{members}]: {reason}")
                case GroupMemberChange(member=member, instance=instance, change=change, reason=reason):
                    what = f"{change} for {effect.old_member}" if effect.old_member else f"{change} {reason}".rstrip()
                    self.log_lines.append(f"{instance or 'member'} {member}: {what}")
                case GroupAssignment(generation=generation, reason=reason):
                    members = " ".join(each.member for each in effect.assignments)
                    self.log_lines.append(f"assigned in {generation} to [{members}]: {reason}")

    def fire(self, timer: Timer) -> None:
        assert timer in self.timers, f"{timer} does not run"
        del self.timers[timer]
        self.take(self.membership.fired(timer, self.now_ms))


Step = Callable[[World], None]


def joins(
    member: str, *, new: str = "", instance: str | None = None, likes: str = "range", skips: bool = False, **more: int
) -> Step:
    """A member joins; `new` is the id that it gets."""

    def step(world: World) -> None:
        join = Join(
            member_id=member,
            instance_id=instance,
            client_id="c",
            client_host="/h",
            rebalance_timeout_ms=more.get("rebalance_ms", REBALANCE_MS),
            session_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=tuple((name, b"") for name in likes.split()),
            may_skip_assignment=skips,
        )
        world.take(world.membership.join(join, world.ticket(f"join {new or member}"), new, world.now_ms))

    return step


def asks_for_an_id(new: str) -> Step:
    def step(world: World) -> None:
        join = Join(
            member_id="",
            client_id="c",
            client_host="/h",
            rebalance_timeout_ms=REBALANCE_MS,
            session_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=(("range", b""),),
            must_know_its_id=True,
        )
        world.take(world.membership.join(join, world.ticket(f"id {new}"), new, world.now_ms))

    return step


def syncs(member: str, generation: int, **assignments: str) -> Step:
    def step(world: World) -> None:
        assigned = {name: text.encode() for name, text in assignments.items()}
        sync = Sync(generation=generation, member_id=member, assignments=assigned)
        world.take(world.membership.sync(sync, world.ticket(f"sync {member}"), world.now_ms))

    return step


def stored(error: ErrorCode = ErrorCode.NONE) -> Step:
    """The oldest record that is on its way has arrived, or not."""

    def step(world: World) -> None:
        world.take(world.membership.stored(world.stores.pop(0).purpose, error, world.now_ms))

    return step


def beats(member: str, generation: int) -> Step:
    def step(world: World) -> None:
        error, effects = world.membership.heartbeat(generation, member, None)
        world.answers.append(f"heartbeat {member}: {error.name}")
        world.take(effects)

    return step


def commits(member: str, generation: int) -> Step:
    def step(world: World) -> None:
        error, effects = world.membership.commits(generation, member, None)
        world.answers.append(f"commit {member}: {error.name}")
        world.take(effects)

    return step


def leaves(member: str, instance: str | None = None) -> Step:
    def step(world: World) -> None:
        error, effects = world.membership.leave(member, instance, world.now_ms)
        world.answers.append(f"leave {member or instance}: {error.name}")
        world.take(effects)

    return step


def unheard(member: str) -> Step:
    return lambda world: world.fire(Timer(TimerKind.SESSION, member))


def ends(error: ErrorCode) -> Step:
    return lambda world: world.take(world.membership.end(error, world.now_ms))


def time_is_over(timer: Timer) -> Step:
    return lambda world: world.fire(timer)


def no_time_to_sync(world: World) -> None:
    """No member's time to ask for an assignment runs."""
    assert SYNC_TIMER not in world.timers


JOINED, SYNCED = time_is_over(JOIN_TIMER), time_is_over(SYNC_TIMER)
ONE = (joins("", new="a"), JOINED, syncs("a", 1, a="all"), stored())
TWO = (*ONE, joins("", new="b"), joins("a"), syncs("b", 2), syncs("a", 2, a="one", b="two"), stored())
STATIC = (joins("", new="s", instance="i"), JOINED, syncs("s", 1, s="all"), stored())
PREPARING, COMPLETING, STABLE, EMPTY, DEAD = (
    GroupState.PREPARING,
    GroupState.COMPLETING,
    GroupState.STABLE,
    GroupState.EMPTY,
    GroupState.DEAD,
)


def case(
    sentence: str, before: tuple[Step, ...], steps: tuple[Step, ...], lines: list[str], state: GroupState
) -> object:
    return pytest.param(before, steps, lines, state, id=sentence)


@pytest.mark.parametrize(
    ("before", "steps", "lines", "state"),
    [
        case(
            "members that come during the initial delay share one generation",
            (),
            (joins("", new="a"), joins("", new="b"), JOINED, JOINED),
            ["join a: 1 by range led by a [a b]", "join b: 1 by range led by a []"],
            COMPLETING,
        ),
        case("the first member waits for the initial delay", (), (joins("", new="a"),), [], PREPARING),
        case(
            "an id is given out, and the group waits for its owner",
            ONE,
            (joins("a"), asks_for_an_id("b"), leaves("b")),
            ["join a: 2 by range led by a [a]", "id b: MEMBER_ID_REQUIRED", "leave b: NONE"],
            COMPLETING,
        ),
        case(
            "a rebalance waits for an id that was given out until its session ends",
            ONE,
            (joins("", new="b"), asks_for_an_id("c"), joins("a"), unheard("c")),
            ["id c: MEMBER_ID_REQUIRED", "join a: 2 by range led by a [a b]", "join b: 2 by range led by a []"],
            COMPLETING,
        ),
        case(
            "a client with an assigned id is let in",
            ONE,
            (asks_for_an_id("b"), joins("b"), joins("a")),
            ["id b: MEMBER_ID_REQUIRED", "join a: 2 by range led by a [a b]", "join b: 2 by range led by a []"],
            COMPLETING,
        ),
        case(
            "a full group takes no member in",
            (*TWO, joins("", new="c"), joins("b"), joins("a"), syncs("a", 3), stored()),
            (joins("", new="d"),),
            ["join d: GROUP_MAX_SIZE_REACHED"],
            STABLE,
        ),
        case(
            "in a rebalance of a full group the last to come is out",
            (*TWO, joins("", new="c"), joins("", new="d")),
            (joins("a"), joins("b")),
            [
                "join b: GROUP_MAX_SIZE_REACHED",
                "join a: 3 by range led by a [a c d]",
                "join c: 3 by range led by a []",
                "join d: 3 by range led by a []",
            ],
            COMPLETING,
        ),
        case(
            "a member that does not rejoin in time is out, and another one leads",
            TWO,
            (joins("", new="c"), joins("b"), JOINED),
            ["join b: 3 by range led by b [b c]", "join c: 3 by range led by b []"],
            COMPLETING,
        ),
        case(
            "a static member has until its session ends, but does not lead",
            STATIC,
            (joins("", new="b"), JOINED),
            ["join b: 2 by range led by b [s b]"],
            COMPLETING,
        ),
        case(
            "a member that leaves without any name is not the one whose instance has an empty name",
            (joins("", new="s", instance=""), JOINED),
            (leaves(""),),
            ["leave None: UNKNOWN_MEMBER_ID"],
            COMPLETING,
        ),
        case(
            "a rebalance without joins waits on for static members",
            (*STATIC, joins("", new="b")),
            (leaves("b"), JOINED),
            ["leave b: NONE", "join b: UNKNOWN_MEMBER_ID"],
            PREPARING,
        ),
        case(
            "and is over when they are gone",
            (*STATIC, joins("", new="b")),
            (leaves("b"), JOINED, unheard("s")),
            ["leave b: NONE", "join b: UNKNOWN_MEMBER_ID"],
            EMPTY,
        ),
        case(
            "a member that has waited too long for its first generation is out",
            ONE,
            (joins("", new="b"), unheard("b"), joins("a")),
            ["join b: UNKNOWN_MEMBER_ID", "join a: 2 by range led by a [a]"],
            COMPLETING,
        ),
        case(
            "a member that waits to join again is not held to its session",
            TWO,
            (joins("a"), unheard("a"), joins("b")),
            ["join a: 3 by range led by a [a b]", "join b: 3 by range led by a []"],
            COMPLETING,
        ),
        case(
            "a member that waits for its assignment is not held to its session",
            (*ONE, joins("", new="b"), joins("a")),
            (syncs("b", 2), unheard("b"), syncs("a", 2, b="two"), stored()),
            ["sync a: ", "sync b: two"],
            STABLE,
        ),
        case(
            "a leader that asks once more before it assigns is told the same",
            (*ONE, joins("", new="b")),
            (joins("a"), joins("a")),
            [
                "join a: 2 by range led by a [a b]",
                "join b: 2 by range led by a []",
                "join a: 2 by range led by a [a b]",
            ],
            COMPLETING,
        ),
        case(
            "the older of two requests of one member is told to join again",
            ONE,
            (joins("", new="b"), asks_for_an_id("c"), joins("b"), joins("a"), leaves("c")),
            [
                "id c: MEMBER_ID_REQUIRED",
                "join b: REBALANCE_IN_PROGRESS",
                "leave c: NONE",
                "join a: 2 by range led by a [a b]",
                "join b: 2 by range led by a []",
            ],
            COMPLETING,
        ),
        case(
            "the leader that goes leaves the lead to the oldest member",
            (*TWO, joins("", new="c"), joins("a"), joins("b")),
            (leaves("a"), joins("c"), joins("b")),
            ["leave a: NONE", "join b: 4 by range led by b [b c]", "join c: 4 by range led by b []"],
            COMPLETING,
        ),
        case(
            "members that wait for an assignment when one leaves join again",
            (*ONE, joins("", new="b"), joins("a")),
            (syncs("b", 2), leaves("a"), joins("b")),
            ["leave a: NONE", "sync b: REBALANCE_IN_PROGRESS", "join b: 3 by range led by b [b]"],
            COMPLETING,
        ),
        case(
            "a member that is removed while it waits for its assignment is told so",
            (*ONE, joins("", new="b"), joins("a")),
            (syncs("b", 2), leaves("b")),
            ["leave b: NONE", "sync b: UNKNOWN_MEMBER_ID"],
            PREPARING,
        ),
        case(
            "members that were given none have an empty assignment",
            (*ONE, joins("", new="b"), joins("a")),
            (syncs("b", 2), syncs("a", 2, a="one"), stored()),
            ["sync a: one", "sync b: "],
            STABLE,
        ),
        case(
            "an assignment that cannot be stored is dropped, and all join again",
            (*ONE, joins("", new="b"), joins("a"), syncs("b", 2)),
            (syncs("a", 2, a="one", b="two"), stored(ErrorCode.NOT_COORDINATOR)),
            ["sync a: NOT_COORDINATOR", "sync b: NOT_COORDINATOR"],
            PREPARING,
        ),
        case(
            "an assignment that is stored after the group has moved on is dropped",
            (*ONE, joins("", new="b"), joins("a"), syncs("b", 2), syncs("a", 2, a="one", b="two")),
            (joins("b", likes="range rr"), stored()),
            ["sync a: REBALANCE_IN_PROGRESS", "sync b: REBALANCE_IN_PROGRESS"],
            PREPARING,
        ),
        case(
            "a member that never asks for its assignment is out",
            TWO,
            (joins("a"), joins("b"), syncs("a", 3, a="one"), stored(), SYNCED, beats("b", 3), joins("a")),
            [
                "join a: 3 by range led by a [a b]",
                "join b: 3 by range led by a []",
                "sync a: one",
                "heartbeat b: UNKNOWN_MEMBER_ID",
                "join a: 4 by range led by a [a]",
            ],
            COMPLETING,
        ),
        case(
            "when all have asked none is out",
            TWO,
            (no_time_to_sync, beats("a", 2), beats("b", 2)),
            ["heartbeat a: NONE", "heartbeat b: NONE"],
            STABLE,
        ),
        case(
            "an instance whose new id cannot be stored keeps the old one",
            STATIC,
            (joins("", new="t", instance="i"), stored(ErrorCode.NOT_COORDINATOR), beats("s", 1), beats("t", 1)),
            ["join t: NOT_COORDINATOR", "heartbeat s: NONE", "heartbeat t: UNKNOWN_MEMBER_ID"],
            STABLE,
        ),
        case(
            "a rebalance that begins while an instance's new id is being stored answers it",
            STATIC,
            (joins("", new="t", instance="i"), joins("", new="b"), stored(), joins("t", instance="i")),
            [
                "join t: 2 by range led by t [t b]",
                "join b: 2 by range led by t []",
                "join t: 2 by range led by t [t b]",
            ],
            COMPLETING,
        ),
        case(
            "an instance that comes back with a new id is waited for like the old one",
            (*STATIC, joins("", new="t", instance="j"), joins("s", instance="i"), syncs("s", 2), stored()),
            (joins("", new="u", instance="j"), stored(), syncs("u", 2), no_time_to_sync),
            ["join u: 2 by range led by s []", "sync u: "],
            STABLE,
        ),
        case(
            "an instance that leads, and knows that it need not assign, is told all members",
            STATIC,
            (joins("", new="t", instance="i", skips=True), stored()),
            ["join t: 1 by range led by t [t] and need not assign"],
            STABLE,
        ),
        case(
            "an instance that came again fences the request that waited",
            (*STATIC, joins("", new="b")),
            (joins("s", instance="i"), joins("", new="t", instance="i")),
            ["join s: 2 by range led by s [s b]", "join b: 2 by range led by s []"],
            PREPARING,
        ),
        case(
            "an administrator removes an instance by its name alone",
            STATIC,
            (leaves("", "i"), leaves("", "i"), leaves("", None)),
            ["leave i: NONE", "leave i: UNKNOWN_MEMBER_ID", "leave None: UNKNOWN_MEMBER_ID"],
            EMPTY,
        ),
        case(
            "another broker's group answers members that wait to join",
            (*ONE, joins("", new="b")),
            (ends(ErrorCode.NOT_COORDINATOR),),
            ["join b: NOT_COORDINATOR"],
            DEAD,
        ),
        case(
            "another broker's group answers members that wait for an assignment, and a late record changes nothing",
            (*ONE, joins("", new="b"), joins("a"), syncs("a", 2, a="one")),
            (ends(ErrorCode.NOT_COORDINATOR), stored(), beats("a", 2), commits("a", 2), joins("a")),
            [
                "sync a: NOT_COORDINATOR",
                "heartbeat a: COORDINATOR_NOT_AVAILABLE",
                "commit a: COORDINATOR_NOT_AVAILABLE",
                "join a: COORDINATOR_NOT_AVAILABLE",
            ],
            DEAD,
        ),
        case(
            "any client commits to a group without members, and only members to one with some",
            (),
            (commits("", -1), joins("", new="a"), commits("", -1), JOINED, commits("a", 1), commits("a", 0)),
            [
                "commit : NONE",
                "commit : UNKNOWN_MEMBER_ID",
                "join a: 1 by range led by a [a]",
                "commit a: REBALANCE_IN_PROGRESS",
                "commit a: ILLEGAL_GENERATION",
            ],
            COMPLETING,
        ),
        case(
            "the protocol with the most votes is chosen, of those that all have",
            (),
            (joins("", new="a", likes="x y z"), joins("", new="b", likes="z y"), JOINED, JOINED),
            ["join a: 1 by y led by a [a b]", "join b: 1 by y led by a []"],
            COMPLETING,
        ),
    ],
)
def test_a_group(before: tuple[Step, ...], steps: tuple[Step, ...], lines: list[str], state: GroupState) -> None:
    world = World()
    for step in before:
        step(world)
    world.answers.clear()
    for step in steps:
        step(world)
    assert (world.answers, world.group.state) == (lines, state)


FULL = (*TWO, joins("", new="c"), joins("b"), joins("a"), syncs("a", 3), stored())
SYNCED_ONCE = (*TWO, joins("a"), joins("b"), syncs("a", 3, a="one"), stored())
ASSIGNING = (*ONE, joins("", new="b"), joins("a"), syncs("b", 2), syncs("a", 2, a="one", b="two"))


@pytest.mark.parametrize(
    ("before", "steps", "changes"),
    [
        pytest.param(
            (),
            ONE,
            [
                "member a: joined",
                "Empty to PreparingRebalance in 0 [a]: a member joined",
                "PreparingRebalance to CompletingRebalance in 1 [a]: the members have joined",
                "assigned in 1 to [a]: stored",
                "CompletingRebalance to Stable in 1 [a]: the assignment is stored",
            ],
            id="a generation, from its first member to its assignment",
        ),
        pytest.param(ONE, (beats("a", 1), commits("a", 1), beats("a", 0)), [], id="nothing for heartbeats and commits"),
        pytest.param(ONE, (asks_for_an_id("b"), unheard("b")), [], id="nothing of an unused id"),
        pytest.param(
            ONE,
            (joins("a"),),
            [
                "Stable to PreparingRebalance in 1 [a]: a member joined again",
                "PreparingRebalance to CompletingRebalance in 2 [a]: the members have joined",
            ],
            id="a leader that joins again",
        ),
        pytest.param(
            ONE,
            (leaves("a"),),
            [
                "member a: removed left",
                "Stable to PreparingRebalance in 1 []: a member is gone",
                "PreparingRebalance to Empty in 2 []: no member is left",
            ],
            id="the last member leaves",
        ),
        pytest.param(
            TWO,
            (unheard("b"),),
            ["member b: removed session expired", "Stable to PreparingRebalance in 2 [a]: a member is gone"],
            id="a member is not heard of",
        ),
        pytest.param(
            TWO,
            (joins("a"), JOINED),
            [
                "Stable to PreparingRebalance in 2 [a b]: a member joined again",
                "member b: removed rebalance time-out",
                "PreparingRebalance to CompletingRebalance in 3 [a]: the members have joined",
            ],
            id="a member does not join again in time",
        ),
        pytest.param(
            SYNCED_ONCE,
            (SYNCED,),
            [
                "member b: removed sync time-out",
                "Stable to PreparingRebalance in 3 [a]: members have not asked for their assignment",
            ],
            id="a member never asks for its assignment",
        ),
        pytest.param(
            (*FULL, leaves("c"), joins("", new="d"), joins("", new="e")),
            (joins("a"), joins("b")),
            [
                "member b: removed group full",
                "PreparingRebalance to CompletingRebalance in 4 [a d e]: the members have joined",
            ],
            id="a member has no room any more",
        ),
        pytest.param(
            ASSIGNING,
            (stored(ErrorCode.NOT_COORDINATOR),),
            ["CompletingRebalance to PreparingRebalance in 2 [a b]: the assignment could not be stored"],
            id="an assignment that is not stored is not logged",
        ),
        pytest.param(
            STATIC,
            (joins("", new="t", instance="i"), stored()),
            ["i t: replaced for s", "assigned in 1 to [t]: replaced"],
            id="an instance comes back under a new id",
        ),
        pytest.param(
            STATIC,
            (joins("", new="t", instance="i"), stored(ErrorCode.NOT_COORDINATOR)),
            ["i t: replaced for s", "i s: replaced for t"],
            id="an instance whose new id cannot be stored",
        ),
        pytest.param(
            STATIC,
            (joins("", new="t", instance="i", likes="rr range"),),
            [
                "i t: replaced for s",
                "Stable to PreparingRebalance in 1 [t]: an instance came back",
                "PreparingRebalance to CompletingRebalance in 2 [t]: the members have joined",
            ],
            id="an instance comes back with another protocol",
        ),
        pytest.param(
            ONE,
            (ends(ErrorCode.NOT_COORDINATOR),),
            ["Stable to Dead in 1 [a]: the coordinator moved"],
            id="a group goes to another coordinator",
        ),
        pytest.param(
            (*ONE, leaves("a")),
            (ends(ErrorCode.UNKNOWN_MEMBER_ID),),
            ["Empty to Dead in 2 []: nothing is left of it"],
            id="a group ends",
        ),
    ],
)
def test_what_is_told_of_a_group(before: tuple[Step, ...], steps: tuple[Step, ...], changes: list[str]) -> None:
    world = played(*before)
    world.log_lines.clear()
    for step in steps:
        step(world)
    assert world.log_lines == changes


def played(*steps: Step) -> World:
    world = World()
    for step in steps:
        step(world)
    return world


def test_the_initial_delay_grows_with_new_members_up_to_the_rebalance_time_out() -> None:
    world = played(joins("", new="a", rebalance_ms=7))
    delays = [world.timers[JOIN_TIMER]]
    for name in ("b", "c"):
        joins("", new=name, rebalance_ms=7)(world)
        world.fire(JOIN_TIMER)
        delays.append(world.timers[JOIN_TIMER])
    world.fire(JOIN_TIMER)
    assert delays == [3, 3, 1]
    assert (world.group.state, world.group.generation) == (COMPLETING, 1)


@pytest.mark.parametrize(
    ("steps", "timer", "after_ms"),
    [
        pytest.param((joins("", new="a"),), Timer(TimerKind.SESSION, "a"), NEW_MEMBER_JOIN_MS, id="a new member"),
        pytest.param((asks_for_an_id("a"),), Timer(TimerKind.SESSION, "a"), SESSION_MS, id="an id that was given out"),
        pytest.param((*ONE, beats("a", 1)), Timer(TimerKind.SESSION, "a"), SESSION_MS, id="a member that is heard of"),
        pytest.param((*ONE, commits("a", 1)), Timer(TimerKind.SESSION, "a"), SESSION_MS, id="a member that commits"),
        pytest.param((*ONE, joins("", new="b")), JOIN_TIMER, REBALANCE_MS, id="members that are to join again"),
        pytest.param((joins("", new="a"), JOINED), SYNC_TIMER, REBALANCE_MS, id="members that are to sync"),
        pytest.param((*ONE, leaves("a")), Timer(TimerKind.SESSION, "a"), None, id="but no member that has left"),
        pytest.param((*ONE, leaves("a")), JOIN_TIMER, None, id="and none in an empty group"),
    ],
)
def test_how_long_a_member_is_awaited(steps: tuple[Step, ...], timer: Timer, after_ms: int | None) -> None:
    world = played(*steps[:-1])
    world.timers.pop(timer, None)
    steps[-1](world)
    assert world.timers.get(timer) == after_ms


def test_each_generation_is_stored_with_what_was_assigned_and_an_empty_one_too() -> None:
    world = played(*ONE[:-1])
    assert [(each.record.generation, [m.assignment for m in each.record.members]) for each in world.stores] == [
        (1, [b"all"])
    ]
    stored()(world)
    leaves("a")(world)
    assert [(each.record.generation, each.record.members) for each in world.stores] == [(2, ())]


def record(*names: str) -> GroupMetadata:
    return GroupMetadata(
        protocol_type="consumer",
        generation=7,
        protocol="range",
        leader=names[0] if names else None,
        state_since_ms=5,
        members=tuple(
            StoredMember(
                member_id=name,
                instance_id=f"i-{name}",
                client_id="c",
                client_host="/h",
                rebalance_timeout_ms=REBALANCE_MS,
                session_timeout_ms=SESSION_MS,
                subscription=b"",
                assignment=name.encode(),
            )
            for name in names
        ),
    )


@pytest.mark.parametrize(
    ("names", "state", "change"),
    [
        pytest.param("", EMPTY, "to Empty in 7 []: loaded", id="a group without members is empty"),
        pytest.param("ab", STABLE, "to Stable in 7 [a b]: loaded", id="one with members goes on where it was"),
        pytest.param(
            "abcd",
            PREPARING,
            "Stable to PreparingRebalance in 7 [a b c d]: too many members",
            id="one with too many members has them join again",
        ),
    ],
)
def test_a_group_that_is_loaded(names: str, state: GroupState, change: str) -> None:
    world = World(Membership(loaded_group("g", record(*names)), LIMITS))
    world.take(world.membership.loaded(0))
    assert (world.group.state, world.group.generation) == (state, 7)
    assert world.log_lines[0] == f"assigned in 7 to [{' '.join(names)}]: loaded"
    assert world.log_lines[-1].strip() == change
    sessions = {timer.member_id: ms for timer, ms in world.timers.items() if timer.kind is TimerKind.SESSION}
    assert sessions == dict.fromkeys(names, SESSION_MS)


def test_a_loaded_member_has_its_assignment_and_its_group_its_record() -> None:
    loaded = loaded_group("g", record("a", "b"))
    assert loaded.record({name: member.assignment for name, member in loaded.members.items()}) == record("a", "b")
    world = World(Membership(loaded, LIMITS))
    syncs("b", 7)(world)
    assert world.answers == ["sync b: b"]


def test_five_hundred_members_join_leave_and_are_assigned_to() -> None:
    limits = GroupLimits(initial_rebalance_delay_ms=3)
    world = World(Membership(Group(name="g", state_since_ms=None), limits))
    names = [f"m{number:03}" for number in range(500)]
    for name in names:
        joins("", new=name)(world)
    for _ in range(REBALANCE_MS):
        if world.group.state is PREPARING:
            world.fire(JOIN_TIMER)
    for name in names[1:]:
        syncs(name, 1)(world)
    syncs(names[0], 1, **{name: name for name in names})(world)
    stored()(world)
    assert sorted(world.answers[500:]) == [f"sync {name}: {name}" for name in names]
    for name in names[:250]:
        leaves(name)(world)
    for name in names[250:]:
        joins(name)(world)
    assert (world.group.state, world.group.generation, len(world.group.members)) == (COMPLETING, 2, 250)
    assert world.group.leader == names[250]

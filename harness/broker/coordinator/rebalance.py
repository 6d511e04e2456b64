"""The way of a group from one generation to the next. Pure: consequences are collected as effects.

A rebalance is prepared (members must rejoin), completed when all have or their time is over, and done when the leader's
assignment is stored (`GroupCoordinator.prepareRebalance` and `onCompleteJoin` in Kafka).
"""

from dataclasses import dataclass, field

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
from harness.broker.coordinator.group import REBALANCES_FROM, Group, GroupState, InitialDelay, Member
from harness.broker.rules import RIGHT, ProtocolRules
from harness.broker.wire.error_codes import ErrorCode


@dataclass(slots=True)
class Rebalance:
    """Moves a group between its states."""

    group: Group
    initial_delay_ms: int
    rules: ProtocolRules = RIGHT
    now_ms: int = 0
    """Wall clock of the last input, for stored records."""
    effects: list[Effect] = field(default_factory=list)

    def enter(self, state: GroupState, reason: str) -> None:
        """Change the group's state."""
        before = self.group.state
        self.group.state = state
        self.group.state_since_ms = self.now_ms
        self.effects.append(self.group.state_change(before.value, reason))

    # --- waiting members ---

    def answer_join(self, member: Member, answer: JoinAnswer) -> None:
        """Answer a member that waits for the next generation."""
        if member.joining is not None:
            self.effects.append(SendAnswer(ticket=member.joining, answer=answer))
            member.joining = None

    def answer_sync(self, member: Member, answer: SyncAnswer) -> bool:
        """Answer a member that waits for its assignment; return whether one did."""
        if member.syncing is None:
            return False
        self.effects.append(SendAnswer(ticket=member.syncing, answer=answer))
        member.syncing = None
        return True

    def expect_heartbeat(self, member: Member) -> None:
        """Restart a member's session time-out."""
        self.expect(member.member_id, member.session_timeout_ms)

    def expect(self, member_id: str, within_ms: int) -> None:
        """Start a timer that removes a silent member."""
        self.effects.append(SetTimer(timer=Timer(TimerKind.SESSION, member_id), after_ms=within_ms))

    def remove(self, member: Member, reason: str) -> None:
        """Remove a member; a waiting one is answered UNKNOWN_MEMBER_ID."""
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        self.answer_join(member, JoinAnswer(error=unknown))
        self.answer_sync(member, SyncAnswer(error=unknown))
        self.forget(member.member_id, reason)

    def forget(self, member_id: str, reason: str) -> None:
        """Remove a member, or a pending one, without an answer."""
        member = self.group.remove(member_id)
        if member is not None:
            self.effects.append(self.group.member_change(member, "removed", reason=reason))
        self.effects.append(CancelTimer(timer=Timer(TimerKind.SESSION, member_id)))

    # --- preparing ---

    def begin(self, reason: str) -> None:
        """Prepare a rebalance, unless one is being prepared."""
        group = self.group
        if group.state not in REBALANCES_FROM:
            return
        if group.state is GroupState.COMPLETING:
            self.refuse_assignment(ErrorCode.REBALANCE_IN_PROGRESS)
        self.effects.append(CancelTimer(timer=SYNC_TIMER))
        delay_ms = group.rebalance_timeout_ms
        group.initial_delay = None
        if group.state is GroupState.EMPTY:
            group.initial_delay = InitialDelay(self.initial_delay_ms, max(delay_ms - self.initial_delay_ms, 0))
            delay_ms = self.initial_delay_ms
        self.enter(GroupState.PREPARING, reason)
        self.effects.append(SetTimer(timer=JOIN_TIMER, after_ms=delay_ms))
        self.check()

    def check(self) -> None:
        """Complete a rebalance that waits for no member any more."""
        group = self.group
        if group.state is GroupState.PREPARING and group.initial_delay is None and group.all_have_joined():
            self.effects.append(CancelTimer(timer=JOIN_TIMER))
            self._complete()

    def join_time_is_over(self) -> None:
        """Complete a rebalance with the joined members; an empty group that grows gets more time."""
        group = self.group
        if group.state is not GroupState.PREPARING:
            return
        delay = group.initial_delay
        if delay is not None and group.new_member_came and delay.remaining_ms:
            group.new_member_came = False
            if self.rules.first_rebalance_is_bounded:
                next_ms = min(self.initial_delay_ms, delay.remaining_ms)
                delay = InitialDelay(next_ms, max(delay.remaining_ms - delay.delay_ms, 0))
            group.initial_delay = delay
            self.effects.append(SetTimer(timer=JOIN_TIMER, after_ms=delay.delay_ms))
        else:
            group.initial_delay = None
            self._complete()

    # --- completing ---

    def _complete(self) -> None:
        group = self.group
        for member in list(group.members.values()):
            if member.joining is None and member.instance_id is None:
                self.forget(member.member_id, "rebalance time-out")
        if group.members and not group.elect_joined_leader():
            self.effects.append(SetTimer(timer=JOIN_TIMER, after_ms=group.rebalance_timeout_ms))
            return
        group.begin_generation()
        if not group.members:
            self.enter(GroupState.EMPTY, "no member is left")
            self.effects.append(Store(record=group.record({})))
            return
        self.enter(GroupState.COMPLETING, "the members have joined")
        for member in group.members.values():
            self.answer_join(member, self.joined(member))
            self.expect_heartbeat(member)
            member.is_new = False
        if self.rules.assignments_have_a_deadline:
            self.effects.append(SetTimer(timer=SYNC_TIMER, after_ms=group.rebalance_timeout_ms))

    def joined(self, member: Member) -> JoinAnswer:
        """Return the answer to a member of this generation: with all members if it leads."""
        group = self.group
        return JoinAnswer(
            member_id=member.member_id,
            generation=group.generation,
            protocol_type=group.protocol_type,
            protocol=group.protocol,
            leader=group.leader or "",
            members=group.joined_members() if group.leader == member.member_id else (),
        )

    # --- assigning ---

    def assign(self, assignments: dict[str, bytes]) -> None:
        """Send every member what the leader has assigned; the group is stable then."""
        for member in self.group.members.values():
            member.assignment = assignments[member.member_id]
            self._propagate(member, self.synced(member))
        self.effects.append(self.group.assignment("stored"))
        self.enter(GroupState.STABLE, "the assignment is stored")

    def refuse_assignment(self, error: ErrorCode) -> None:
        """Answer members that wait for an assignment that there is none."""
        for member in self.group.members.values():
            member.assignment = b""
            self._propagate(member, SyncAnswer(error=error))

    def _propagate(self, member: Member, answer: SyncAnswer) -> None:
        if self.answer_sync(member, answer):
            self.expect_heartbeat(member)  # a waiting member has no session timer

    def synced(self, member: Member) -> SyncAnswer:
        """Return the answer to a member of a stable group."""
        return SyncAnswer(
            protocol_type=self.group.protocol_type, protocol=self.group.protocol, assignment=member.assignment
        )

    def has_asked(self, member: Member) -> None:
        """A member has asked for its assignment; after the last one, the timer for that is cancelled."""
        pending = self.group.pending_syncs
        if member.member_id in pending:
            pending.remove(member.member_id)
            if not pending:
                self.effects.append(CancelTimer(timer=SYNC_TIMER))

    def sync_time_is_over(self) -> None:
        """Remove members that joined this generation and never asked for their assignment."""
        group = self.group
        if group.state not in (GroupState.COMPLETING, GroupState.STABLE) or not group.pending_syncs:
            return
        for member_id in sorted(group.pending_syncs):
            self.forget(member_id, "sync time-out")
        self.begin("members have not asked for their assignment")

"""The group coordinator's state machine: the effect of each request and each timer on one group. Pure.

No socket, no clock, no disk: an input has the wall clock, a request that may wait has a ticket, and a method returns
its effects in order. The rules are those of the `GroupCoordinator` of Kafka 3.9, for the classic protocol.
"""

from dataclasses import dataclass, field, replace

from harness.broker.coordinator.effects import (
    NO_MEMBER_ID,
    Assigned,
    CancelTimer,
    Effect,
    JoinAnswer,
    SendAnswer,
    StaticReplaced,
    Store,
    SyncAnswer,
    Ticket,
    Timer,
    TimerKind,
)
from harness.broker.coordinator.group import Group, GroupState, Member
from harness.broker.coordinator.rebalance import Rebalance
from harness.broker.coordinator.requests import GroupLimits, Join, Sync
from harness.broker.rules import RIGHT, ProtocolRules
from harness.broker.wire.error_codes import ErrorCode

NEW_MEMBER_JOIN_MS = 5 * 60 * 1000
"""How long a member without an id may wait: its presence is unknown."""


@dataclass(slots=True, eq=False)
class Membership:
    """One group and its transitions."""

    group: Group
    limits: GroupLimits
    rules: ProtocolRules = RIGHT
    _rebalance: Rebalance = field(init=False)

    def __post_init__(self) -> None:
        self._rebalance = Rebalance(self.group, self.limits.initial_rebalance_delay_ms, self.rules)

    # --- JoinGroup ---

    def join(self, join: Join, ticket: Ticket, new_member_id: str, now_ms: int) -> list[Effect]:
        """Join the next generation, or learn about this one; a new member gets this id."""
        self._rebalance.now_ms = now_ms
        group = self.group
        if not self._has_room(join.member_id):
            self._rebalance.forget(join.member_id, "group full")
            self._refuse(ticket, ErrorCode.GROUP_MAX_SIZE_REACHED, NO_MEMBER_ID)
        elif group.state is GroupState.DEAD:
            self._refuse(ticket, ErrorCode.COORDINATOR_NOT_AVAILABLE, join.member_id)
        elif not group.supports(join.protocol_type, join.names()):
            self._refuse(ticket, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, join.member_id)
        elif join.member_id == NO_MEMBER_ID:
            self._new_member(join, ticket, new_member_id)
        elif join.member_id in group.pending_members and join.instance_id is None:
            self._add(join, ticket, join.member_id)
        elif error := self._not_a_member(join.member_id, join.instance_id):
            self._refuse(ticket, error, join.member_id)
        else:
            self._known_member(join, ticket, group.members[join.member_id])
        self._rebalance.check()
        return self._effects()

    def _has_room(self, member_id: str) -> bool:
        """Whether a member may join; in a rebalance the first to join may stay."""
        group = self.group
        if group.state in (GroupState.EMPTY, GroupState.DEAD):
            return True
        member = group.members.get(member_id)
        if group.state is GroupState.PREPARING:
            return (member is not None and member.joining is not None) or group.joining < self.limits.max_size
        return member is not None or len(group.members) < self.limits.max_size

    def _new_member(self, join: Join, ticket: Ticket, new_member_id: str) -> None:
        known = None if join.instance_id is None else self.group.static_members.get(join.instance_id)
        if known is not None:
            self._replace(join, ticket, known, new_member_id)
        elif join.instance_id is None and join.must_know_its_id:
            self.group.pending_members.add(new_member_id)
            self._rebalance.expect(new_member_id, join.session_timeout_ms)
            self._refuse(ticket, ErrorCode.MEMBER_ID_REQUIRED, new_member_id)
        else:
            self._add(join, ticket, new_member_id)

    def _add(self, join: Join, ticket: Ticket, member_id: str) -> None:
        group = self.group
        if group.state is GroupState.PREPARING and group.generation == 0:
            group.new_member_came = True
        member = Member(
            member_id=member_id,
            instance_id=join.instance_id,
            client_id=join.client_id,
            client_host=join.client_host,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            session_timeout_ms=join.session_timeout_ms,
            protocols=join.protocols,
            joining=ticket,
            is_new=True,
        )
        group.add(member, join.protocol_type)
        self._rebalance.effects.append(group.member_change(member, "joined"))
        self._rebalance.expect(member_id, NEW_MEMBER_JOIN_MS)
        self._rebalance.begin("a member joined")

    def _known_member(self, join: Join, ticket: Ticket, member: Member) -> None:
        state = self.group.state
        leads_stable = state is GroupState.STABLE and self.group.leader == member.member_id
        if state is GroupState.EMPTY:
            self._refuse(ticket, ErrorCode.UNKNOWN_MEMBER_ID, member.member_id)
        elif state is GroupState.PREPARING or leads_stable or member.protocols != join.protocols:
            self._update(member, join, ticket)
            self._rebalance.begin("a member joined again")
        else:
            self._answer(ticket, self._rebalance.joined(member))

    def _update(self, member: Member, join: Join, ticket: Ticket) -> None:
        """Make a member wait with its new metadata; an earlier waiting request is dropped."""
        self._rebalance.answer_join(
            member, JoinAnswer(error=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)
        )
        member.protocols = join.protocols
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        member.session_timeout_ms = join.session_timeout_ms
        member.joining = ticket

    # --- an instance that comes back (KIP-345) ---

    def _replace(self, join: Join, ticket: Ticket, old_id: str, new_id: str) -> None:
        """Continue a static member under a new id; the old id is fenced."""
        group, rebalance = self.group, self._rebalance
        assert join.instance_id is not None
        old_leader = group.leader or NO_MEMBER_ID
        member = group.members[old_id]
        fenced = ErrorCode.FENCED_INSTANCE_ID
        rebalance.answer_join(member, JoinAnswer(error=fenced, member_id=old_id))
        rebalance.answer_sync(member, SyncAnswer(error=fenced))
        purpose = StaticReplaced(
            instance_id=join.instance_id,
            old_member_id=old_id,
            new_member_id=new_id,
            old_protocols=member.protocols,
            old_rebalance_timeout_ms=member.rebalance_timeout_ms,
            old_session_timeout_ms=member.session_timeout_ms,
            old_leader=old_leader,
            may_skip_assignment=join.may_skip_assignment,
        )
        self._rename(join.instance_id, new_id)
        self._update(member, join, ticket)
        if group.state is GroupState.STABLE and group.elected_protocol() == group.protocol:
            assignments = {each.member_id: each.assignment for each in group.members.values()}
            rebalance.effects.append(Store(record=group.record(assignments), purpose=purpose))
        else:
            rebalance.begin("an instance came back")

    def _rename(self, instance_id: str, member_id: str) -> None:
        old_id = self.group.static_members[instance_id]
        self._rebalance.effects.append(CancelTimer(timer=Timer(TimerKind.SESSION, old_id)))
        member = self.group.rename(instance_id, member_id)
        self._rebalance.effects.append(self.group.member_change(member, "replaced", old_member=old_id))
        self._rebalance.expect_heartbeat(member)

    def _replaced(self, replaced: StaticReplaced, error: ErrorCode) -> None:
        """Answer an instance that came back once its new id is stored; if that fails, the old one stays valid.

        A rebalance that began meanwhile answers it instead.
        """
        group = self.group
        member = group.members.get(replaced.new_member_id)
        if group.state is not GroupState.STABLE or member is None or member.joining is None:
            return
        joined = self._rebalance.joined(member)
        if error is not ErrorCode.NONE:
            answer = replace(joined, error=error, member_id=NO_MEMBER_ID, leader=replaced.old_leader, members=())
        elif replaced.may_skip_assignment:
            answer = replace(joined, skip_assignment=group.leader == member.member_id)
        else:  # a member that sees the old id as leader does not assign: a stable group would ignore it
            answer = replace(joined, leader=replaced.old_leader, members=())
        self._rebalance.answer_join(member, answer)
        if error is not ErrorCode.NONE:
            member.protocols = replaced.old_protocols
            member.rebalance_timeout_ms = replaced.old_rebalance_timeout_ms
            member.session_timeout_ms = replaced.old_session_timeout_ms
            self._rename(replaced.instance_id, replaced.old_member_id)
        else:
            self._rebalance.effects.append(group.assignment("replaced"))

    # --- SyncGroup ---

    def sync(self, sync: Sync, ticket: Ticket, now_ms: int) -> list[Effect]:
        """Ask for an assignment; the leader brings that of all members."""
        self._rebalance.now_ms = now_ms
        error = self._sync_error(sync)
        if error:
            self._answer(ticket, SyncAnswer(error=error))
            return self._effects()
        group = self.group
        member = group.members[sync.member_id]
        self._rebalance.has_asked(member)
        if group.state is GroupState.STABLE:
            synced = self._rebalance.synced(member)
            self._answer(ticket, synced if self.rules.late_syncs_get_assignments else replace(synced, assignment=b""))
            self._rebalance.expect_heartbeat(member)
            return self._effects()
        self._rebalance.answer_sync(member, SyncAnswer(error=ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = ticket
        if group.leader == member.member_id:
            assignments = {each: sync.assignments.get(each, b"") for each in group.members}
            self._rebalance.effects.append(
                Store(
                    record=group.record(assignments),
                    purpose=Assigned(generation=group.generation, assignments=assignments),
                )
            )
        return self._effects()

    def _sync_error(self, sync: Sync) -> ErrorCode:
        group = self.group
        error = self._not_of_this_generation(sync.generation, sync.member_id, sync.instance_id)
        if error:
            return error
        if sync.protocol_type not in (None, group.protocol_type) or sync.protocol not in (None, group.protocol):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.state is GroupState.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING else ErrorCode.NONE

    def stored(self, purpose: Assigned | StaticReplaced | None, error: ErrorCode, now_ms: int) -> list[Effect]:
        """Continue after a record was stored; a group that has changed meanwhile is left alone."""
        self._rebalance.now_ms = now_ms
        group = self.group
        if isinstance(purpose, StaticReplaced):
            self._replaced(purpose, error)
        elif (
            isinstance(purpose, Assigned)
            and group.state is GroupState.COMPLETING
            and group.generation == purpose.generation
        ):
            if error is ErrorCode.NONE:
                self._rebalance.assign(purpose.assignments)
            else:
                self._rebalance.refuse_assignment(error)
                self._rebalance.begin("the assignment could not be stored")
        return self._effects()

    # --- Heartbeat, OffsetCommit ---

    def heartbeat(self, generation: int, member_id: str, instance_id: str | None) -> tuple[ErrorCode, list[Effect]]:
        """Renew the session."""
        member_id = self._acting_as(member_id, instance_id)
        error = self._not_of_this_generation(generation, member_id, instance_id)
        if error:
            return error, self._effects()
        if self.group.state is GroupState.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID, self._effects()
        self._rebalance.expect_heartbeat(self.group.members[member_id])
        preparing = self.group.state is GroupState.PREPARING
        return ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE, self._effects()

    def commits(self, generation: int, member_id: str, instance_id: str | None) -> tuple[ErrorCode, list[Effect]]:
        """Say whether offsets may be committed: by members of this generation, or by any client of an empty group."""
        group = self.group
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, []
        if generation < 0 and group.state is GroupState.EMPTY:
            return ErrorCode.NONE, []
        if generation < 0 and member_id == NO_MEMBER_ID and instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID, []
        member_id = self._acting_as(member_id, instance_id)
        error = self._not_of_this_generation(generation, member_id, instance_id)
        if not error and group.state is GroupState.COMPLETING and self.rules.commits_wait_for_assignments:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if not error:
            self._rebalance.expect_heartbeat(group.members[member_id])
        return error, self._effects()

    def commits_in_transaction(self, generation: int, member_id: str, instance_id: str | None) -> ErrorCode:
        """Say whether a transaction may commit offsets: a named member must be of this generation.

        A rebalance does not prevent it, and it does not renew the session (KIP-447).
        """
        group = self.group
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation < 0 and (group.state is GroupState.EMPTY or (member_id == NO_MEMBER_ID and instance_id is None)):
            return ErrorCode.NONE
        if not self.rules.transactional_commits_are_fenced:
            return ErrorCode.NONE
        return self._not_of_this_generation(generation, self._acting_as(member_id, instance_id), instance_id)

    # --- LeaveGroup ---

    def leave(self, member_id: str, instance_id: str | None, now_ms: int) -> tuple[ErrorCode, list[Effect]]:
        """Remove a member: at its own request, or at an administrator's, by its instance alone."""
        self._rebalance.now_ms = now_ms
        group = self.group
        if member_id == NO_MEMBER_ID:
            member_id = NO_MEMBER_ID if instance_id is None else group.static_members.get(instance_id, NO_MEMBER_ID)
            instance_id = None
        error = ErrorCode.NONE
        if member_id in group.pending_members:
            self._rebalance.forget(member_id, "left")
            self._rebalance.check()
        elif not (error := self._not_a_member(member_id, instance_id)):
            self._remove(group.members[member_id], "left")
        return error, self._effects()

    # --- timers, the coordinator's life ---

    def fired(self, timer: Timer, now_ms: int) -> list[Effect]:
        """Handle a timer that fired."""
        self._rebalance.now_ms = now_ms
        if timer.kind is TimerKind.JOIN:
            self._rebalance.join_time_is_over()
        elif timer.kind is TimerKind.SYNC:
            self._rebalance.sync_time_is_over()
        elif timer.member_id in self.group.pending_members:
            self._rebalance.forget(timer.member_id, "session expired")
            self._rebalance.check()
        elif (member := self.group.members.get(timer.member_id)) is not None and member.must_be_heard_of:
            self._remove(member, "session expired")
        return self._effects()

    def loaded(self, now_ms: int) -> list[Effect]:
        """Start serving a group that was read from the log; a too large one has its members rejoin."""
        self._rebalance.now_ms = now_ms
        if self.group.generation:
            self._rebalance.effects += [self.group.assignment("loaded"), self.group.state_change("", "loaded")]
        if len(self.group.members) > self.limits.max_size:
            self._rebalance.begin("too many members")
        for member in self.group.members.values():
            self._rebalance.expect_heartbeat(member)
        return self._effects()

    def end(self, error: ErrorCode, now_ms: int) -> list[Effect]:
        """End the group: deleted, or moved to another broker; waiting members are answered so."""
        self._rebalance.now_ms = now_ms
        moved = error is ErrorCode.NOT_COORDINATOR
        self._rebalance.enter(GroupState.DEAD, "the coordinator moved" if moved else "nothing is left of it")
        for member in self.group.members.values():
            self._rebalance.answer_join(member, JoinAnswer(error=error, member_id=member.member_id))
            self._rebalance.answer_sync(member, SyncAnswer(error=error))
        return self._effects()

    # --- shared ---

    def _remove(self, member: Member, reason: str) -> None:
        self._rebalance.remove(member, reason)
        if self.group.state is GroupState.PREPARING:
            self._rebalance.check()
        else:
            self._rebalance.begin("a member is gone")

    def _not_a_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Return why a client is no member; NONE when it is one."""
        if instance_id is not None:
            known = self.group.static_members.get(instance_id)
            if known is not None and known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_id in self.group.members else ErrorCode.UNKNOWN_MEMBER_ID

    def _not_of_this_generation(self, generation: int, member_id: str, instance_id: str | None) -> ErrorCode:
        if self.group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._not_a_member(member_id, instance_id)
        if error:
            return error
        is_current = generation == self.group.generation or not self.rules.old_generations_are_refused
        return ErrorCode.NONE if is_current else ErrorCode.ILLEGAL_GENERATION

    def _acting_as(self, member_id: str, instance_id: str | None) -> str:
        """Return the member id that a request acts for: its own."""
        if self.rules.instances_are_fenced:
            return member_id
        return self.group.static_members.get(instance_id or "", member_id)

    def _refuse(self, ticket: Ticket, error: ErrorCode, member_id: str) -> None:
        self._answer(ticket, JoinAnswer(error=error, member_id=member_id))

    def _answer(self, ticket: Ticket, answer: JoinAnswer | SyncAnswer) -> None:
        self._rebalance.effects.append(SendAnswer(ticket=ticket, answer=answer))

    def _effects(self) -> list[Effect]:
        effects, self._rebalance.effects = self._rebalance.effects, []
        return effects

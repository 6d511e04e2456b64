"""Serves the members of groups: passes their requests to the state machine, and carries out its effects.

All of it is on the broker's loop: waiting requests are futures, timers are the loop's, and a record is stored when the
replicated topic has acknowledged it.
"""

import asyncio
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.broker.background import begin
from harness.broker.coordinator.effects import (
    NO_MEMBER_ID,
    Assigned,
    CancelTimer,
    Effect,
    JoinAnswer,
    SendAnswer,
    SetTimer,
    Store,
    SyncAnswer,
    Ticket,
    Timer,
    TimerKind,
)
from harness.broker.coordinator.group import Group
from harness.broker.coordinator.membership import Membership
from harness.broker.coordinator.placement import partition_of
from harness.broker.coordinator.records import encode_group
from harness.broker.coordinator.requests import Join, Sync
from harness.broker.coordinator.store import GroupStore
from harness.broker.coordinator.topic import GROUP_ERRORS, NO_CORRELATION_ID, CoordinatorTopic
from harness.broker.state_log import StateLog
from harness.broker.wire.error_codes import ErrorCode
from harness.events import GroupEvent

MemberIdentity = tuple[str, str | None]
"""Member id, instance id."""


@dataclass(slots=True, kw_only=True)
class GroupMembers:
    """The members of the groups that this broker coordinates."""

    store: GroupStore
    topic: CoordinatorTopic
    state_log: StateLog
    wall_ms: Callable[[], int]
    rng: random.Random
    """For the ids of members."""
    _last_ticket: Ticket = 0
    _waiting: dict[Ticket, tuple[str, asyncio.Future[Any]]] = field(default_factory=dict)
    """Requests that wait, each with its group and its answer."""
    _timers: dict[Membership, dict[Timer, asyncio.TimerHandle]] = field(default_factory=dict)
    _stores: set[asyncio.Task[None]] = field(default_factory=set)

    # --- requests ---

    async def join(self, name: str, join: Join) -> JoinAnswer:
        """Answer JoinGroup, once the next generation has begun; the first new member makes the group."""
        limits, error = self.store.limits, self.coordinator_error(name)
        if not error and not limits.min_session_timeout_ms <= join.session_timeout_ms <= limits.max_session_timeout_ms:
            error = ErrorCode.INVALID_SESSION_TIMEOUT
        if not error and join.member_id != NO_MEMBER_ID and self.store.group(name) is None:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error:
            return JoinAnswer(error=error, member_id=join.member_id)
        membership = self.store.create_group(name).membership
        ticket, answer = self._ticket(name)
        new_member_id = f"{join.instance_id or join.client_id}-{uuid.UUID(int=self.rng.getrandbits(128), version=4)}"
        self.carry_out(membership, membership.join(join, ticket, new_member_id, self.wall_ms()))
        joined: JoinAnswer = await self._answered(ticket, answer)
        return joined

    async def sync(self, name: str, sync: Sync) -> SyncAnswer:
        """Answer SyncGroup, once the leader's assignment is stored."""
        error = self.coordinator_error(name)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return SyncAnswer(error=ErrorCode.REBALANCE_IN_PROGRESS)  # for older clients
        known = self.store.group(name)
        if error or known is None:
            return SyncAnswer(error=error or ErrorCode.UNKNOWN_MEMBER_ID)
        ticket, answer = self._ticket(name)
        self.carry_out(known.membership, known.membership.sync(sync, ticket, self.wall_ms()))
        synced: SyncAnswer = await self._answered(ticket, answer)
        return synced

    def heartbeat(self, name: str, generation: int, member_id: str, instance_id: str | None) -> ErrorCode:
        """Answer Heartbeat."""
        error = self.coordinator_error(name)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return ErrorCode.NONE
        known = self.store.group(name)
        if error or known is None:
            return error or ErrorCode.UNKNOWN_MEMBER_ID
        error, effects = known.membership.heartbeat(generation, member_id, instance_id)
        self._log_heartbeat(known.membership.group, member_id, error)
        self.carry_out(known.membership, effects)
        return error

    def _log_heartbeat(self, group: Group, member_id: str, error: ErrorCode) -> None:
        member = group.members.get(member_id)
        if member is not None and error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self.state_log.emit(group.heartbeat(member))

    def leave(self, name: str, leaving: Sequence[MemberIdentity]) -> tuple[ErrorCode, list[ErrorCode]]:
        """Answer LeaveGroup: an error for all, or one each."""
        error = self.coordinator_error(name)
        if error:
            return error, []
        known = self.store.group(name)
        if known is None:
            return ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID for _ in leaving]
        errors = []
        for member_id, instance_id in leaving:
            error, effects = known.membership.leave(member_id, instance_id, self.wall_ms())
            self.carry_out(known.membership, effects)
            errors.append(error)
        return ErrorCode.NONE, errors

    def coordinator_error(self, name: str) -> ErrorCode:
        """Return NONE when this broker may answer for members of the group, else why not."""
        return self.store.coordinator_error(name) if name else ErrorCode.INVALID_GROUP_ID

    def timers(self) -> Counter[TimerKind]:
        """Return the number of running timers of each kind."""
        return Counter(timer.kind for timers in self._timers.values() for timer in timers)

    def running_timers(self, membership: Membership) -> set[Timer]:
        """Return the running timers of one group."""
        return set(self._timers.get(membership, ()))

    @property
    def open_tickets(self) -> dict[Ticket, str]:
        """The requests that wait for an answer, each with its group."""
        return {ticket: name for ticket, (name, answer) in self._waiting.items() if not answer.done()}

    # --- the coordinator's life ---

    def take_over(self, memberships: Iterable[Membership]) -> None:
        """Start serving loaded groups: every session starts again."""
        for membership in memberships:
            self.carry_out(membership, membership.loaded(self.wall_ms()))

    def let_go(self, memberships: Iterable[Membership], error: ErrorCode) -> None:
        """Drop groups for good, and answer waiting members with the reason."""
        for membership in memberships:
            self.carry_out(membership, membership.end(error, self.wall_ms()))
            for timer in self._timers.pop(membership, {}).values():
                timer.cancel()

    async def stop(self) -> None:
        """End timers, and running stores."""
        for timers in self._timers.values():
            for timer in timers.values():
                timer.cancel()
        self._timers.clear()
        for task in self._stores:
            task.cancel()
        await asyncio.gather(*self._stores, return_exceptions=True)

    # --- effects ---

    def carry_out(self, membership: Membership, effects: Iterable[Effect]) -> None:
        """Carry out a group's effects."""
        for effect in effects:
            match effect:
                case SendAnswer(ticket=ticket, answer=answer):
                    _, waiting = self._waiting.get(ticket, ("", None))
                    if waiting is not None and not waiting.done():
                        waiting.set_result(answer)
                case SetTimer(timer=timer, after_ms=after_ms):
                    self._cancel(membership, timer)
                    self._set(membership, timer, after_ms)
                case CancelTimer(timer=timer):
                    self._cancel(membership, timer)
                case GroupEvent():
                    self.state_log.emit(effect)
                case Store():
                    if isinstance(effect.purpose, Assigned):
                        self.store.counters.rebalances.mark(1, self.wall_ms())
                    begin(self._stores, self._store(membership, effect), "store-group")

    def _ticket(self, name: str) -> tuple[Ticket, asyncio.Future[Any]]:
        self._last_ticket += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._last_ticket] = name, answer
        return self._last_ticket, answer

    async def _answered(self, ticket: Ticket, answer: asyncio.Future[Any]) -> Any:
        try:
            return await answer
        finally:
            del self._waiting[ticket]

    def _set(self, membership: Membership, timer: Timer, after_ms: int) -> None:
        handle = asyncio.get_running_loop().call_later(after_ms / 1000, self._fire, membership, timer)
        self._timers.setdefault(membership, {})[timer] = handle

    def _cancel(self, membership: Membership, timer: Timer) -> None:
        handle = self._timers.get(membership, {}).pop(timer, None)
        if handle is not None:
            handle.cancel()

    def _fire(self, membership: Membership, timer: Timer) -> None:
        self._cancel(membership, timer)
        self.carry_out(membership, membership.fired(timer, self.wall_ms()))

    async def _store(self, membership: Membership, store: Store) -> None:
        name, now_ms = membership.group.name, self.wall_ms()
        result = await self.topic.append(
            partition_of(name, self.store.partitions),
            encode_group(name, store.record, now_ms),
            client="",
            correlation_id=NO_CORRELATION_ID,
        )
        error = GROUP_ERRORS.get(result.error, result.error)
        self.carry_out(membership, membership.stored(store.purpose, error, self.wall_ms()))

"""Effects of a group: answers to waiting members, timers, records to store, and lines for its log.

Data, carried out elsewhere.

A request that may have to wait comes with a *ticket*, a number that its answer names again.
"""

from enum import Enum
from typing import NamedTuple

from harness.broker.coordinator.group_records import GroupMetadata
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import NO_GENERATION
from harness.events import GroupEvent
from harness.values import value_class

NO_MEMBER_ID = ""

Ticket = int


class TimerKind(Enum):
    """What is over when a timer of a group fires."""

    SESSION = "a member has not been heard of"
    JOIN = "members have had their time to join"
    SYNC = "members have had their time to ask for their assignment"


class Timer(NamedTuple):
    """One of a group's timers; to set one that runs is to set it anew."""

    kind: TimerKind
    member_id: str = NO_MEMBER_ID
    """Whose session."""


JOIN_TIMER, SYNC_TIMER = Timer(TimerKind.JOIN), Timer(TimerKind.SYNC)


@value_class(frozen=True, slots=True, kw_only=True)
class JoinedMember:
    """A member as the leader of the group sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@value_class(frozen=True, slots=True, kw_only=True)
class JoinAnswer:
    """The answer to JoinGroup."""

    error: ErrorCode = ErrorCode.NONE
    member_id: str = NO_MEMBER_ID
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = NO_MEMBER_ID
    members: tuple[JoinedMember, ...] = ()
    """All of them for the leader, which assigns; empty for others."""
    skip_assignment: bool = False


@value_class(frozen=True, slots=True, kw_only=True)
class SyncAnswer:
    """The answer to SyncGroup."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@value_class(frozen=True, slots=True, kw_only=True)
class SendAnswer:
    """The holder of the ticket is answered."""

    ticket: Ticket
    answer: JoinAnswer | SyncAnswer


@value_class(frozen=True, slots=True, kw_only=True)
class SetTimer:
    """A timer is to fire, once, after so long."""

    timer: Timer
    after_ms: int


@value_class(frozen=True, slots=True, kw_only=True)
class CancelTimer:
    """A timer is not to fire; it may not even run."""

    timer: Timer


@value_class(frozen=True, slots=True, kw_only=True)
class Assigned:
    """A record that holds what the leader assigned."""

    generation: int
    assignments: dict[str, bytes]


@value_class(frozen=True, slots=True, kw_only=True)
class StaticReplaced:
    """A record in which an instance has a new member id, and what it had before, should it not be stored."""

    instance_id: str
    old_member_id: str
    new_member_id: str
    old_protocols: tuple[tuple[str, bytes], ...]
    old_rebalance_timeout_ms: int
    old_session_timeout_ms: int
    old_leader: str
    may_skip_assignment: bool


@value_class(frozen=True, slots=True, kw_only=True)
class Store:
    """The group is to be stored; how it went is told to the group together with `purpose`."""

    record: GroupMetadata
    purpose: Assigned | StaticReplaced | None = None
    """None when nothing depends on it."""


Effect = SendAnswer | SetTimer | CancelTimer | Store | GroupEvent

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
    """What ends when a timer of a group fires."""

    SESSION = "no heartbeat of a member came in time"
    JOIN = "members have had their time to join"
    SYNC = "members have had their time to ask for their assignment"


class Timer(NamedTuple):
    """One of a group's timers; setting a running one restarts it."""

    kind: TimerKind
    member_id: str = NO_MEMBER_ID
    """Member of the session."""


JOIN_TIMER, SYNC_TIMER = Timer(TimerKind.JOIN), Timer(TimerKind.SYNC)


@value_class(frozen=True, slots=True, kw_only=True)
class JoinedMember:
    """A member for the leader of the group."""

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
    """Start a timer, which fires once, after this time."""

    timer: Timer
    after_ms: int


@value_class(frozen=True, slots=True, kw_only=True)
class CancelTimer:
    """Cancel a timer; it may not be running."""

    timer: Timer


@value_class(frozen=True, slots=True, kw_only=True)
class Assigned:
    """A record with the leader's assignment."""

    generation: int
    assignments: dict[str, bytes]


@value_class(frozen=True, slots=True, kw_only=True)
class StaticReplaced:
    """A record with an instance's new member id, and the earlier state, in case it cannot be stored."""

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
    """Store the group; the group gets the outcome together with `purpose`."""

    record: GroupMetadata
    purpose: Assigned | StaticReplaced | None = None
    """None when nothing depends on it."""


Effect = SendAnswer | SetTimer | CancelTimer | Store | GroupEvent

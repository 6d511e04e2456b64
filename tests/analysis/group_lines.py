"""Lines of a coordinator about group g, in a few words each; members are named like instances of theirs: `a/i`."""

from typing import Any

from harness.events import (
    AssignedPartition,
    GroupAssignment,
    GroupMember,
    GroupMemberChange,
    GroupStateChange,
    MemberAssignment,
    OffsetCommit,
)

GROUP: dict[str, Any] = {"group": "g", "offsets_partition": 0, "coordinator_epoch": 3}
REBALANCE_MS, SESSION_MS = 60_000, 10_000


def _member(name: str) -> dict[str, Any]:
    member, _, instance = name.partition("/")
    return {"member": member, "instance": instance or None}


def becomes(
    state: str, generation: int, *members: str, epoch: int = 3, since: str = "Empty", reason: str = "test"
) -> GroupStateChange:
    """The group is in a state, with these members."""
    return GroupStateChange(
        **GROUP | {"coordinator_epoch": epoch},
        generation=generation,
        from_state=since,
        to_state=state,
        protocol_type="consumer",
        protocol="range",
        group_leader=members[0].partition("/")[0] if members else None,
        members=[GroupMember(**_member(name)) for name in members],
        rebalance_timeout_ms=REBALANCE_MS,
        session_timeout_ms=SESSION_MS,
        reason=reason,
    )


def member(name: str, change: str, generation: int, *, old: str | None = None, epoch: int = 3) -> GroupMemberChange:
    """Something becomes of a member."""
    return GroupMemberChange(
        **GROUP | {"coordinator_epoch": epoch},
        generation=generation,
        **_member(name),
        change=change,
        old_member=old,
        reason="",
    )


def assigns(generation: int, *, reason: str = "stored", epoch: int = 3, **members: list[int] | None) -> GroupAssignment:
    """Partitions of orders are assigned to members."""
    return GroupAssignment(
        **GROUP | {"coordinator_epoch": epoch},
        generation=generation,
        reason=reason,
        assignments=[
            MemberAssignment(
                member=name,
                instance=None,
                partitions=None
                if numbers is None
                else [AssignedPartition(topic="orders", partition=number) for number in numbers],
            )
            for name, numbers in members.items()
        ],
    )


def commits(
    name: str, generation: int, *, decided: int, offset: int = 7, epoch: int = 3, error: int = 0
) -> OffsetCommit:
    """A commit is answered, which had been decided before the line of this number."""
    return OffsetCommit(
        group="g",
        generation=generation,
        **_member(name),
        coordinator_epoch=epoch,
        decided_seq=decided,
        topic="orders",
        partition=0,
        offset=offset,
        log_offset=-1 if error else offset,
        error=error,
    )

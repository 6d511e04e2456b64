"""Rows of the facts about consumer groups, in a few words each, as `fact_rows` has others.

The coordinator is broker 1 in coordinator epoch 3; a later epoch has another broker. A member `a/i` is instance i.
"""

from typing import Any

from tests.analysis.fact_rows import RUN, Row
from tests.analysis.protocol_rows import S

_PARTITION = {"topic": "orders", "partition": 0}


def _line(seq: int, epoch: int) -> dict[str, Any]:
    broker = epoch - 2
    line = {"run_id": RUN, "broker": broker, "incarnation": f"inc-{broker}", "seq": seq, "time_ns": seq * S}
    return line | {"coordinator_epoch": epoch, "group": "g"}


def _member(name: str) -> dict[str, Any]:
    member, _, instance = name.partition("/")
    return {"member": member, "instance": instance or None}


def _owner(name: str) -> dict[str, Any]:
    member, _, instance = name.partition("/")
    return _member(name) | {"owner": instance or member or None}


def in_state(state: str, generation: int, *members: str, seq: int = 0, epoch: int = 3, **other: Any) -> Row:
    """The group came to a state, a second a line, and left it a second later."""
    row = {**_line(seq, epoch), "offsets_partition": 0, "generation": generation, "from_state": "Empty", "state": state}
    row |= {"members": [_member(name) for name in members], "rebalance_timeout_ms": 20_000, "reason": "test"}
    row |= {"session_timeout_ms": 5_000, "until_ns": (seq + 1) * S, "ended": True}
    return "group_states", row | other


def read_in(state: str, generation: int, *members: str, epoch: int = 4, **other: Any) -> Row:
    """The next coordinator read the group from its log."""
    return in_state(state, generation, *members, epoch=epoch, from_state="", reason="loaded", **other)


def stored(
    member: str,
    *partitions: int,
    generation: int = 1,
    seq: int = 0,
    epoch: int = 3,
    reason: str = "stored",
    rebalance_s: int | None = None,
) -> list[Row]:
    """What a coordinator stored that a member has, and when it began the next rebalance."""
    row = {**_line(seq, epoch), "source": "coordinator", "generation": generation, **_owner(member), "reason": reason}
    row |= {"life": 0, "rebalance_ns": None if rebalance_s is None else rebalance_s * S}
    where = [{"topic": "orders", "partition": partition} for partition in partitions] or [{}]
    return [("group_generations", row | each) for each in where]


def reported(member: str, partition: int = 0, *, generation: int = 1, **other: Any) -> Row:
    """What a member says that it was assigned."""
    row = {"run_id": RUN, "source": "member", "group": "g", "generation": generation, **_owner(member), "time_ns": S}
    row |= {"process": f"process of {member}", "index": 4, "reason": "assigned", "topic": "orders", "life": 0}
    return "group_generations", row | {"partition": partition} | other


def took(member: str, generation: int, *, state: str | None = "Stable", current: int | None = 2, **other: Any) -> Row:
    """A commit that the coordinator took from a member, of a group that is stable in generation 2."""
    row = {**_line(9, 3), **_PARTITION, "offset": 7, "generation": generation, **_member(member), "log_offset": 40}
    row |= {"error": 0, "decided_seq": 8, "group_state": state, "group_generation": current, "known": True}
    return "group_commits", row | other


def retired(log_offset: int = 41, *, at_ns: int = 9 * S, **other: Any) -> Row:
    """The coordinator took back what was committed."""
    return "group_retirements", {**_line(9, 3), **_PARTITION, "log_offset": log_offset, "time_ns": at_ns} | other


def loaded(
    to: int = 40, *, epoch: int = 3, seq: int = 0, kind: str = "load", broker: int | None = None, disk_error: str = ""
) -> Row:
    """A broker read a partition of the offsets topic up to an offset, or stopped to coordinate it."""
    broker = epoch - 2 if broker is None else broker
    row = {"run_id": RUN, "broker": broker, "incarnation": f"inc-{broker}", "seq": seq, "time_ns": seq * S}
    row |= {"kind": kind, "topic": "__consumer_offsets", "partition": 0, "leader_epoch": epoch, "groups": 1}
    row |= {"disk_error": disk_error}
    return "group_loads", row | {"offsets": 3, "log_end_offset": to if kind == "load" else None}


def owned(partition: int = 0, offset: int | None = 5, *, process: str = "m1", **other: Any) -> Row:
    """A member that was told at 10 s that a partition is its own, and that gave it back at 20 s."""
    row = {"run_id": RUN, "process": process, "group": "g", "member": process, "instance": "", "generation": 1}
    row |= {"mode": "eager", "topic": "orders", "partition": partition, "index": 10, "invoke_ns": 10 * S}
    row |= {"assigned_ns": 10 * S, "offset": offset, "until_index": 20, "until_ns": 20 * S, "ended_by": "revoked"}
    return "ownerships", row | other

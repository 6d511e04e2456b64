"""Random calls on groups: members, and offsets of groups with members or without."""

from collections.abc import Iterator
from typing import Any

from harness.client_rules.scripts.script import AWAIT, BEGIN, Step
from tools.differential.draws import Draw

SESSION_MS, REBALANCE_MS = 6_000, 1_500
"""A member that does not join again in time holds a rebalance up for no longer."""


def join(draw: Draw) -> Iterator[Step]:
    """Join a group: as a new member, twice where the first answer is an id only, or as a known member."""
    new = not draw.members or draw.bad(0.35)
    if new:
        draw.members += 1
    member = "" if new else draw.member()
    group = draw.group() if draw.bad(0.2) else "$g:0"
    first, last = draw.versions["JoinGroup"]
    version = draw.rng.randint(first, last)
    fields: dict[str, Any] = {
        "group_id": group,
        "session_timeout_ms": draw.usually(SESSION_MS, 5, 10**9, -1, share=0.96),
        "rebalance_timeout_ms": REBALANCE_MS,
        "group_instance_id": draw.usually(None, "i0", "i1", "", share=0.8) if version >= 5 else None,
        "protocol_type": draw.usually("consumer", "connect", "", share=0.95),
        "protocols": [
            {"name": name, "metadata": draw.usually("meta", "")}
            for name in draw.usually(("range",), ("range", "roundrobin"), ("roundrobin",), (), share=0.7)
        ],
        "reason": draw.usually(None, "because"),
    }
    if new and fields["group_instance_id"] is None and version >= 4:
        yield draw.step("JoinGroup", version=version, member_id=member, **fields)
        member = f"$m:{draw.members - 1}"
    yield draw.step("JoinGroup", how=BEGIN, version=version, member_id=member, **fields)
    if draw.bad(0.4):
        yield heartbeat(draw)
    if draw.bad(0.6):
        yield Step(api="JoinGroup", version=0, how=AWAIT)


def sync(draw: Draw) -> Iterator[Step]:
    """Ask for an assignment; a leader gives some."""
    named = draw.bad(0.5)
    yield draw.step(
        "SyncGroup",
        how=BEGIN,
        group_id=draw.usually("$g:0", "$g:1", share=0.95),
        generation_id=draw.usually("$n:0", 7, -1, share=0.93),
        member_id=draw.member(),
        group_instance_id=draw.usually(None, "i0", share=0.9),
        protocol_type=draw.usually("consumer", "connect", share=0.9) if named else None,
        protocol_name=draw.usually("range", "other", share=0.9) if named else None,
        assignments=[
            {"member_id": f"$m:{index}", "assignment": f"a{index}"}
            for index in range(draw.rng.randint(0, draw.members))
        ],
    )
    yield Step(api="SyncGroup", version=0, how=AWAIT)


def heartbeat(draw: Draw) -> Step:
    """Be heard of."""
    return draw.step(
        "Heartbeat",
        group_id=draw.usually("$g:0", draw.group(), share=0.95),
        generation_id=draw.usually("$n:0", 7, -1, share=0.93),
        member_id=draw.member(),
        group_instance_id=draw.usually(None, "i0", share=0.9),
    )


def leave(draw: Draw) -> Step:
    """Leave, one or several members."""
    members = [
        {"member_id": draw.member(), "group_instance_id": draw.usually(None, "i0", "i1", share=0.8), "reason": None}
        for _ in range(draw.rng.randint(0, 2))
    ]
    return draw.step(
        "LeaveGroup", group_id=draw.usually("$g:0", draw.group()), member_id=draw.member(), members=members
    )


def commit(draw: Draw) -> Step:
    """Commit offsets: as a member, or without one."""
    as_member = draw.members and draw.bad(0.5)
    partitions = [
        {
            "partition_index": each,
            "committed_offset": draw.offset(),
            "committed_leader_epoch": draw.usually(-1, 0, 3),
            "committed_metadata": draw.usually("", "m", None, "x" * 5000, share=0.7),
        }
        for each in draw.partitions()
    ]
    return draw.step(
        "OffsetCommit",
        group_id=draw.group(),
        generation_id_or_member_epoch="$n:0" if as_member else draw.usually(-1, 3, share=0.95),
        member_id=draw.member() if as_member else draw.usually("", "other", share=0.95),
        group_instance_id=draw.usually(None, "i0", share=0.95),
        retention_time_ms=draw.usually(-1, 10**8, share=0.9),
        topics=[{"name": draw.topic(), "partitions": partitions}],
    )


def committed(draw: Draw) -> Step:
    """Fetch offsets of one group, or of several, of some partitions or all."""
    topic = draw.topic()
    partitions = draw.partitions()
    everything = draw.bad(0.3)
    first, last = draw.versions["OffsetFetch"]
    version = draw.rng.randint(max(first, 2) if everything else first, last)
    of_group = {"name": topic, "partition_indexes": partitions}
    return draw.step(
        "OffsetFetch",
        version=version,
        group_id=draw.group(),
        topics=None if everything else [of_group],
        groups=[
            {"group_id": group, "member_id": None, "member_epoch": -1, "topics": None if everything else [of_group]}
            for group in draw.some(["$g:0", "$g:1", "$g:9"], 2)
        ],
        require_stable=draw.one(False, True),
    )


def delete_offsets(draw: Draw) -> Step:
    """Delete committed offsets."""
    partitions = [{"partition_index": each} for each in draw.partitions()]
    return draw.step("OffsetDelete", group_id=draw.group(), topics=[{"name": draw.topic(), "partitions": partitions}])


def delete_groups(draw: Draw) -> Step:
    """Delete groups."""
    return draw.step("DeleteGroups", groups_names=draw.some(["$g:0", "$g:0", "$g:1", "$g:9"], 2))


def describe_groups(draw: Draw) -> Step:
    """Describe groups."""
    return draw.step(
        "DescribeGroups",
        groups=draw.some(["$g:0", "$g:1", "$g:9", ""], 2),
        include_authorized_operations=draw.one(False, True),
    )


def list_groups(draw: Draw) -> Step:
    """List groups by state and type."""
    return draw.step(
        "ListGroups",
        states_filter=draw.some(["Stable", "empty", "Empty", "Dead", "nonsense"], 2) if draw.bad(0.5) else [],
        types_filter=draw.some(["classic", "Consumer", "nonsense"], 1) if draw.bad(0.3) else [],
    )


def find_coordinator(draw: Draw) -> Step:
    """Find coordinators."""
    return draw.step(
        "FindCoordinator",
        key=draw.group(),
        key_type=draw.usually(0, 1, 2, -1, share=0.8),
        coordinator_keys=draw.some(["$g:0", "$g:1", ""], 2) if draw.bad(0.9) else [],
    )

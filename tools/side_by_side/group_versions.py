"""A situation of `groups`: what does a coordinator answer in each version of each API, field by field?"""

from collections.abc import Mapping
from typing import Any

from harness.broker.wire import messages as m
from tools.side_by_side.group_script import CONSUMER, SUBSCRIPTION, TOPIC, Script

NEWEST: Mapping[Any, int] = {
    m.FindCoordinatorRequest: 6,
    m.JoinGroupRequest: 9,
    m.SyncGroupRequest: 5,
    m.HeartbeatRequest: 4,
    m.LeaveGroupRequest: 5,
    m.DescribeGroupsRequest: 5,
    m.ListGroupsRequest: 5,
    m.OffsetCommitRequest: 9,
    m.OffsetFetchRequest: 9,
}
"""The last version that Kafka 3.9 serves."""
OLDEST: Mapping[Any, int] = {m.OffsetCommitRequest: 2, m.OffsetFetchRequest: 1}
"""The first version of what has one above 0: kafka-python's messages begin there."""
ALL_TOPICS_SINCE = 2
"""Before that version OffsetFetch has to name topics."""
MEMBER_ID_REQUIRED = 79


async def every_version(s: Script) -> None:
    """The same life of a group in each version of the APIs, field by field."""
    for version in range(NEWEST[m.JoinGroupRequest] + 1):
        life = Script(s.transport, s.host, s.port, f"{s.group}-{version}")
        await _life_in_version(life, version)
        s.transcript += [f"{version}: {line}" for line in life.transcript]


async def _life_in_version(s: Script, version: int) -> None:
    """A member joins, asks for its assignment, is heard of, commits, is described, listed, and leaves."""

    async def say(request: Any) -> Any:
        kind = type(request)
        return await s.fields(request, min(max(version, OLDEST.get(kind, 0)), NEWEST[kind]))

    join = _join(s.group)
    await s.committed()  # it is found, and loaded
    await say(m.FindCoordinatorRequest(key=s.group, key_type=0, coordinator_keys=[s.group]))
    joined = await say(join)
    if joined.error_code == MEMBER_ID_REQUIRED:
        join.member_id = joined.member_id
        joined = await say(join)
    own = m.SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
    member: dict[str, Any] = {"group_id": s.group, "member_id": joined.member_id}
    agreed = member | {"protocol_type": CONSUMER, "protocol_name": "range"}
    await say(m.SyncGroupRequest(**agreed, generation_id=1, assignments=[own]))
    for generation in (1, 2):
        await say(m.HeartbeatRequest(**member, generation_id=generation))
    for generation in (1, 2):
        await say(_commit(member, generation))
    await say(_fetch(s.group, named=True))
    if version >= ALL_TOPICS_SINCE:
        await say(_fetch(s.group, named=False))
    await say(m.DescribeGroupsRequest(groups=[s.group, f"no-{s.group}"], include_authorized_operations=True))
    await s.list_in_version(min(version, NEWEST[m.ListGroupsRequest]))
    await say(m.LeaveGroupRequest(**member, members=[m.LeaveGroupRequest.MemberIdentity(member_id=joined.member_id)]))
    await s.log()


def _fetch(group: str, *, named: bool) -> m.OffsetFetchRequest:
    """Return a request for some topics of two groups, or for all; before version 8 it names the first group alone."""
    one, many = m.OffsetFetchRequest.OffsetFetchRequestTopic, m.OffsetFetchRequest.OffsetFetchRequestGroup
    topics = [one(name=TOPIC, partition_indexes=[0, 7])] if named else None
    of_group = [many.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0, 7])] if named else None
    groups = [many(group_id=name, topics=of_group) for name in (group, f"no-{group}")]
    return m.OffsetFetchRequest(group_id=group, topics=topics, groups=groups, require_stable=False)


def _join(group: str) -> m.JoinGroupRequest:
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
    return m.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type=CONSUMER,
        protocols=[protocol],
    )


def _commit(member: dict[str, Any], generation: int) -> m.OffsetCommitRequest:
    of_topic = m.OffsetCommitRequest.OffsetCommitRequestTopic
    partition = of_topic.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_leader_epoch=0, committed_metadata="word"
    )
    topics = [of_topic(name=TOPIC, partitions=[partition])]
    return m.OffsetCommitRequest(**member, generation_id_or_member_epoch=generation, topics=topics)

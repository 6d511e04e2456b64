"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: members, asking the broker that coordinates their group."""

from dataclasses import dataclass

from harness.broker.coordinator.effects import SyncAnswer
from harness.broker.coordinator.members import GroupMembers
from harness.broker.coordinator.requests import Join, Sync
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

_JoinedMember = JoinGroupResponse.JoinGroupResponseMember
_Left = LeaveGroupResponse.MemberResponse

_FIRST_JOIN_WITH_REBALANCE_TIMEOUT = 1
_FIRST_JOIN_WITH_KNOWN_ID = 4
_FIRST_JOIN_WITH_NULL_PROTOCOL = 7
_FIRST_JOIN_WITH_SKIPPED_ASSIGNMENT = 9
_FIRST_SYNC_WITH_PROTOCOL = 5
_FIRST_LEAVE_OF_SEVERAL = 3


@dataclass(slots=True)
class MemberHandlers:
    """Serves the requests of members."""

    members: GroupMembers

    async def join(self, request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
        """Answer JoinGroup when the generation begins."""
        version = context.api_version
        has_timeout = version >= _FIRST_JOIN_WITH_REBALANCE_TIMEOUT
        joined = await self.members.join(
            request.group_id,
            Join(
                member_id=request.member_id,
                instance_id=request.group_instance_id,
                client_id=context.client_id,
                client_host="/" + context.peer.rpartition(":")[0],
                rebalance_timeout_ms=request.rebalance_timeout_ms if has_timeout else request.session_timeout_ms,
                session_timeout_ms=request.session_timeout_ms,
                protocol_type=request.protocol_type,
                protocols=tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
                must_know_its_id=version >= _FIRST_JOIN_WITH_KNOWN_ID,
                may_skip_assignment=version >= _FIRST_JOIN_WITH_SKIPPED_ASSIGNMENT,
            ),
        )
        may_be_null = version >= _FIRST_JOIN_WITH_NULL_PROTOCOL
        return JoinGroupResponse(
            error_code=joined.error,
            generation_id=joined.generation,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol if may_be_null else joined.protocol or "",
            leader=joined.leader,
            skip_assignment=joined.skip_assignment,
            member_id=joined.member_id,
            members=[
                _JoinedMember(member_id=each.member_id, group_instance_id=each.instance_id, metadata=each.metadata)
                for each in joined.members
            ],
        )

    async def sync(self, request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
        """Answer SyncGroup when the leader has assigned."""
        named = request.protocol_type is not None and request.protocol_name is not None
        if context.api_version >= _FIRST_SYNC_WITH_PROTOCOL and not named:
            return _synced(SyncAnswer(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        sync = Sync(
            generation=request.generation_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            protocol_type=request.protocol_type,
            protocol=request.protocol_name,
            assignments={each.member_id: bytes(each.assignment) for each in request.assignments},
        )
        return _synced(await self.members.sync(request.group_id, sync))

    async def heartbeat(self, request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        """Answer Heartbeat."""
        error = self.members.heartbeat(
            request.group_id, request.generation_id, request.member_id, request.group_instance_id
        )
        return HeartbeatResponse(error_code=error)

    async def leave(self, request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
        """Answer LeaveGroup, of one member or of several (KIP-345)."""
        if context.api_version < _FIRST_LEAVE_OF_SEVERAL:
            error, errors = self.members.leave(request.group_id, [(request.member_id, None)])
            return LeaveGroupResponse(error_code=error or errors[0])
        leaving = [(each.member_id, each.group_instance_id) for each in request.members]
        error, errors = self.members.leave(request.group_id, leaving)
        return LeaveGroupResponse(
            error_code=error,
            members=[
                _Left(member_id=member_id, group_instance_id=instance_id, error_code=each)
                for (member_id, instance_id), each in zip(leaving, errors, strict=False)
            ],
        )


def _synced(answer: SyncAnswer) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=answer.error,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol,
        assignment=answer.assignment,
    )

"""DescribeGroups, ListGroups, DeleteGroups and OffsetDelete, for administrators of groups."""

from dataclasses import dataclass

from harness.broker.coordinator.expiration import Expiration
from harness.broker.coordinator.group import Group, GroupState
from harness.broker.coordinator.store import GroupStore
from harness.broker.metadata_cache import MetadataCache
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)

GROUP_OPERATIONS = frozenset({3, 6, 8})
"""Operations on a group (Kafka's `AclOperation`): read, delete, describe."""
CLASSIC = "classic"
"""The type of all groups here (KIP-848 brings others)."""

_Described = DescribeGroupsResponse.DescribedGroup
_Member = _Described.DescribedGroupMember
_Listed = ListGroupsResponse.ListedGroup
_Deleted = DeleteGroupsResponse.DeletableGroupResult
_OffsetTopic = OffsetDeleteResponse.OffsetDeleteResponseTopic
_OffsetPartition = _OffsetTopic.OffsetDeleteResponsePartition


@dataclass(slots=True)
class GroupAdminHandlers:
    """Serves the requests of administrators."""

    store: GroupStore
    expiration: Expiration
    metadata: MetadataCache

    async def describe(self, request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
        """Answer DescribeGroups; an unknown group is Dead."""
        described = [self._described(name) for name in request.groups]
        if request.include_authorized_operations:
            for each in described:
                if each.error_code == ErrorCode.NONE:
                    each.authorized_operations = set(GROUP_OPERATIONS)
        return DescribeGroupsResponse(groups=described)

    def _described(self, name: str) -> _Described:
        error = self.store.coordinator_error(name)
        known = self.store.group(name)
        if error or known is None:
            state = "" if error else GroupState.DEAD
            return _Described(
                error_code=error, group_id=name, group_state=state, protocol_type="", protocol_data="", members=[]
            )
        group = known.membership.group
        protocol = group.protocol if group.state is GroupState.STABLE else None
        return _Described(
            error_code=ErrorCode.NONE,
            group_id=name,
            group_state=group.state,
            protocol_type=group.protocol_type or "",
            protocol_data=protocol or "",
            members=_members(group, protocol),
        )

    async def list(self, request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
        """Answer ListGroups: this broker's groups in one of the named states and types, if any."""
        states = {state.lower() for state in request.states_filter or ()}
        types = {each.lower() for each in request.types_filter or ()}
        groups = [known.membership.group for _, known in self.store.groups()]
        return ListGroupsResponse(
            error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self.store.is_loading else ErrorCode.NONE,
            groups=[
                _Listed(
                    group_id=group.name,
                    protocol_type=group.protocol_type or "",
                    group_state=group.state,
                    group_type=CLASSIC,
                )
                for group in groups
                if (not states or group.state.lower() in states) and (not types or CLASSIC in types)
            ],
        )

    async def delete(self, request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
        """Answer DeleteGroups."""
        names = dict.fromkeys(request.groups_names)
        errors = {name: await self.expiration.delete_group(name) for name in names}
        return DeleteGroupsResponse(
            results=[_Deleted(group_id=name, error_code=error) for name, error in errors.items()]
        )

    async def delete_offsets(self, request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
        """Answer OffsetDelete; unknown partitions are refused one by one."""
        wanted = [(topic.name, each.partition_index) for topic in request.topics for each in topic.partitions]
        known = [each for each in wanted if self.metadata.partition(*each) is not None]
        error, errors = await self.expiration.delete_offsets(request.group_id, known)
        if error:
            return OffsetDeleteResponse(error_code=error, topics=[])
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return OffsetDeleteResponse(
            error_code=ErrorCode.NONE,
            topics=[
                _OffsetTopic(
                    name=topic.name,
                    partitions=[
                        _OffsetPartition(
                            partition_index=each.partition_index,
                            error_code=errors.get((topic.name, each.partition_index), unknown),
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )


def _members(group: Group, protocol: str | None) -> list[_Member]:
    """Describe the members; metadata and assignments only of a stable group."""
    return [
        _Member(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata(protocol) if protocol is not None else b"",
            member_assignment=member.assignment if protocol is not None else b"",
        )
        for member in group.members.values()
    ]

"""The APIs of the broker, their versions, and their handlers. One row an API.

A new API is a row here, a handler (a method of a class beside this module, which has the parts that it uses), and the
imports of its messages in `harness.broker.wire.messages`. Dispatch, ApiVersions, the fuzzer and the tests of the wire
read this table.

The versions of client APIs end with the last one of Kafka 3.9 (`BROKER_API_VERSIONS[3, 9]` of kafka-python's
`kafka.protocol.broker_version_data`), or below the first that needs topic ids, which Kafka's brokers do not have either
under the replication protocol of 2.5. They begin with 0, or where its messages begin (`validVersions`). They are not to
be trimmed further: clients infer what a broker can do from them, and kafka-python even the record format.
"""

from types import FunctionType, MethodType

from harness.broker.handlers.acls import AclHandlers
from harness.broker.handlers.admin import AdminHandlers
from harness.broker.handlers.configs import ConfigHandlers
from harness.broker.handlers.control import ControlHandlers
from harness.broker.handlers.data import DataHandlers
from harness.broker.handlers.group_admin import GroupAdminHandlers
from harness.broker.handlers.groups import GroupHandlers
from harness.broker.handlers.leadership import LeadershipHandlers
from harness.broker.handlers.log_dirs import LogDirHandlers
from harness.broker.handlers.members import MemberHandlers
from harness.broker.handlers.metadata import MetadataHandlers
from harness.broker.handlers.producer_ids import ProducerIdHandlers
from harness.broker.handlers.topics import TopicHandlers
from harness.broker.handlers.transaction_logs import TransactionLogHandlers
from harness.broker.handlers.transactions import TransactionHandlers
from harness.broker.wire import messages as m
from harness.broker.wire.dispatch import Api, Dispatcher, Handler
from harness.broker.wire.messages import ApiKey
from harness.broker.wire.versions import versions

_ROWS = (
    # librdkafka up to 2.11 does not compress when version 0 is missing (KAFKA-18659); Kafka 4 refuses 0 to 2 as well.
    Api.of(m.ProduceRequest, m.ProduceResponse, versions(0, 11, served_from=3), DataHandlers.produce),
    # Older consumers learn from a response that they are refused, and from a missing version nothing.
    Api.of(m.FetchRequest, m.FetchResponse, versions(0, 12, served_from=4), DataHandlers.fetch),
    Api.of(m.ListOffsetsRequest, m.ListOffsetsResponse, versions(1, 9), DataHandlers.list_offsets),
    Api.of(m.MetadataRequest, m.MetadataResponse, versions(0, 9), MetadataHandlers.describe),
    # Requests without a broker epoch cannot be fenced (KIP-380), so older controllers are not served.
    Api.of(
        m.LeaderAndIsrRequest, m.LeaderAndIsrResponse, versions(0, 4, served_from=4), ControlHandlers.leader_and_isr
    ),
    Api.of(m.StopReplicaRequest, m.StopReplicaResponse, versions(0, 3, served_from=2), ControlHandlers.stop_replica),
    Api.of(
        m.UpdateMetadataRequest,
        m.UpdateMetadataResponse,
        versions(0, 6, served_from=6),
        ControlHandlers.update_metadata,
    ),
    Api.of(
        m.ControlledShutdownRequest,
        m.ControlledShutdownResponse,
        versions(1, 3, served_from=3),
        AdminHandlers.controlled_shutdown,
    ),
    Api.of(m.OffsetCommitRequest, m.OffsetCommitResponse, versions(2, 9), GroupHandlers.commit),
    Api.of(m.OffsetFetchRequest, m.OffsetFetchResponse, versions(1, 9), GroupHandlers.fetch),
    Api.of(m.FindCoordinatorRequest, m.FindCoordinatorResponse, versions(0, 6), MetadataHandlers.find_coordinator),
    Api.of(m.JoinGroupRequest, m.JoinGroupResponse, versions(0, 9), MemberHandlers.join),
    Api.of(m.HeartbeatRequest, m.HeartbeatResponse, versions(0, 4), MemberHandlers.heartbeat),
    Api.of(m.LeaveGroupRequest, m.LeaveGroupResponse, versions(0, 5), MemberHandlers.leave),
    Api.of(m.SyncGroupRequest, m.SyncGroupResponse, versions(0, 5), MemberHandlers.sync),
    Api.of(m.DescribeGroupsRequest, m.DescribeGroupsResponse, versions(0, 5), GroupAdminHandlers.describe),
    Api.of(m.ListGroupsRequest, m.ListGroupsResponse, versions(0, 5), GroupAdminHandlers.list),
    Api.of(m.ApiVersionsRequest, m.ApiVersionsResponse, versions(0, 4), Dispatcher.api_versions),
    Api.of(m.CreateTopicsRequest, m.CreateTopicsResponse, versions(2, 6), AdminHandlers.create_topics),
    Api.of(m.DeleteTopicsRequest, m.DeleteTopicsResponse, versions(1, 5), TopicHandlers.delete_topics),
    Api.of(m.DeleteRecordsRequest, m.DeleteRecordsResponse, versions(0, 2), LogDirHandlers.delete_records),
    Api.of(m.InitProducerIdRequest, m.InitProducerIdResponse, versions(0, 5), ProducerIdHandlers.init_producer_id),
    Api.of(
        m.AddPartitionsToTxnRequest,
        m.AddPartitionsToTxnResponse,
        versions(0, 5),
        TransactionHandlers.add_partitions,
    ),
    Api.of(m.AddOffsetsToTxnRequest, m.AddOffsetsToTxnResponse, versions(0, 4), TransactionHandlers.add_offsets),
    Api.of(m.EndTxnRequest, m.EndTxnResponse, versions(0, 4), TransactionHandlers.end),
    Api.of(m.TxnOffsetCommitRequest, m.TxnOffsetCommitResponse, versions(0, 4), GroupHandlers.commit_in_transaction),
    Api.of(m.WriteTxnMarkersRequest, m.WriteTxnMarkersResponse, versions(0, 1), TransactionLogHandlers.write_markers),
    Api.of(
        m.OffsetForLeaderEpochRequest,
        m.OffsetForLeaderEpochResponse,
        versions(0, 4),
        DataHandlers.offset_for_leader_epoch,
    ),
    # The messages have no version 0.
    Api.of(m.DescribeAclsRequest, m.DescribeAclsResponse, versions(1, 3), AclHandlers.describe),
    Api.of(m.CreateAclsRequest, m.CreateAclsResponse, versions(1, 3), AclHandlers.create),
    Api.of(m.DeleteAclsRequest, m.DeleteAclsResponse, versions(1, 3), AclHandlers.delete),
    Api.of(m.DescribeConfigsRequest, m.DescribeConfigsResponse, versions(1, 4), ConfigHandlers.describe),
    Api.of(m.AlterConfigsRequest, m.AlterConfigsResponse, versions(0, 2), ConfigHandlers.alter),
    Api.of(
        m.AlterReplicaLogDirsRequest,
        m.AlterReplicaLogDirsResponse,
        versions(1, 2),
        LogDirHandlers.alter_replicas,
    ),
    Api.of(m.DescribeLogDirsRequest, m.DescribeLogDirsResponse, versions(0, 4), LogDirHandlers.describe),
    Api.of(m.CreatePartitionsRequest, m.CreatePartitionsResponse, versions(0, 3), TopicHandlers.create_partitions),
    Api.of(
        m.IncrementalAlterConfigsRequest,
        m.IncrementalAlterConfigsResponse,
        versions(0, 1),
        ConfigHandlers.incremental_alter,
    ),
    Api.of(m.DeleteGroupsRequest, m.DeleteGroupsResponse, versions(0, 2), GroupAdminHandlers.delete),
    Api.of(m.ElectLeadersRequest, m.ElectLeadersResponse, versions(0, 2), LeadershipHandlers.elect_leaders),
    Api.of(
        m.AlterPartitionReassignmentsRequest,
        m.AlterPartitionReassignmentsResponse,
        versions(0, 0),
        LeadershipHandlers.alter_reassignments,
    ),
    Api.of(
        m.ListPartitionReassignmentsRequest,
        m.ListPartitionReassignmentsResponse,
        versions(0, 0),
        LeadershipHandlers.list_reassignments,
    ),
    Api.of(m.OffsetDeleteRequest, m.OffsetDeleteResponse, versions(0, 0), GroupAdminHandlers.delete_offsets),
    # Kafka has both from 2.8 on; Java's tools ask for them.
    Api.of(m.DescribeClusterRequest, m.DescribeClusterResponse, versions(0, 1), MetadataHandlers.describe_cluster),
    Api.of(
        m.DescribeProducersRequest,
        m.DescribeProducersResponse,
        versions(0, 0),
        TransactionLogHandlers.describe_producers,
    ),
    Api.of(
        m.DescribeTransactionsRequest,
        m.DescribeTransactionsResponse,
        versions(0, 0),
        TransactionHandlers.describe,
    ),
    Api.of(m.ListTransactionsRequest, m.ListTransactionsResponse, versions(0, 1), TransactionHandlers.list),
)

APIS: dict[ApiKey, Api] = {api.key: api for api in _ROWS}
"""The table by the APIs' keys."""


def bound(*objects: object) -> dict[ApiKey, Handler]:
    """Return the handler of every API that a method of one of these objects serves."""
    owners: dict[object, object] = {
        method: each for each in objects for method in vars(type(each)).values() if isinstance(method, FunctionType)
    }
    return {api.key: MethodType(api.handler, owners[api.handler]) for api in _ROWS if api.handler in owners}

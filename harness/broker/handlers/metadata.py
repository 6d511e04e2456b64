"""Metadata, DescribeCluster and FindCoordinator: live brokers, leaders of partitions, and coordinators.

All of it is from the metadata cache.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.broker.administration.topic_creation import TopicCreator
from harness.broker.configs.config import BrokerConfig
from harness.broker.coordinator.placement import partition_of
from harness.broker.metadata_cache import MetadataCache, PartitionInfo
from harness.broker.topics import INTERNAL_TOPICS, TopicRefused, check_name
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from harness.events import NO_LEADER
from harness.values import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

BROKER_ENDPOINTS = 1
CONTROLLER_ENDPOINTS = 2
CLUSTER_OPERATIONS = frozenset({5, 7, 8, 9, 10, 11, 12})
"""Operations on a cluster (Kafka's `AclOperation`): create, alter, describe, act, configure, idempotent write."""
TOPIC_OPERATIONS = frozenset({3, 4, 5, 6, 7, 8, 10, 11})
"""The same on a topic: read, write, create, delete, alter, describe, and describe and alter its configuration."""
GROUP_KEY = 0
TRANSACTION_KEY = 1
INVALID_REQUEST_MESSAGE = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
"""Kafka's message of INVALID_REQUEST."""

_Topic = MetadataResponse.MetadataResponseTopic
_Partition = _Topic.MetadataResponsePartition
_Broker = MetadataResponse.MetadataResponseBroker
_ClusterBroker = DescribeClusterResponse.DescribeClusterBroker
_Coordinator = FindCoordinatorResponse.Coordinator

_FIRST_FIND_COORDINATOR_WITH_KEYS = 4
_FIND_COORDINATOR_MESSAGES: Mapping[int, str] = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
}
"""Kafka's messages with these, for a request with one key; one with several keys gets none."""


@dataclass(slots=True)
class MetadataHandlers:
    """Serves the controller's last UpdateMetadata, of any age."""

    config: BrokerConfig
    cluster_id: str
    metadata: MetadataCache
    creator: TopicCreator
    offsets_partitions: int
    """Of `__consumer_offsets`."""
    state_partitions: int
    """Of `__transaction_state`."""

    async def describe(self, request: MetadataRequest, context: RequestContext) -> MetadataResponse:
        """Answer Metadata; an unknown topic is created if both sides allow it."""
        version = context.api_version
        names = request.topics
        if names is None or (version == 0 and not names):
            wanted = self.metadata.topics()
        else:
            wanted = list(dict.fromkeys(topic.name or "" for topic in names))
        may_create = self.config["auto.create.topics.enable"] and request.allow_auto_topic_creation
        answer = MetadataResponse(
            brokers=[
                _Broker(node_id=broker.broker_id, host=host, port=port, rack=broker.rack)
                for broker, (host, port) in self.metadata.reached_by(context.listener)
            ],
            cluster_id=self.cluster_id,
            controller_id=self.metadata.controller_id,
            topics=[await self._topic(name, context, may_create=may_create) for name in wanted],
        )
        if request.include_cluster_authorized_operations:
            answer.authorized_operations = set(CLUSTER_OPERATIONS)
        if request.include_topic_authorized_operations:
            for topic in answer.topics:
                topic.authorized_operations = set(TOPIC_OPERATIONS)
        return answer

    async def describe_cluster(
        self, request: DescribeClusterRequest, context: RequestContext
    ) -> DescribeClusterResponse:
        """Answer DescribeCluster (KIP-700); this broker is no controller of a quorum, which v1 can ask for."""
        if request.endpoint_type != BROKER_ENDPOINTS:
            known = request.endpoint_type == CONTROLLER_ENDPOINTS
            return DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                error_message=f"sent to a broker, but asks for endpoints of type {request.endpoint_type}",
                cluster_id="",
                brokers=[],
            )
        answer = DescribeClusterResponse(
            error_code=ErrorCode.NONE,
            endpoint_type=BROKER_ENDPOINTS,
            cluster_id=self.cluster_id,
            controller_id=self.metadata.controller_id,
            brokers=[
                _ClusterBroker(broker_id=broker.broker_id, host=host, port=port, rack=broker.rack)
                for broker, (host, port) in self.metadata.reached_by(context.listener)
            ],
        )
        if request.include_cluster_authorized_operations:
            answer.authorized_operations = set(CLUSTER_OPERATIONS)
        return answer

    async def find_coordinator(
        self, request: FindCoordinatorRequest, context: RequestContext
    ) -> FindCoordinatorResponse:
        """Answer FindCoordinator, for one key or several; the first one of its kind creates its topic."""
        if context.api_version >= _FIRST_FIND_COORDINATOR_WITH_KEYS:
            keys = request.coordinator_keys
            return FindCoordinatorResponse(
                coordinators=[await self._coordinator(key, request.key_type, context) for key in keys]
            )
        only = await self._coordinator(request.key, request.key_type, context)
        return FindCoordinatorResponse(
            error_code=only.error_code,
            error_message=only.error_message or _FIND_COORDINATOR_MESSAGES.get(only.error_code),
            node_id=only.node_id,
            host=only.host,
            port=only.port,
        )

    async def _coordinator(self, key: str, key_type: int, context: RequestContext) -> _Coordinator:
        """Return the coordinator of a key."""
        if key_type == GROUP_KEY:
            topic, partitions = OFFSETS_TOPIC, self.offsets_partitions
        elif key_type == TRANSACTION_KEY:
            topic, partitions = TRANSACTIONS_TOPIC, self.state_partitions
        else:
            return _no_coordinator(key, ErrorCode.INVALID_REQUEST, INVALID_REQUEST_MESSAGE)
        if not self.metadata.partitions(topic):
            await self.creator.create_internal(topic)
        info = self.metadata.partition(topic, partition_of(key, partitions))
        address = self.metadata.leader_endpoint(info.leader, context.listener) if info else None
        if info is None or address is None:
            return _no_coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        host, port = address
        return _Coordinator(
            key=key, error_code=ErrorCode.NONE, error_message="", node_id=info.leader, host=host, port=port
        )

    async def _topic(self, name: str, context: RequestContext, *, may_create: bool) -> _Topic:
        partitions = self.metadata.partitions(name)
        error = ErrorCode.NONE
        if not partitions:
            error = await self.creator.create_on_demand(name) if may_create else _why_unknown(name)
        return _Topic(
            error_code=error,
            name=name,
            is_internal=name in INTERNAL_TOPICS,
            partitions=[self._partition(info, context) for info in partitions],
        )

    def _partition(self, info: PartitionInfo, context: RequestContext) -> _Partition:
        """Describe a partition; without a reachable leader it has an error, and all other fields."""
        version = context.api_version
        error, leader = self._leader(info, context)
        replicas, isr = list(info.replicas), list(info.isr)
        if version == 0:
            replicas, isr = ([broker for broker in ids if self.metadata.is_alive(broker)] for ids in (replicas, isr))
            if error is ErrorCode.NONE and len(replicas) + len(isr) < len(info.replicas) + len(info.isr):
                error = ErrorCode.REPLICA_NOT_AVAILABLE
        return _Partition(
            error_code=error,
            partition_index=info.partition,
            leader_id=leader,
            leader_epoch=info.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=list(info.offline_replicas),
        )

    def _leader(self, info: PartitionInfo, context: RequestContext) -> tuple[ErrorCode, int]:
        if self.metadata.leader_endpoint(info.leader, context.listener) is not None:
            return ErrorCode.NONE, info.leader
        alive = self.metadata.is_alive(info.leader)
        missing_listener = alive and context.api_version >= 6
        return (ErrorCode.LISTENER_NOT_FOUND if missing_listener else ErrorCode.LEADER_NOT_AVAILABLE), NO_LEADER


def _why_unknown(topic: str) -> ErrorCode:
    """Return the error for a topic that does not exist, or can never exist."""
    try:
        check_name(topic)
    except TopicRefused as refusal:
        return refusal.error
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _no_coordinator(key: str, error: ErrorCode, message: str = "") -> _Coordinator:
    return _Coordinator(key=key, error_code=error, error_message=message, node_id=NO_LEADER, host="", port=-1)

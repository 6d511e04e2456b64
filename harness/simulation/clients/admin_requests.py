"""The messages in which an administrator asks for each action, the brokers that it asks, and the errors in answers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from harness.broker.administration.config_changes import Operation as ConfigOperation
from harness.broker.administration.config_changes import Resource
from harness.broker.controller.replica_elections import ElectionKind
from harness.broker.wire import messages as m
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import NO_GENERATION
from harness.broker.wire.transport import Message
from harness.client_rules.administering import Action, Request

FIRST_FETCH_OF_ALL = 2
"""The version of OffsetFetch since which a request that names no topic asks for all of them."""
FINE = frozenset({ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED})


class Addressee(Enum):
    """Which broker a request is for."""

    ANY = auto()
    CONTROLLER = auto()
    COORDINATOR = auto()
    """Of the group."""
    TRANSACTION_COORDINATOR = auto()
    """Of the transactional id that is named as the group is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a client knows when it sends a request."""

    broker_id: int
    """That the request goes to; -1 for the coordinator."""
    brokers: Sequence[int]
    directories: Sequence[str] = ()
    """Data directories of that broker, of which one is drawn; known where a replica is to be moved."""
    timeout_ms: int
    version: int
    """Of the request."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """How one action is asked for."""

    addressee: Addressee
    versions: Sequence[int]
    """Of the request, one of which is drawn."""
    message: Callable[[Request, Asked], Message]
    codes: Callable[[Message], Iterable[int]]
    """The errors that an answer holds."""

    def version(self, request: Request) -> int:
        """Return the version that a request is sent in."""
        return self.versions[int(request.lucky * 10_000) % len(self.versions)]


# --- topics ---


def _create_topic(request: Request, asked: Asked) -> Message:
    topic = m.CreateTopicsRequest.CreatableTopic
    config = topic.CreatableTopicConfig
    wanted = topic(
        name=request.topic,
        num_partitions=request.partitions,
        replication_factor=min(request.replicas, len(asked.brokers)),
        assignments=[],
        configs=[config(name=name, value=value) for name, value in sorted(request.config.items())],
    )
    return m.CreateTopicsRequest(topics=[wanted], timeout_ms=asked.timeout_ms, validate_only=request.tried)


def _add_partitions(request: Request, asked: Asked) -> Message:
    wanted = m.CreatePartitionsRequest.CreatePartitionsTopic(
        name=request.topic, count=request.partitions, assignments=None
    )
    return m.CreatePartitionsRequest(topics=[wanted], timeout_ms=asked.timeout_ms, validate_only=request.tried)


def _delete_topic(request: Request, asked: Asked) -> Message:
    return m.DeleteTopicsRequest(topic_names=[request.topic], timeout_ms=asked.timeout_ms)


# --- leaders and replicas ---


def _elect_leaders(request: Request, asked: Asked) -> Message:
    named = m.ElectLeadersRequest.TopicPartitions(topic=request.topic, partitions=[request.partition])
    return m.ElectLeadersRequest(
        election_type=ElectionKind.PREFERRED,
        topic_partitions=[named] if request.topic else None,
        timeout_ms=asked.timeout_ms,
    )


def _reassign(request: Request, asked: Asked) -> Message:
    first = int(request.lucky * 1000)
    targets = [asked.brokers[(first + each) % len(asked.brokers)] for each in range(request.replicas)]
    return _reassignment(request, asked, list(dict.fromkeys(targets)))


def _cancel_reassignment(request: Request, asked: Asked) -> Message:
    return _reassignment(request, asked, None)


def _reassignment(request: Request, asked: Asked, replicas: list[int] | None) -> Message:
    topic = m.AlterPartitionReassignmentsRequest.ReassignableTopic
    wish = topic.ReassignablePartition(partition_index=request.partition, replicas=replicas)
    return m.AlterPartitionReassignmentsRequest(
        timeout_ms=asked.timeout_ms, topics=[topic(name=request.topic, partitions=[wish])]
    )


def _list_reassignments(request: Request, asked: Asked) -> Message:
    return m.ListPartitionReassignmentsRequest(timeout_ms=asked.timeout_ms, topics=None)


# --- configurations ---


def _configured(resource: Resource, name: str, request: Request) -> Message:
    of_resource = m.IncrementalAlterConfigsRequest.AlterConfigsResource
    sets = ConfigOperation.APPEND if request.appends else ConfigOperation.SET
    configs = [
        of_resource.AlterableConfig(
            name=key,
            config_operation=ConfigOperation.DELETE if value is None else sets,
            value=value,
        )
        for key, value in sorted(request.config.items())
    ]
    changed = of_resource(resource_type=resource, resource_name=name, configs=configs)
    return m.IncrementalAlterConfigsRequest(resources=[changed], validate_only=request.tried)


def _configure_topic(request: Request, asked: Asked) -> Message:
    return _configured(Resource.TOPIC, request.topic, request)


def _configure_broker(request: Request, asked: Asked) -> Message:
    return _configured(Resource.BROKER, str(asked.broker_id), request)


def _configure_brokers(request: Request, asked: Asked) -> Message:
    return _configured(Resource.BROKER, "", request)


def _replace_config(request: Request, asked: Asked) -> Message:
    of_resource = m.AlterConfigsRequest.AlterConfigsResource
    configs = [of_resource.AlterableConfig(name=key, value=value) for key, value in sorted(request.config.items())]
    changed = of_resource(resource_type=Resource.TOPIC, resource_name=request.topic, configs=configs)
    return m.AlterConfigsRequest(resources=[changed], validate_only=request.tried)


def _described(resource: Resource, name: str) -> Message:
    described = m.DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=resource, resource_name=name, configuration_keys=None
    )
    return m.DescribeConfigsRequest(resources=[described], include_synonyms=True)


def _describe_topic(request: Request, asked: Asked) -> Message:
    return _described(Resource.TOPIC, request.topic)


def _describe_broker(request: Request, asked: Asked) -> Message:
    return _described(Resource.BROKER, str(asked.broker_id) if request.lucky < 0.5 else "")


def _describe_log_dirs(request: Request, asked: Asked) -> Message:
    return m.DescribeLogDirsRequest(topics=None)


def _move_replica(request: Request, asked: Asked) -> Message:
    directory = m.AlterReplicaLogDirsRequest.AlterReplicaLogDir
    path = asked.directories[int(request.lucky * 1000) % len(asked.directories)]
    topic = directory.AlterReplicaLogDirTopic(name=request.topic, partitions=[request.partition])
    return m.AlterReplicaLogDirsRequest(dirs=[directory(path=path, topics=[topic])])


def _describe_cluster(request: Request, asked: Asked) -> Message:
    return m.DescribeClusterRequest(include_cluster_authorized_operations=False)


# --- groups ---


def _commit_offset(request: Request, asked: Asked) -> Message:
    topic = m.OffsetCommitRequest.OffsetCommitRequestTopic
    committed = topic.OffsetCommitRequestPartition(
        partition_index=request.partition, committed_offset=request.offset, committed_metadata=""
    )
    return m.OffsetCommitRequest(
        group_id=request.group,
        generation_id_or_member_epoch=NO_GENERATION,
        member_id="",
        retention_time_ms=request.retention_ms,
        topics=[topic(name=request.topic, partitions=[committed])],
    )


def _delete_offset(request: Request, asked: Asked) -> Message:
    topic = m.OffsetDeleteRequest.OffsetDeleteRequestTopic
    deleted = topic.OffsetDeleteRequestPartition(partition_index=request.partition)
    return m.OffsetDeleteRequest(group_id=request.group, topics=[topic(name=request.topic, partitions=[deleted])])


def _delete_group(request: Request, asked: Asked) -> Message:
    return m.DeleteGroupsRequest(groups_names=[request.group])


def _fetch_offsets(request: Request, asked: Asked) -> Message:
    topic = m.OffsetFetchRequest.OffsetFetchRequestTopic
    named = [topic(name=request.topic, partition_indexes=[request.partition])]
    asks_for_all = asked.version >= FIRST_FETCH_OF_ALL and request.offset % 2 == 0
    return m.OffsetFetchRequest(group_id=request.group, topics=None if asks_for_all else named)


def _list_groups(request: Request, asked: Asked) -> Message:
    return m.ListGroupsRequest()


def _describe_groups(request: Request, asked: Asked) -> Message:
    return m.DescribeGroupsRequest(groups=[request.group])


# --- transactions ---


def _list_transactions(request: Request, asked: Asked) -> Message:
    return m.ListTransactionsRequest(state_filters=[], producer_id_filters=[])


def _describe_transactions(request: Request, asked: Asked) -> Message:
    return m.DescribeTransactionsRequest(transactional_ids=[request.group])


def _init_producer(request: Request, asked: Asked) -> Message:
    return m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=asked.timeout_ms)


# --- answers ---


def _one_error(answer: Message) -> Iterable[int]:
    return [answer.error_code]


def _of_topics(answer: Message) -> Iterable[int]:
    return [topic.error_code for topic in answer.topics]


def _of_results(answer: Message) -> Iterable[int]:
    return [result.error_code for result in answer.results]


def _of_moves(answer: Message) -> Iterable[int]:
    return [each.error_code for topic in answer.results for each in topic.partitions]


def _of_responses(answer: Message) -> Iterable[int]:
    return [response.error_code for response in answer.responses]


def _of_partitions(answer: Message) -> Iterable[int]:
    return [each.error_code for topic in answer.topics for each in topic.partitions]


def _of_elections(answer: Message) -> Iterable[int]:
    each = (partition for topic in answer.replica_election_results for partition in topic.partition_result)
    return [answer.error_code, *(partition.error_code for partition in each)]


def _of_reassignments(answer: Message) -> Iterable[int]:
    return [answer.error_code, *(each.error_code for topic in answer.responses for each in topic.partitions)]


def _of_offsets(answer: Message) -> Iterable[int]:
    return [answer.error_code, *_of_partitions(answer)]


def _of_groups(answer: Message) -> Iterable[int]:
    return [group.error_code for group in answer.groups]


def _of_transactions(answer: Message) -> Iterable[int]:
    return [each.error_code for each in answer.transaction_states]


_ANY, _CONTROLLER, _COORDINATOR, _TRANSACTION_COORDINATOR = Addressee
EXCHANGES: Mapping[Action, Exchange] = {
    Action.CREATE_TOPIC: Exchange(_CONTROLLER, (4,), _create_topic, _of_topics),
    Action.ADD_PARTITIONS: Exchange(_CONTROLLER, (1,), _add_partitions, _of_results),
    Action.DELETE_TOPIC: Exchange(_CONTROLLER, (3,), _delete_topic, _of_responses),
    Action.CONFIGURE_TOPIC: Exchange(_ANY, (0,), _configure_topic, _of_responses),
    Action.CONFIGURE_BROKER: Exchange(_ANY, (0,), _configure_broker, _of_responses),
    Action.CONFIGURE_BROKERS: Exchange(_ANY, (0,), _configure_brokers, _of_responses),
    Action.REPLACE_CONFIG: Exchange(_ANY, (1,), _replace_config, _of_responses),
    Action.DESCRIBE_TOPIC: Exchange(_ANY, (1,), _describe_topic, _of_results),
    Action.DESCRIBE_BROKER: Exchange(_ANY, (1,), _describe_broker, _of_results),
    Action.DESCRIBE_LOG_DIRS: Exchange(_ANY, (1,), _describe_log_dirs, _of_results),
    Action.DESCRIBE_CLUSTER: Exchange(_ANY, (0,), _describe_cluster, _one_error),
    Action.MOVE_REPLICA: Exchange(_ANY, (1,), _move_replica, _of_moves),
    Action.ELECT_LEADERS: Exchange(_CONTROLLER, (1,), _elect_leaders, _of_elections),
    Action.REASSIGN: Exchange(_CONTROLLER, (0,), _reassign, _of_reassignments),
    Action.CANCEL_REASSIGNMENT: Exchange(_CONTROLLER, (0,), _cancel_reassignment, _of_reassignments),
    Action.LIST_REASSIGNMENTS: Exchange(_CONTROLLER, (0,), _list_reassignments, _one_error),
    Action.COMMIT_OFFSET: Exchange(_COORDINATOR, (4,), _commit_offset, _of_partitions),
    Action.DELETE_OFFSET: Exchange(_COORDINATOR, (0,), _delete_offset, _of_offsets),
    Action.DELETE_GROUP: Exchange(_COORDINATOR, (1,), _delete_group, _of_results),
    Action.FETCH_OFFSETS: Exchange(_COORDINATOR, (1, 2, 5, 7), _fetch_offsets, _of_offsets),
    Action.LIST_GROUPS: Exchange(_ANY, (0, 2, 4), _list_groups, _one_error),
    Action.DESCRIBE_GROUPS: Exchange(_COORDINATOR, (0, 3, 5), _describe_groups, _of_groups),
    Action.LIST_TRANSACTIONS: Exchange(_ANY, (0,), _list_transactions, _one_error),
    Action.DESCRIBE_TRANSACTIONS: Exchange(_TRANSACTION_COORDINATOR, (0,), _describe_transactions, _of_transactions),
    Action.INIT_PRODUCER: Exchange(_ANY, (0, 1, 3, 4), _init_producer, _one_error),
}
"""Of all actions but those within a transaction.

OffsetCommit has version 4, the last one that says for how long an offset is kept (KIP-211).
"""

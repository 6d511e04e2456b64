"""An administrator on librdkafka: one request after the other, of those that librdkafka can make."""

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from harness.client_rules.administering import Action, Administering, Request
from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter, now_ns
from harness.store.recording import Recorder
from kafka_chaos.workloads.clients.errors import described

Answers = Iterable["Future[Any]"]
_UNDECIDED = frozenset({KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.REQUEST_TIMED_OUT})
"""After these a request may have been carried out."""


def administer(plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
    """Make one request after the other until `stop` is set."""
    recorder = Recorder(plan.process, operations.write, now_ns, plan.first_index)
    rules = Administering(plan, recorder, CALLS.keys())
    admin = AdminClient({"bootstrap.servers": plan.bootstrap_servers, "client.id": plan.process})
    timeout_s = max(1.0, plan.parameters["request_timeout_ms"] / 1000)
    while not stop.is_set():
        request = rules.next()
        try:
            for answer in CALLS[request.action](admin, request, timeout_s):
                _raise_error_within(answer.result(timeout=2 * timeout_s))
            rules.done(request)
        except KafkaException as error:
            code, text = error.args[0].code(), described(error.args[0])
            if code in _UNDECIDED:
                rules.unanswered(request, text)
            else:
                rules.refused(request, text, code)
        except TimeoutError:
            rules.unanswered(request, f"no answer within {2 * timeout_s:g} s")
        stop.wait(rules.pause_s)


def _raise_error_within(result: Any) -> None:
    """Raise the first error that an answer holds of one of several partitions."""
    if isinstance(result, ConsumerGroupTopicPartitions):
        errors = [KafkaException(each.error) for each in result.topic_partitions or () if each.error is not None]
    elif isinstance(result, Mapping):
        errors = [each for each in result.values() if isinstance(each, KafkaException)]
    else:
        errors = []
    for error in errors:
        if error.args[0].code() != KafkaError.ELECTION_NOT_NEEDED:
            raise error


def _create_topic(admin: AdminClient, request: Request, timeout_s: float) -> Answers:
    topic = NewTopic(
        request.topic,
        num_partitions=request.partitions,
        replication_factor=request.replicas,
        config={name: value for name, value in request.config.items() if value is not None},
    )
    within_s = _within_s(request, timeout_s)
    return admin.create_topics(
        [topic], request_timeout=timeout_s, operation_timeout=within_s, validate_only=request.tried
    ).values()


def _add_partitions(admin: AdminClient, request: Request, timeout_s: float) -> Answers:
    wanted = NewPartitions(request.topic, request.partitions)
    within_s = _within_s(request, timeout_s)
    return admin.create_partitions(
        [wanted], request_timeout=timeout_s, operation_timeout=within_s, validate_only=request.tried
    ).values()


def _delete_topic(admin: AdminClient, request: Request, timeout_s: float) -> Answers:
    within_s = _within_s(request, timeout_s)
    return admin.delete_topics([request.topic], request_timeout=timeout_s, operation_timeout=within_s).values()


def _within_s(request: Request, timeout_s: float) -> float:
    """Return for how long the controller may wait until brokers know of the change."""
    return timeout_s if request.timeout_ms is None else request.timeout_ms / 1000


def _configured(admin: AdminClient, kind: ResourceType, name: str, request: Request, timeout_s: float) -> Answers:
    sets = AlterConfigOpType.APPEND if request.appends else AlterConfigOpType.SET
    entries = [
        ConfigEntry(
            key,
            value,
            incremental_operation=AlterConfigOpType.DELETE if value is None else sets,
        )
        for key, value in sorted(request.config.items())
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    answers = admin.incremental_alter_configs([resource], request_timeout=timeout_s, validate_only=request.tried)
    return answers.values()


def _configure_topic(admin: AdminClient, request: Request, timeout_s: float) -> Answers:
    return _configured(admin, ResourceType.TOPIC, request.topic, request, timeout_s)


def _configure_broker(admin: AdminClient, request: Request, timeout_s: float) -> Answers:
    return _configured(admin, ResourceType.BROKER, _some_broker(admin, request, timeout_s), request, timeout_s)


def _some_broker(admin: AdminClient, request: Request, timeout_s: float) -> str:
    brokers = sorted(admin.list_topics(timeout=timeout_s).brokers)
    return str(brokers[int(request.lucky * 1000) % len(brokers)])


def _describe_topic(admin: AdminClient, request: Request, timeout_s: float) -> Answers:
    resource = ConfigResource(ResourceType.TOPIC, request.topic)
    return admin.describe_configs([resource], request_timeout=timeout_s).values()


def _describe_broker(admin: AdminClient, request: Request, timeout_s: float) -> Answers:
    resource = ConfigResource(ResourceType.BROKER, _some_broker(admin, request, timeout_s))
    return admin.describe_configs([resource], request_timeout=timeout_s).values()


def _describe_cluster(admin: AdminClient, request: Request, timeout_s: float) -> Answers:
    return [admin.describe_cluster(request_timeout=timeout_s)]


def _elect_leaders(admin: AdminClient, request: Request, timeout_s: float) -> Answers:
    # With a time-out of the request confluent-kafka 2.16 raises SystemError.
    partitions = [TopicPartition(request.topic, request.partition)] if request.topic else None
    return [admin.elect_leaders(ElectionType.PREFERRED, partitions)]


def _commit_offset(admin: AdminClient, request: Request, timeout_s: float) -> Answers:
    committed = TopicPartition(request.topic, request.partition, request.offset)
    wanted = ConsumerGroupTopicPartitions(request.group, [committed])
    return admin.alter_consumer_group_offsets([wanted], request_timeout=timeout_s).values()


def _delete_group(admin: AdminClient, request: Request, timeout_s: float) -> Answers:
    return admin.delete_consumer_groups([request.group], request_timeout=timeout_s).values()


def _list_groups(admin: AdminClient, request: Request, timeout_s: float) -> Answers:
    return [admin.list_consumer_groups(request_timeout=timeout_s)]


def _describe_groups(admin: AdminClient, request: Request, timeout_s: float) -> Answers:
    return admin.describe_consumer_groups([request.group], request_timeout=timeout_s).values()


CALLS: Mapping[Action, Callable[[AdminClient, Request, float], Answers]] = {
    Action.CREATE_TOPIC: _create_topic,
    Action.ADD_PARTITIONS: _add_partitions,
    Action.DELETE_TOPIC: _delete_topic,
    Action.CONFIGURE_TOPIC: _configure_topic,
    Action.CONFIGURE_BROKER: _configure_broker,
    Action.DESCRIBE_TOPIC: _describe_topic,
    Action.DESCRIBE_BROKER: _describe_broker,
    Action.DESCRIBE_CLUSTER: _describe_cluster,
    Action.ELECT_LEADERS: _elect_leaders,
    Action.COMMIT_OFFSET: _commit_offset,
    Action.DELETE_GROUP: _delete_group,
    Action.LIST_GROUPS: _list_groups,
    Action.DESCRIBE_GROUPS: _describe_groups,
}
"""What librdkafka can ask for; it knows of no reassignments, log directories, transactions, or deletions of single
offsets. Offsets of a group are left out: librdkafka 2.16 crashes (SIGSEGV) if the coordinator moves meanwhile.
"""

"""What brokers know of ZooKeeper's content, beside that content."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.broker.configs.config_types import ConfigError
from harness.broker.configs.topic_properties import BY_NAME, inherited, parse_dynamic_config, parse_topic_config
from harness.broker.controller.context import ControllerContext
from harness.broker.metadata_cache import PartitionInfo
from harness.broker.replicas.partition import Partition
from harness.broker.server import Broker
from harness.broker.zookeeper.partition_state import VersionedState
from harness.broker.zookeeper.registration import LiveBroker
from harness.broker.zookeeper.znodes import (
    ALL_BROKERS,
    BROKER_CONFIGS,
    BROKER_IDS,
    CONFIG_CHANGES,
    CONTROLLER,
    CONTROLLER_EPOCH,
    DELETE_TOPICS,
    TOPIC_CONFIGS,
    TOPICS,
    TOPICS_KIND,
    BrokerRegistration,
    ControllerZnode,
    MalformedZnode,
    PartitionStateZnode,
    TopicAssignment,
    broker_config_path,
    broker_path,
    changed_entity,
    config_change_path,
    decode_config,
    decode_controller_epoch,
    partition_state_path,
    topic_config_path,
    topic_path,
)
from harness.events import NO_LEADER
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.values import TopicPartition

_CONFIGS = (f"{TOPIC_CONFIGS}/", f"{BROKER_CONFIGS}/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """ZooKeeper's content."""

    live: Mapping[int, LiveBroker]
    controller: int
    controller_epoch: int
    topics: Mapping[str, TopicAssignment]
    """Without those that are to be deleted."""
    deleting: frozenset[str]
    states: Mapping[TopicPartition, VersionedState]
    configs: Mapping[str, Mapping[str, str]]
    """By the znode's path."""
    unannounced: frozenset[str]
    """Those of them that no notification names since they were written, and no creation of a topic read."""

    @classmethod
    def of(cls, ensemble: Ensemble) -> "Truth":
        """Read it; raises MalformedZnode."""
        nodes = ensemble.nodes
        topics = {name: TopicAssignment.decode(name, nodes[topic_path(name)].data) for name in ensemble.names(TOPICS)}
        deleting = frozenset(ensemble.names(DELETE_TOPICS))
        states = {
            (name, number): VersionedState(
                state=PartitionStateZnode.decode(name, number, nodes[path].data), zk_version=nodes[path].version
            )
            for name, assignment in topics.items()
            for number in assignment.partitions
            if (path := partition_state_path(name, number)) in nodes
        }
        return cls(
            live={
                int(name): LiveBroker(
                    registration=BrokerRegistration.decode(int(name), nodes[broker_path(int(name))].data),
                    epoch=nodes[broker_path(int(name))].czxid,
                )
                for name in ensemble.names(BROKER_IDS)
            },
            controller=ControllerZnode.decode(nodes[CONTROLLER].data).broker_id if CONTROLLER in nodes else -1,
            controller_epoch=decode_controller_epoch(nodes[CONTROLLER_EPOCH].data) if CONTROLLER_EPOCH in nodes else 0,
            topics={name: assignment for name, assignment in topics.items() if name not in deleting},
            deleting=deleting,
            states={key: state for key, state in states.items() if key[0] not in deleting},
            configs={path: decode_config(path, node.data) for path, node in nodes.items() if path.startswith(_CONFIGS)},
            unannounced=frozenset(
                path
                for path, node in nodes.items()
                if path.startswith(_CONFIGS) and node.mzxid > max(_announced(ensemble, path), default=-1)
            ),
        )

    def config(self, path: str) -> Mapping[str, str]:
        """Return the properties in a znode; empty when there is none."""
        return self.configs.get(path, {})

    def replicas(self, key: TopicPartition) -> tuple[int, ...]:
        """Return the assigned brokers of a partition."""
        return self.topics[key[0]].partitions[key[1]]

    @property
    def partitions(self) -> list[TopicPartition]:
        """All partitions that are to stay."""
        return [(name, number) for name, each in sorted(self.topics.items()) for number in sorted(each.partitions)]


def _announced(ensemble: Ensemble, path: str) -> Iterator[int]:
    """Yield when brokers were told to read a configuration."""
    _, kind, name = path.removeprefix("/").split("/", 2)
    nodes = ensemble.nodes
    if kind == TOPICS_KIND and topic_path(name) in nodes:
        yield nodes[topic_path(name)].czxid
    for change in map(config_change_path, ensemble.names(CONFIG_CHANGES)):
        if changed_entity(change, nodes[change].data) == (kind, name):
            yield nodes[change].czxid


def of_controller(broker: Broker, truth: Truth, brokers: Mapping[int, Broker]) -> Iterator[str]:
    """Yield what differs in the view of the controller, once it has handled every event.

    The brokers themselves know which of their replicas are on failed disks.
    """
    context = broker.controller.settled_context
    if broker.config.broker_id != truth.controller or context is None:
        return
    if context.epoch.value != truth.controller_epoch:
        yield "controller: epoch"
    if context.live != truth.live:
        yield "controller: live brokers"
    if context.deleting != truth.deleting:
        yield "controller: topics in deletion"
    stay = {name: each for name, each in context.topics.items() if name not in truth.deleting}
    if stay.keys() != truth.topics.keys():
        yield "controller: topics"
    yield from _of_partitions(context, truth)
    for number, each in sorted(brokers.items()):
        offline = {key for key in truth.partitions if each.replicas.replicas.is_offline(*key)}
        if {key for key in truth.partitions if key in context.offline_dirs.get(number, ())} != offline:
            yield f"controller: replicas on failed disks of broker {number}"


def _of_partitions(context: ControllerContext, truth: Truth) -> Iterator[str]:
    for key in truth.partitions:
        topic, number = key
        known, there = context.topics.get(topic), truth.topics[topic]
        if known is not None:
            if known.partitions.get(number) != there.partitions[number]:
                yield f"controller: replicas of {topic}-{number}"
            if known.adding.get(number) != there.adding.get(number):
                yield f"controller: replicas that are added to {topic}-{number}"
            if known.removing.get(number) != there.removing.get(number):
                yield f"controller: replicas that are removed from {topic}-{number}"
        if context.leadership.get(key) != truth.states.get(key):
            yield f"controller: state of {topic}-{number}"


def of_configurations(broker: Broker, truth: Truth) -> Iterator[str]:
    """Yield the properties in force that are not those of ZooKeeper over those of the properties file.

    A configuration that was written without a notification, as by a broker that died in between, need not be known.
    """
    config, configs = broker.config, broker.topic_configs
    own, default = broker_config_path(str(config.broker_id)), broker_config_path(ALL_BROKERS)
    if truth.unannounced & {own, default}:
        return
    values: dict[str, Any] = {**config.values, **_parsed(truth.config(default)), **_parsed(truth.config(own))}
    for name, value in values.items():
        if configs.broker(name) != value:
            yield f"broker property {name}"
    hosted = {partition.key[0] for partition in broker.replicas.replicas.all()}
    for topic in sorted(hosted & truth.topics.keys()):
        path = topic_config_path(topic)
        text = {name: value for name, value in truth.config(path).items() if name in BY_NAME}
        expected, known = {**inherited(values), **_parsed(text, parse_topic_config)}, configs.of(topic)
        differing = sorted(name for name, value in expected.items() if known[name] != value)
        if differing and path not in truth.unannounced:
            yield f"properties of {topic}: {', '.join(differing)}"


def _parsed(properties: Mapping[str, str], parse: Any = parse_dynamic_config) -> Mapping[str, Any]:
    """Return properties with their own types; none if one is invalid, as in Kafka."""
    try:
        return parse(properties)  # type: ignore[no-any-return]
    except (ConfigError, MalformedZnode):
        return {}


def of_replicas(broker: Broker, truth: Truth) -> Iterator[str]:
    """Yield what differs in the replicas of a broker: which they are, their leaders and, of its own leads, the ISR.

    As in Kafka, a broker may keep a replica that was moved away while its session had ended.
    """
    own, replicas = broker.config.broker_id, broker.replicas.replicas
    hosted = {each.key: each for each in replicas.all()}
    for key in truth.partitions:
        partition, state = hosted.get(key), truth.states.get(key)
        if partition is None or state is None:
            if own in truth.replicas(key) and state is not None and not replicas.is_offline(*key):
                yield f"replica {key[0]}-{key[1]} is not there"
            continue
        if own in truth.replicas(key) and state.state.leader != NO_LEADER:
            for what in _of_replica(partition, state):
                yield f"replica {key[0]}-{key[1]}: {what}"


def _of_replica(partition: Partition, known: VersionedState) -> Iterator[str]:
    state = known.state
    if partition.leader_epoch != state.leader_epoch:
        yield "leader epoch"
    elif partition.leader != state.leader:
        yield "leader"
    elif partition.is_leader:
        if set(partition.isr) != set(state.isr):
            yield "ISR"
        elif partition.zk_version != known.zk_version:
            yield "version of its state"


def of_metadata(broker: Broker, truth: Truth) -> Iterator[str]:
    """Yield what differs in the metadata that a broker tells clients.

    As in Kafka, a broker may keep a deleted topic that it missed the end of: no later request names it.
    """
    metadata = broker.metadata
    endpoints = {
        broker_id: {end.name: (end.host, end.port) for end in each.registration.endpoints}
        for broker_id, each in truth.live.items()
    }
    if {each.broker_id: dict(each.endpoints) for each in metadata.alive_brokers()} != endpoints:
        yield "metadata: live brokers"
    for key in truth.partitions:
        info, state = metadata.partition(*key), truth.states.get(key)
        if state is not None and (info is None or _told(info) != _told_by(state, truth.replicas(key))):
            yield f"metadata: {key[0]}-{key[1]}"


def _told(info: PartitionInfo) -> tuple[Any, ...]:
    return info.leader, info.leader_epoch, set(info.isr), set(info.replicas)


def _told_by(known: VersionedState, replicas: tuple[int, ...]) -> tuple[Any, ...]:
    return known.state.leader, known.state.leader_epoch, set(known.state.isr), set(replicas)

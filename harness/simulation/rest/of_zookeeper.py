"""What brokers know of ZooKeeper's content: properties in force, their replicas, and the metadata for clients."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.broker.configs.config_types import ConfigError
from harness.broker.configs.topic_properties import BY_NAME, inherited, parse_dynamic_config, parse_topic_config
from harness.broker.metadata_cache import PartitionInfo
from harness.broker.replicas.partition import Partition
from harness.broker.server import Broker
from harness.broker.zookeeper.partition_state import VersionedState
from harness.broker.zookeeper.znodes import ALL_BROKERS, MalformedZnode, broker_config_path, topic_config_path
from harness.events import NO_LEADER
from harness.simulation.rest.truth import Truth


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


def _parsed(
    properties: Mapping[str, str], parse: Callable[[Mapping[str, str]], Mapping[str, Any]] = parse_dynamic_config
) -> Mapping[str, Any]:
    """Return properties with their own types; none if one is invalid, as in Kafka."""
    try:
        return parse(properties)
    except (ConfigError, MalformedZnode):
        return {}


def of_replicas(broker: Broker, truth: Truth) -> Iterator[str]:
    """Yield what differs in the replicas of a broker: which they are, their leaders and, of its own leads, the ISR.

    As in Kafka, a broker may keep a replica that was moved away while its session had ended.
    """
    own, replicas = broker.config.broker_id, broker.replicas.replicas
    if own in truth.live and broker.broker_epoch != truth.live[own].epoch:
        yield "broker epoch"
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
        elif partition.proposed_isr:
            yield "the write of its ISR does not end"


def of_metadata(broker: Broker, truth: Truth) -> Iterator[str]:
    """Yield what differs in the metadata that a broker tells clients.

    As in Kafka, a broker may keep a deleted topic that it missed the end of: no later request names it.
    """
    metadata = broker.metadata
    if metadata.controller_id != truth.controller:
        yield "metadata: controller"
    registrations = {number: each.registration for number, each in truth.live.items()}
    alive = {each.broker_id: (dict(each.endpoints), each.rack or "") for each in metadata.alive_brokers()}
    if alive != {
        number: ({end.name: (end.host, end.port) for end in each.endpoints}, each.rack)
        for number, each in registrations.items()
    }:
        yield "metadata: live brokers"
    for key in truth.partitions:
        info, state = metadata.partition(*key), truth.states.get(key)
        if state is not None and (info is None or _told(info) != _told_by(state, truth.replicas(key))):
            yield f"metadata: {key[0]}-{key[1]}"


def _told(info: PartitionInfo) -> tuple[Any, ...]:
    return info.leader, info.leader_epoch, set(info.isr), set(info.replicas)


def _told_by(known: VersionedState, replicas: tuple[int, ...]) -> tuple[Any, ...]:
    return known.state.leader, known.state.leader_epoch, set(known.state.isr), set(replicas)

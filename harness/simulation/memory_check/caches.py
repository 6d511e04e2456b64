"""Properties, replicas and metadata of brokers, compared with ZooKeeper."""

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
from harness.simulation.memory_check.znodes import Znodes


def of_configurations(broker: Broker, znodes: Znodes) -> Iterator[str]:
    """Yield the properties in force that differ from those of ZooKeeper and the properties file.

    A broker that dies before it writes the notification leaves a configuration that other brokers need not know.
    """
    config, configs = broker.config, broker.topic_configs
    own, default = broker_config_path(str(config.broker_id)), broker_config_path(ALL_BROKERS)
    if znodes.unannounced & {own, default}:
        return
    values: dict[str, Any] = {**config.values, **_parsed(znodes.config(default)), **_parsed(znodes.config(own))}
    for name, value in values.items():
        if configs.broker(name) != value:
            yield f"broker property {name}"
    hosted = {partition.key[0] for partition in broker.replicas.replicas.all()}
    for topic in sorted(hosted & znodes.topics.keys()):
        path = topic_config_path(topic)
        text = {name: value for name, value in znodes.config(path).items() if name in BY_NAME}
        expected, known = {**inherited(values), **_parsed(text, parse_topic_config)}, configs.of(topic)
        differing = sorted(name for name, value in expected.items() if known[name] != value)
        if differing and path not in znodes.unannounced:
            yield f"properties of {topic}: {', '.join(differing)}"


def _parsed(
    properties: Mapping[str, str], parse: Callable[[Mapping[str, str]], Mapping[str, Any]] = parse_dynamic_config
) -> Mapping[str, Any]:
    """Return properties with their own types; none if one is invalid, as in Kafka."""
    try:
        return parse(properties)
    except (ConfigError, MalformedZnode):
        return {}


def of_producer_ids(broker: Broker, others: Mapping[int, Broker]) -> Iterator[str]:
    """Yield the brokers that are about to hand out the same ids as this one."""
    own = broker.producer_ids.left
    for other_id in sorted(others.keys() - {broker.config.broker_id}):
        left = others[other_id].producer_ids.left
        if max(own.start, left.start) < min(own.stop, left.stop):
            yield f"producer ids of broker {other_id}"


def of_replicas(broker: Broker, znodes: Znodes) -> Iterator[str]:
    """Yield missing replicas, and replicas with another leader or, where the broker leads, another ISR.

    As in Kafka, a broker may keep a replica that was moved away while it had no session.
    """
    own, replicas = broker.config.broker_id, broker.replicas.replicas
    if own in znodes.live and broker.broker_epoch != znodes.live[own].epoch:
        yield "broker epoch"
    hosted = {each.key: each for each in replicas.all()}
    for key in znodes.partitions:
        partition, state = hosted.get(key), znodes.states.get(key)
        if partition is None or state is None:
            if own in znodes.replicas(key) and state is not None and not replicas.is_offline(*key):
                yield f"replica {key[0]}-{key[1]} is not there"
            continue
        if own in znodes.replicas(key) and state.state.leader != NO_LEADER:
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


def of_metadata(broker: Broker, znodes: Znodes) -> Iterator[str]:
    """Yield what differs in the metadata that a broker tells clients.

    As in Kafka, a broker that missed the deletion of a topic may keep it: no later request names the topic.
    """
    metadata = broker.metadata
    if metadata.controller_id != znodes.controller:
        yield "metadata: controller"
    known = {each.broker_id: (dict(each.endpoints), each.rack or "") for each in metadata.alive_brokers()}
    registered = {
        number: ({end.name: (end.host, end.port) for end in live.registration.endpoints}, live.registration.rack)
        for number, live in znodes.live.items()
    }
    if known != registered:
        yield "metadata: live brokers"
    for key in znodes.partitions:
        info, state = metadata.partition(*key), znodes.states.get(key)
        if state is not None and (info is None or _told(info) != _told_by(state, znodes.replicas(key))):
            yield f"metadata: {key[0]}-{key[1]}"


def _told(info: PartitionInfo) -> tuple[Any, ...]:
    return info.leader, info.leader_epoch, set(info.isr), set(info.replicas)


def _told_by(known: VersionedState, replicas: tuple[int, ...]) -> tuple[Any, ...]:
    return known.state.leader, known.state.leader_epoch, set(known.state.isr), set(replicas)

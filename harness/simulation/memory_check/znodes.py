"""What ZooKeeper has: a broker that starts again loads its view of the cluster from there."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.broker.controller.election import ControllerEpoch
from harness.broker.zookeeper.partition_state import VersionedState
from harness.broker.zookeeper.registration import LiveBroker
from harness.broker.zookeeper.znodes import (
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
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.values import TopicPartition

_CONFIGS = (f"{TOPIC_CONFIGS}/", f"{BROKER_CONFIGS}/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Znodes:
    """ZooKeeper's content."""

    live: Mapping[int, LiveBroker]
    controller: int
    epoch: ControllerEpoch | None
    """None before the first controller."""
    topics: Mapping[str, TopicAssignment]
    """Without those that are to be deleted."""
    deleting: frozenset[str]
    states: Mapping[TopicPartition, VersionedState]
    configs: Mapping[str, Mapping[str, str]]
    """By the znode's path."""
    unannounced: frozenset[str]
    """Those that were written since brokers were last told to read them."""

    @classmethod
    def of(cls, ensemble: Ensemble) -> "Znodes":
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
        configs, announced = [path for path in nodes if path.startswith(_CONFIGS)], _announced(ensemble)
        return cls(
            live={
                int(name): LiveBroker(
                    registration=BrokerRegistration.decode(int(name), nodes[broker_path(int(name))].data),
                    epoch=nodes[broker_path(int(name))].czxid,
                )
                for name in ensemble.names(BROKER_IDS)
                if name.isdecimal()
            },
            controller=ControllerZnode.decode(nodes[CONTROLLER].data).broker_id if CONTROLLER in nodes else -1,
            epoch=_epoch(ensemble),
            topics={name: assignment for name, assignment in topics.items() if name not in deleting},
            deleting=deleting,
            states={key: state for key, state in states.items() if key[0] not in deleting},
            configs={path: decode_config(path, nodes[path].data) for path in configs},
            unannounced=frozenset(path for path in configs if nodes[path].mzxid > announced.get(path, -1)),
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


def _epoch(ensemble: Ensemble) -> ControllerEpoch | None:
    node = ensemble.nodes.get(CONTROLLER_EPOCH)
    return ControllerEpoch(value=decode_controller_epoch(node.data), zk_version=node.version) if node else None


def _announced(ensemble: Ensemble) -> dict[str, int]:
    """Return when brokers were last told to read each configuration, by its path: the zxid."""
    nodes, told = ensemble.nodes, dict[str, int]()
    if len(ensemble.servers) == 1:  # else a broker may have read a new topic's from a server that lagged behind
        told = {topic_config_path(name): nodes[topic_path(name)].czxid for name in ensemble.names(TOPICS)}
    for change in map(config_change_path, ensemble.names(CONFIG_CHANGES)):
        kind, name = changed_entity(change, nodes[change].data)
        path = topic_config_path(name) if kind == TOPICS_KIND else broker_config_path(name)
        told[path] = max(told.get(path, 0), nodes[change].czxid)
    return told

"""This broker's view of the cluster: live brokers and the leaders of partitions.

Updated only by the controller's UpdateMetadata; the last one applied wins, with any leader epoch, so a broker that the
controller cannot reach keeps serving the last state it got.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.broker.rules import RIGHT, ProtocolRules
from harness.broker.wire.messages import UpdateMetadataRequest
from harness.events import FORGOTTEN, NO_LEADER
from harness.values import value_class


@value_class(frozen=True, slots=True, kw_only=True)
class AliveBroker:
    """A broker that the controller counts as alive."""

    broker_id: int
    endpoints: Mapping[str, tuple[str, int]]
    """Host and port by listener name."""
    rack: str | None


@value_class(frozen=True, slots=True, kw_only=True)
class PartitionInfo:
    """One partition by the controller's last update."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]


@dataclass(slots=True)
class MetadataCache:
    """The brokers and partitions of the last UpdateMetadata requests."""

    controller_id: int = NO_LEADER
    """The controller that sent the last update; -1 before the first."""
    rules: ProtocolRules = RIGHT
    _brokers: dict[int, AliveBroker] = field(default_factory=dict)
    _partitions: dict[str, dict[int, PartitionInfo]] = field(default_factory=dict)

    def update(self, request: UpdateMetadataRequest) -> list[tuple[str, int]]:
        """Apply the brokers and the listed partitions; remove and return those whose topic is being deleted."""
        deleted = []
        self.controller_id = request.controller_id
        self._brokers = {
            broker.id: AliveBroker(
                broker_id=broker.id,
                endpoints={endpoint.listener: (endpoint.host, endpoint.port) for endpoint in broker.endpoints},
                rack=broker.rack,
            )
            for broker in request.live_brokers
        }
        for topic in request.topic_states:
            for state in topic.partition_states:
                if state.leader == FORGOTTEN:
                    if self.rules.caches_forget_deleted_topics:
                        self._forget(topic.topic_name, state.partition_index)
                    deleted.append((topic.topic_name, state.partition_index))
                    continue
                self._partitions.setdefault(topic.topic_name, {})[state.partition_index] = PartitionInfo(
                    topic=topic.topic_name,
                    partition=state.partition_index,
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=tuple(state.isr),
                    zk_version=state.zk_version,
                    replicas=tuple(state.replicas),
                    offline_replicas=tuple(state.offline_replicas),
                )
        return deleted

    def _forget(self, topic: str, partition: int) -> None:
        partitions = self._partitions.get(topic, {})
        partitions.pop(partition, None)
        if not partitions:
            self._partitions.pop(topic, None)

    def alive_brokers(self) -> list[AliveBroker]:
        """Return the live brokers by id, shutting down ones included."""
        return [self._brokers[broker_id] for broker_id in sorted(self._brokers)]

    def racks(self) -> dict[int, str]:
        """Return the racks of the live brokers that have one."""
        return {broker.broker_id: broker.rack for broker in self.alive_brokers() if broker.rack}

    def reached_by(self, listener: str) -> list[tuple[AliveBroker, tuple[str, int]]]:
        """Return the live brokers that have a listener, with its host and port, by id."""
        alive = self.alive_brokers()
        return [(broker, broker.endpoints[listener]) for broker in alive if listener in broker.endpoints]

    def is_alive(self, broker_id: int) -> bool:
        """Whether the controller counts this broker as alive."""
        return broker_id in self._brokers

    def leader_endpoint(self, broker_id: int, listener: str) -> tuple[str, int] | None:
        """Return host and port of a live broker's listener; None when it is not alive or lacks that listener."""
        broker = self._brokers.get(broker_id)
        return None if broker is None else broker.endpoints.get(listener)

    def topics(self) -> list[str]:
        """Return the names of all topics, sorted."""
        return sorted(self._partitions)

    def partitions(self, topic: str) -> list[PartitionInfo]:
        """Return the partitions of a topic by number; empty for a topic that is not known."""
        partitions = self._partitions.get(topic, {})
        return [partitions[number] for number in sorted(partitions)]

    def partition(self, topic: str, partition: int) -> PartitionInfo | None:
        """Return one partition, or None when no UpdateMetadata has named it."""
        return self._partitions.get(topic, {}).get(partition)

"""Collects the effects of one change for each broker, and builds its requests, nearly as few as Kafka. Pure.

After Kafka's `AbstractControllerBrokerRequestBatch`: LeaderAndIsr first, UpdateMetadata next, StopReplica last.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from harness.broker import background
from harness.broker.controller.assignment import Assignment
from harness.broker.controller.context import ControllerContext
from harness.broker.wire.messages import ApiMessage, LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from harness.broker.wire.sentinels import EPOCH_DURING_DELETE, NO_EPOCH
from harness.broker.zookeeper.partition_state import VersionedState
from harness.broker.zookeeper.registration import LiveBroker
from harness.values import TopicPartition

log = logging.getLogger(__name__)

LEADER_AND_ISR_VERSION = 4
UPDATE_METADATA_VERSION = 6
STOP_REPLICA_VERSION = 3
LEADER_DURING_DELETE = -2
"""As leader in UpdateMetadata: the topic is being deleted, forget the partition."""
PLAINTEXT = 0
"""Kafka's number of the security protocol."""

_LeaderTopic = LeaderAndIsrRequest.LeaderAndIsrTopicState
_LeaderPartition = _LeaderTopic.LeaderAndIsrPartitionState
_LiveLeader = LeaderAndIsrRequest.LeaderAndIsrLiveLeader
_MetadataTopic = UpdateMetadataRequest.UpdateMetadataTopicState
_MetadataPartition = _MetadataTopic.UpdateMetadataPartitionState
_MetadataBroker = UpdateMetadataRequest.UpdateMetadataBroker
_MetadataEndpoint = _MetadataBroker.UpdateMetadataEndpoint
_StopTopic = StopReplicaRequest.StopReplicaTopicState
_StopPartition = _StopTopic.StopReplicaPartitionState


class PendingRequestsError(Exception):
    """A change ended without notifying the brokers, so that they and the controller disagree: it must resign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRequest:
    """One request for one broker."""

    broker_id: int
    api: str
    message: ApiMessage
    version: int
    controller_epoch: int
    broker_epoch: int
    """Epoch of the broker's registration, by the controller's view."""
    partitions: tuple[str, ...]
    """As topic-partition, for the state-change log."""
    deletes: bool = False
    """Whether it is a StopReplica that deletes."""

    @property
    def live_brokers(self) -> list[int] | None:
        """Return the brokers that an UpdateMetadata names as alive; None for other requests."""
        return [broker.id for broker in self.message.live_brokers] if self.api == "UpdateMetadata" else None


@dataclass(slots=True, kw_only=True)
class _Leadership:
    """One partition in a LeaderAndIsr to one broker."""

    state: VersionedState
    assignment: Assignment
    is_new: bool


@dataclass(slots=True, kw_only=True)
class _Stop:
    """One replica in a StopReplica to one broker."""

    leader_epoch: int
    delete: bool


@dataclass(slots=True)
class RequestBatch:
    """The requests of one change, until `take` hands them out."""

    controller_id: int
    peer_listener: str
    context: ControllerContext
    _leader_and_isr: dict[int, dict[TopicPartition, _Leadership]] = field(default_factory=dict)
    _stop_replica: dict[int, dict[TopicPartition, _Stop]] = field(default_factory=dict)
    _metadata_brokers: set[int] = field(default_factory=set)
    _metadata: dict[TopicPartition, VersionedState] = field(default_factory=dict)

    def begin(self) -> None:
        """Start with an empty batch.

        Raises:
            PendingRequestsError: the change before was broken off and its requests are still here.
        """
        if self._leader_and_isr or self._stop_replica or self._metadata_brokers or self._metadata:
            raise PendingRequestsError("requests of an earlier change were never sent")

    def add_leader_and_isr(
        self, brokers: Iterable[int], partition: TopicPartition, state: VersionedState, *, is_new: bool
    ) -> None:
        """Send brokers the leader of a partition that they hold; other brokers get it as metadata."""
        assignment = self.context.assignment(partition)
        for broker_id in brokers:
            leaderships = self._leader_and_isr.setdefault(broker_id, {})
            was_new = partition in leaderships and leaderships[partition].is_new
            leaderships[partition] = _Leadership(state=state, assignment=assignment, is_new=is_new or was_new)
        self.add_update_metadata(self.context.live_or_shutting_down, [partition])

    def add_update_metadata(self, brokers: Iterable[int], partitions: Iterable[TopicPartition]) -> None:
        """Send brokers the live brokers and the leaders of these partitions, if known."""
        self._metadata_brokers.update(brokers)
        for partition in partitions:
            if partition in self.context.leadership:
                self._metadata[partition] = self.context.leadership[partition]
            else:
                log.info("metadata.skipped partition=%s-%d reason=no_leadership", *partition)

    def add_stop_replica(self, brokers: Iterable[int], partition: TopicPartition, *, delete: bool) -> None:
        """Ask brokers to stop their replica of a partition, with the leader epoch known now (KIP-570)."""
        leader_epoch = self._epoch_to_stop(partition)
        for broker_id in brokers:
            stopped = self._stop_replica.setdefault(broker_id, {})
            was_deleted = partition in stopped and stopped[partition].delete
            stopped[partition] = _Stop(leader_epoch=leader_epoch, delete=delete or was_deleted)

    def take(self) -> list[ControlRequest]:
        """Return the requests in the order they are to be sent, for live brokers only, and empty the batch."""
        requests = [*self._take_leader_and_isr(), *self._take_update_metadata(), *self._take_stop_replica()]
        self.clear()
        return requests

    def clear(self) -> None:
        """Forget everything that was added."""
        self._leader_and_isr.clear()
        self._stop_replica.clear()
        self._metadata_brokers.clear()
        self._metadata.clear()

    def _take_leader_and_isr(self) -> Iterable[ControlRequest]:
        """A broker handles each in one step of its loop, so a request names only as many partitions as fit a step."""
        parts = [
            (broker_id, {key: self._leader_and_isr[broker_id][key] for key in some})
            for broker_id in self._live(self._leader_and_isr)
            for some in background.sliced(sorted(self._leader_and_isr[broker_id]), background.PARTITIONS_A_REQUEST)
        ]
        for broker_id, leaderships in parts:
            message = LeaderAndIsrRequest(
                controller_id=self.controller_id,
                controller_epoch=self.context.epoch.value,
                broker_epoch=self.context.live[broker_id].epoch,
                topic_states=[
                    _LeaderTopic(
                        topic_name=topic,
                        partition_states=[_leader_partition(p, leaderships[topic, p]) for p in numbers],
                    )
                    for topic, numbers in _by_topic(leaderships)
                ],
                live_leaders=self._live_leaders({leadership.state.state.leader for leadership in leaderships.values()}),
            )
            yield self._request(broker_id, "LeaderAndIsr", message, LEADER_AND_ISR_VERSION, leaderships)

    def _take_update_metadata(self) -> Iterable[ControlRequest]:
        topic_states = [
            _MetadataTopic(topic_name=topic, partition_states=[self._metadata_partition(topic, p) for p in numbers])
            for topic, numbers in _by_topic(self._metadata)
        ]
        live_brokers = [_metadata_broker(self.context.live[broker_id]) for broker_id in sorted(self.context.live)]
        for broker_id in self._live(self._metadata_brokers):
            message = UpdateMetadataRequest(
                controller_id=self.controller_id,
                controller_epoch=self.context.epoch.value,
                broker_epoch=self.context.live[broker_id].epoch,
                topic_states=topic_states,
                live_brokers=live_brokers,
            )
            yield self._request(broker_id, "UpdateMetadata", message, UPDATE_METADATA_VERSION, self._metadata)

    def _take_stop_replica(self) -> Iterable[ControlRequest]:
        for broker_id in self._live(self._stop_replica):
            stopped = self._stop_replica[broker_id]
            message = StopReplicaRequest(
                controller_id=self.controller_id,
                controller_epoch=self.context.epoch.value,
                broker_epoch=self.context.live[broker_id].epoch,
                topic_states=[
                    _StopTopic(
                        topic_name=topic, partition_states=[_stop_partition(p, stopped[topic, p]) for p in numbers]
                    )
                    for topic, numbers in _by_topic(stopped)
                ],
            )
            request = self._request(broker_id, "StopReplica", message, STOP_REPLICA_VERSION, stopped)
            yield replace(request, deletes=any(stop.delete for stop in stopped.values()))

    def _epoch_to_stop(self, partition: TopicPartition) -> int:
        if partition[0] in self.context.deleting:
            return EPOCH_DURING_DELETE
        known = self.context.leadership.get(partition)
        return NO_EPOCH if known is None else known.state.leader_epoch

    def _live(self, broker_ids: Iterable[int]) -> list[int]:
        return sorted(broker_id for broker_id in broker_ids if broker_id in self.context.live)

    def _live_leaders(self, leaders: set[int]) -> list[_LiveLeader]:
        endpoints = []
        for leader in self._live(leaders):
            endpoint = self.context.live[leader].registration.endpoint(self.peer_listener)
            if endpoint is not None:
                endpoints.append(_LiveLeader(broker_id=leader, host_name=endpoint.host, port=endpoint.port))
        return endpoints

    def _metadata_partition(self, topic: str, number: int) -> _MetadataPartition:
        known = self._metadata[topic, number]
        replicas = self.context.replicas((topic, number))
        return _MetadataPartition(
            partition_index=number,
            controller_epoch=known.state.controller_epoch,
            leader=LEADER_DURING_DELETE if topic in self.context.deleting else known.state.leader,
            leader_epoch=known.state.leader_epoch,
            isr=list(known.state.isr),
            zk_version=known.zk_version,
            replicas=list(replicas),
            offline_replicas=[replica for replica in replicas if not self.context.is_online(replica, (topic, number))],
        )

    def _request(
        self, broker_id: int, api: str, message: ApiMessage, version: int, partitions: Iterable[TopicPartition]
    ) -> ControlRequest:
        return ControlRequest(
            broker_id=broker_id,
            api=api,
            message=message,
            version=version,
            controller_epoch=self.context.epoch.value,
            broker_epoch=self.context.live[broker_id].epoch,
            partitions=tuple(f"{topic}-{number}" for topic, number in sorted(partitions)),
        )


def _by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    grouped: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        grouped.setdefault(topic, []).append(number)
    return list(grouped.items())


def _leader_partition(number: int, leadership: _Leadership) -> _LeaderPartition:
    state = leadership.state.state
    return _LeaderPartition(
        partition_index=number,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        zk_version=leadership.state.zk_version,
        replicas=list(leadership.assignment.replicas),
        adding_replicas=list(leadership.assignment.adding),
        removing_replicas=list(leadership.assignment.removing),
        is_new=leadership.is_new,
    )


def _stop_partition(number: int, stop: _Stop) -> _StopPartition:
    return _StopPartition(partition_index=number, leader_epoch=stop.leader_epoch, delete_partition=stop.delete)


def _metadata_broker(broker: LiveBroker) -> _MetadataBroker:
    return _MetadataBroker(
        id=broker.registration.broker_id,
        endpoints=[
            _MetadataEndpoint(port=end.port, host=end.host, listener=end.name, security_protocol=PLAINTEXT)
            for end in broker.registration.endpoints
        ],
        rack=broker.registration.rack or None,
    )

"""The controller's requests to this broker: leaders (LeaderAndIsr), replicas to drop (StopReplica), live brokers.

A request of an older controller is refused as a whole; a partition without a newer leader epoch is left unchanged.
Every method is one step on the loop, which replaces Kafka's `replicaStateChangeLock`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from harness.broker.metadata_cache import MetadataCache, PartitionInfo
from harness.broker.replicas.fetchers import Fetchers
from harness.broker.replicas.partition import LeaderAndIsr, Partition
from harness.broker.replicas.replicas import Replicas, now_s
from harness.broker.replicas.replication import (
    LEADER_AND_ISR_ERRORS,
    ControlOutcome,
    judge_leader_and_isr,
    judge_stop_replica,
)
from harness.broker.rules import ProtocolRules
from harness.broker.state_log import StateLog
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from harness.broker.wire.sentinels import NO_EPOCH, UNKNOWN_BROKER_EPOCH
from harness.events import NO_LEADER, ControlledPartition, ControlReceive, Fenced
from harness.values import TopicPartition

log = logging.getLogger(__name__)

Leadership = tuple[str, int, int]
"""Topic, partition, leader epoch."""
LeadershipListener = Callable[[list[Leadership], list[Leadership]], None]
"""Called with the partitions that this broker leads from now on, and those it follows or lost; must not block."""
DeletionListener = Callable[[list[TopicPartition]], None]
"""Called with partitions whose topic is being deleted, here or not; must not block."""

ControlMessage = LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest


@dataclass(slots=True, eq=False)
class _Change:
    key: TopicPartition
    state: LeaderAndIsr
    outcome: ControlOutcome


@dataclass(slots=True, kw_only=True)
class ControlRequests:
    """Applies control requests to the replicas of this broker."""

    replicas: Replicas
    fetchers: Fetchers
    metadata: MetadataCache
    state_log: StateLog
    rules: ProtocolRules
    controller_epoch: int = 0
    """The largest seen."""
    shutting_down: bool = False
    """Whether this broker is shutting down: then it starts no fetchers, which would only add it to ISRs again."""
    _listeners: list[LeadershipListener] = field(default_factory=list)
    _deletion_listeners: list[DeletionListener] = field(default_factory=list)

    def on_leadership_change(self, listener: LeadershipListener) -> None:
        """Call `listener` after every request that made this broker gain or lose leaderships."""
        self._listeners.append(listener)

    def on_deletion(self, listener: DeletionListener) -> None:
        """Call `listener` after every request with topics being deleted."""
        self._deletion_listeners.append(listener)

    # --- LeaderAndIsr ---

    def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Start and end leaderships, and return one error a partition."""
        if self._is_of_old_controller("LeaderAndIsr", request):
            return LeaderAndIsrResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH, partition_errors=[])
        changes = [self._judge(key, state) for key, state in _leader_and_isr_states(request)]
        gained = self._make_leaders([c for c in changes if c.outcome is ControlOutcome.APPLIED and self._leads(c)])
        lost = self._make_followers([c for c in changes if c.outcome is ControlOutcome.APPLIED and not self._leads(c)])
        self.fetchers.stop_idle()
        self._changed(gained, lost)
        partitions = [_controlled(change.key, change.state, change.outcome) for change in changes]
        self._log_applied("LeaderAndIsr", request, partitions)
        error_type = LeaderAndIsrResponse.LeaderAndIsrPartitionError
        return LeaderAndIsrResponse(
            error_code=ErrorCode.NONE,
            partition_errors=[
                error_type(
                    topic_name=change.key[0],
                    partition_index=change.key[1],
                    error_code=LEADER_AND_ISR_ERRORS[change.outcome],
                )
                for change in changes
            ],
        )

    def _leads(self, change: _Change) -> bool:
        return change.state.leader == self.replicas.broker_id

    def _judge(self, key: TopicPartition, state: LeaderAndIsr) -> _Change:
        if self.replicas.is_offline(*key):
            return _Change(key, state, ControlOutcome.STORAGE_ERROR)
        hosted = self.replicas.get(*key)
        outcome = judge_leader_and_isr(
            state.leader_epoch,
            hosted.leader_epoch if hosted is not None else NO_EPOCH,
            assigned=self.replicas.broker_id in state.replicas,
            leads=state.leader == self.replicas.broker_id,
            leader_alive=self.metadata.is_alive(state.leader),
        )
        change = _Change(key, state, outcome)
        if outcome is ControlOutcome.LEADER_UNAVAILABLE:
            log.error("leader_and_isr.leader unavailable partition=%s-%d leader=%d", *key, state.leader)
            self._host(change)  # so that its high watermark stays in the checkpoint (KAFKA-1647)
        return change

    def _host(self, change: _Change) -> Partition | None:
        try:
            return self.replicas.host(*change.key)
        except OSError as error:
            log.error("leader_and_isr.storage failed partition=%s-%d error=%s", *change.key, error)
            change.outcome = ControlOutcome.STORAGE_ERROR
            return None

    def _make_leaders(self, changes: list[_Change]) -> list[Partition]:
        """Start leaderships, and return the new ones; a broker that leads already continues in the next epoch."""
        self.fetchers.unfollow(change.key for change in changes)
        gained = []
        for change in changes:
            partition = self._host(change)
            if partition is None:
                continue
            led_before = partition.is_leader
            try:
                partition.make_leader(change.state, now_s())
            except OSError as error:
                log.error("leader_and_isr.storage failed partition=%s-%d error=%s", *change.key, error)
                change.outcome = ControlOutcome.STORAGE_ERROR
                continue
            self.replicas.wake(partition.key)
            if not led_before:
                gained.append(partition)
        return gained

    def _make_followers(self, changes: list[_Change]) -> list[Partition]:
        self.fetchers.unfollow(change.key for change in changes)
        made, as_they_are = [], set()
        for change in changes:
            partition = self._host(change)
            if partition is not None:
                if partition.leader == change.state.leader and not self.rules.truncation_follows_every_epoch:
                    as_they_are.add(partition.key)
                partition.make_follower(change.state)
                self.replicas.wake(partition.key)
                made.append(partition)
        if not self.shutting_down:
            self.fetchers.follow(made, as_they_are)
        return made

    # --- the disk ---

    def disk_failed(self, held: set[TopicPartition]) -> int:
        """Take the replicas of a failed disk offline, and return their number."""
        taken = self.replicas.take_offline(held)
        self.fetchers.unfollow(partition.key for partition in taken)
        self.fetchers.stop_idle()
        self._changed([], taken)
        return len(taken)

    # --- StopReplica ---

    def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop replicating partitions and delete those marked for it, and return one error a partition."""
        if self._is_of_old_controller("StopReplica", request):
            return StopReplicaResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH, partition_errors=[])
        error_type = StopReplicaResponse.StopReplicaPartitionError
        partitions, errors, lost = [], [], []
        for key, leader_epoch, delete in _stopped_partitions(request):
            hosted = self.replicas.get(*key)
            local_epoch = hosted.leader_epoch if hosted is not None else NO_EPOCH
            outcome = judge_stop_replica(leader_epoch, local_epoch)
            if outcome is ControlOutcome.APPLIED:
                outcome = self._stop(key, delete=delete)
                if delete and hosted is not None:
                    lost.append(hosted)
            else:
                self._log_fenced("leader_epoch", "StopReplica", request, key, leader_epoch, local_epoch)
            state = LeaderAndIsr(
                leader=NO_LEADER, leader_epoch=leader_epoch, isr=(), zk_version=-1, replicas=(), controller_epoch=-1
            )
            partitions.append(_controlled(key, state, outcome))
            errors.append(error_type(topic_name=key[0], partition_index=key[1], error_code=_STOP_ERRORS[outcome]))
        self.fetchers.stop_idle()
        self._changed([], lost)
        self._log_applied("StopReplica", request, partitions)
        return StopReplicaResponse(error_code=ErrorCode.NONE, partition_errors=errors)

    def _stop(self, key: TopicPartition, *, delete: bool) -> ControlOutcome:
        self.fetchers.unfollow([key])
        if self.replicas.is_offline(*key):
            return ControlOutcome.STORAGE_ERROR
        if not delete:
            return ControlOutcome.APPLIED
        try:
            self.replicas.delete(*key)
        except OSError as error:
            log.error("stop_replica.delete failed partition=%s-%d error=%s", *key, error)
            return ControlOutcome.STORAGE_ERROR
        finally:
            self.replicas.wake(key)
        return ControlOutcome.APPLIED

    # --- UpdateMetadata ---

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Apply the controller's view of the cluster."""
        if self._is_of_old_controller("UpdateMetadata", request):
            return UpdateMetadataResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        deleted = self.metadata.update(request)
        self.replicas.doom(deleted)
        self.replicas.brokers_changed()
        for listener in self._deletion_listeners if deleted else ():
            listener(deleted)
        keys = [
            ((topic.topic_name, state.partition_index), state)
            for topic in request.topic_states
            for state in topic.partition_states
        ]
        believed = [
            _controlled(key, self.metadata.partition(*key) or _state(state), ControlOutcome.APPLIED)
            for key, state in keys
        ]
        live_brokers = sorted(broker.id for broker in request.live_brokers)
        self.state_log.emit(_received("UpdateMetadata", request, "applied", believed, live_brokers))
        return UpdateMetadataResponse(error_code=ErrorCode.NONE)

    # --- all three ---

    def is_for_earlier_life(self, api: str, request: ControlMessage, broker_epoch: int) -> bool:
        """Whether this is for an earlier registration of this broker (KIP-380)."""
        got = request.broker_epoch
        if got == UNKNOWN_BROKER_EPOCH or got >= broker_epoch or not self.rules.requests_for_earlier_lives_are_refused:
            return False
        self._log_stale("broker_epoch", api, request, got, broker_epoch, ErrorCode.STALE_BROKER_EPOCH)
        return True

    def _is_of_old_controller(self, api: str, request: ControlMessage) -> bool:
        """Whether an older controller sent this; otherwise its epoch becomes the newest."""
        got, have = request.controller_epoch, self.controller_epoch
        if got >= have or not self.rules.old_controllers_are_refused:
            self.controller_epoch = got
            return False
        self._log_stale("controller_epoch", api, request, got, have, ErrorCode.STALE_CONTROLLER_EPOCH)
        return True

    def _log_stale(self, what: str, api: str, request: ControlMessage, got: int, have: int, error: ErrorCode) -> None:
        self._log_fenced(what, api, request, None, got, have, error)
        self.state_log.emit(_received(api, request, f"stale_{what}", []))

    def _changed(self, gained: Iterable[Partition], lost: Iterable[Partition]) -> None:
        gains = [(*partition.key, partition.leader_epoch) for partition in gained]
        losses = [(*partition.key, partition.leader_epoch) for partition in lost]
        if gains or losses:
            for listener in self._listeners:
                listener(gains, losses)

    def _log_applied(self, api: str, request: ControlMessage, partitions: list[ControlledPartition]) -> None:
        self.state_log.emit(_received(api, request, "applied", partitions))

    def _log_fenced(
        self,
        what: str,
        api: str,
        request: ControlMessage,
        key: TopicPartition | None,
        got: int,
        have: int,
        error: ErrorCode = ErrorCode.FENCED_LEADER_EPOCH,
    ) -> None:
        topic, partition = key or ("", -1)
        self.state_log.emit(
            Fenced(
                what=what,
                api=api,
                topic=topic,
                partition=partition,
                got=got,
                have=have,
                sender=request.controller_id,
                error=error,
            )
        )


_STOP_ERRORS: dict[ControlOutcome, ErrorCode] = {
    ControlOutcome.APPLIED: ErrorCode.NONE,
    ControlOutcome.IGNORED_OLD: ErrorCode.FENCED_LEADER_EPOCH,
    ControlOutcome.STORAGE_ERROR: ErrorCode.KAFKA_STORAGE_ERROR,
}


def _received(
    api: str,
    request: ControlMessage,
    verdict: str,
    partitions: list[ControlledPartition],
    live_brokers: list[int] | None = None,
) -> ControlReceive:
    """Return the event of a control request."""
    return ControlReceive(
        api=api,
        sender=request.controller_id,
        controller_epoch=request.controller_epoch,
        request_broker_epoch=request.broker_epoch,
        verdict=verdict,
        partitions=partitions,
        live_brokers=live_brokers,
    )


PartitionStateMessage = (
    LeaderAndIsrRequest.LeaderAndIsrTopicState.LeaderAndIsrPartitionState
    | UpdateMetadataRequest.UpdateMetadataTopicState.UpdateMetadataPartitionState
)


def _state(state: PartitionStateMessage) -> LeaderAndIsr:
    return LeaderAndIsr(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=tuple(state.isr),
        zk_version=state.zk_version,
        replicas=tuple(state.replicas),
        controller_epoch=state.controller_epoch,
    )


def _leader_and_isr_states(request: LeaderAndIsrRequest) -> Iterator[tuple[TopicPartition, LeaderAndIsr]]:
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield (topic.topic_name, state.partition_index), _state(state)


def _stopped_partitions(request: StopReplicaRequest) -> Iterator[tuple[TopicPartition, int, bool]]:
    """Yield partition, leader epoch and whether to delete; in v2 there is no epoch and one flag for all."""
    for topic in request.topics:
        for number in topic.partition_indexes:
            yield (topic.name, number), NO_EPOCH, request.delete_partitions
    for topic_state in request.topic_states:
        for state in topic_state.partition_states:
            yield (topic_state.topic_name, state.partition_index), state.leader_epoch, state.delete_partition


def _controlled(
    key: TopicPartition, state: LeaderAndIsr | PartitionInfo, outcome: ControlOutcome
) -> ControlledPartition:
    return ControlledPartition(
        topic=key[0],
        partition=key[1],
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        zk_version=state.zk_version,
        replicas=list(state.replicas),
        verdict=outcome,
    )

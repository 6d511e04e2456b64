"""LeaderAndIsr, StopReplica and UpdateMetadata: fenced by broker epoch, then obeyed by the replica manager.

A request that was meant for an earlier registration of this broker is refused (KIP-380); one for a later registration
is not: the controller may see it before this broker does.
"""

from collections.abc import Callable
from dataclasses import dataclass

from harness.broker.administration.topic_configs import TopicConfigs
from harness.broker.replicas.control_requests import ControlRequest, received
from harness.broker.replicas.replica_manager import ReplicaManager
from harness.broker.state_log import StateLog
from harness.broker.wire.dispatch import CloseConnection, Handler, RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from harness.broker.wire.transport import Message
from harness.broker.zookeeper.client import ZooKeeperError
from harness.events import Fenced

UNKNOWN_BROKER_EPOCH = -1


@dataclass(slots=True)
class ControlHandlers:
    """Serves the controller."""

    replica_manager: ReplicaManager
    state_log: StateLog
    broker_epoch: Callable[[], int]
    """Returns the czxid of this broker's registration."""

    async def leader_and_isr(self, request: LeaderAndIsrRequest, context: RequestContext) -> LeaderAndIsrResponse:
        """Take and give up leads."""
        if self._is_stale("LeaderAndIsr", request):
            return LeaderAndIsrResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, partition_errors=[])
        return await self.replica_manager.become_leader_or_follower(request)

    async def stop_replica(self, request: StopReplicaRequest, context: RequestContext) -> StopReplicaResponse:
        """Stop to replicate partitions, and delete those that are to go."""
        if self._is_stale("StopReplica", request):
            return StopReplicaResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, partition_errors=[])
        return await self.replica_manager.stop_replicas(request)

    async def update_metadata(self, request: UpdateMetadataRequest, context: RequestContext) -> UpdateMetadataResponse:
        """Take over the controller's view of the cluster."""
        if self._is_stale("UpdateMetadata", request):
            return UpdateMetadataResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        return await self.replica_manager.update_metadata(request)

    def _is_stale(self, api: str, request: ControlRequest) -> bool:
        have = self.broker_epoch()
        if request.broker_epoch == UNKNOWN_BROKER_EPOCH or request.broker_epoch >= have:
            return False
        if not self.replica_manager.rules.requests_for_earlier_lives_are_refused:
            return False
        self.state_log.emit(
            Fenced(
                what="broker_epoch",
                api=api,
                topic="",
                partition=-1,
                got=request.broker_epoch,
                have=have,
                sender=request.controller_id,
                error=ErrorCode.STALE_BROKER_EPOCH,
            )
        )
        self.state_log.emit(received(api, request, "stale_broker_epoch", []))
        return True


def with_topic_configs(configs: TopicConfigs, handle: Handler) -> Handler:
    """Have the configuration of every topic in a LeaderAndIsr at hand before its replicas are made."""

    async def handle_with_configs(request: LeaderAndIsrRequest, context: RequestContext) -> Message | None:
        try:
            await configs.load(topic.topic_name for topic in request.topic_states)
        except ZooKeeperError as error:  # the controller sends it again
            raise CloseConnection(f"topic configurations cannot be read: {error!r}") from error
        return await handle(request, context)

    return handle_with_configs


def waking(handle: Handler, *tell: Callable[[list[str]], None]) -> Handler:
    """Tell those who wait for leaders, once an UpdateMetadata has been handled, which topics were in it."""

    async def handle_and_wake(request: UpdateMetadataRequest, context: RequestContext) -> Message | None:
        response = await handle(request, context)
        topics = [topic.topic_name for topic in request.topic_states]
        for each in tell:
            each(topics)
        return response

    return handle_and_wake

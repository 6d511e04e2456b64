"""LeaderAndIsr, StopReplica and UpdateMetadata: fenced by broker epoch, then obeyed.

A request that was meant for an earlier registration of this broker is refused (KIP-380); one for a later registration
is not: the controller may see it before this broker does.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.broker.replicas.control_requests import ControlMessage, ControlRequests
from harness.broker.wire.dispatch import CloseConnection, RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from harness.broker.zookeeper.client import ZooKeeperError


@dataclass(slots=True)
class ControlHandlers:
    """Serves the controller."""

    control: ControlRequests
    broker_epoch: Callable[[], int]
    """Returns the czxid of this broker's registration."""
    begin_checkpoints: Callable[[], None]
    """Called with every accepted LeaderAndIsr; the first one starts the checkpoints of high watermarks."""
    load_topic_configs: Callable[[Iterable[str]], Awaitable[None]]
    """Reads the configurations of topics; raises ZooKeeperError."""
    metadata_listeners: Sequence[Callable[[list[str]], None]] = ()
    """Called with the topics of every UpdateMetadata, once it has been handled."""

    async def leader_and_isr(self, request: LeaderAndIsrRequest, context: RequestContext) -> LeaderAndIsrResponse:
        """Start and end leaderships; the topics' configurations are read before their replicas are created.

        Raises:
            CloseConnection: a configuration cannot be read; the controller sends the request again.
        """
        try:
            await self.load_topic_configs(topic.topic_name for topic in request.topic_states)
        except ZooKeeperError as error:
            raise CloseConnection(f"topic configurations cannot be read: {error!r}") from error
        if self._is_stale("LeaderAndIsr", request):
            return LeaderAndIsrResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, partition_errors=[])
        response = self.control.leader_and_isr(request)
        self.begin_checkpoints()
        return response

    async def stop_replica(self, request: StopReplicaRequest, context: RequestContext) -> StopReplicaResponse:
        """Stop replicating partitions, and delete those marked for it."""
        if self._is_stale("StopReplica", request):
            return StopReplicaResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, partition_errors=[])
        return self.control.stop_replica(request)

    async def update_metadata(self, request: UpdateMetadataRequest, context: RequestContext) -> UpdateMetadataResponse:
        """Apply the controller's view of the cluster."""
        if self._is_stale("UpdateMetadata", request):
            response = UpdateMetadataResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        else:
            response = self.control.update_metadata(request)
        topics = [topic.topic_name for topic in request.topic_states]
        for listener in self.metadata_listeners:
            listener(topics)
        return response

    def _is_stale(self, api: str, request: ControlMessage) -> bool:
        return self.control.is_for_earlier_life(api, request, self.broker_epoch())

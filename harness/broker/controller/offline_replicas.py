"""Replicas that went offline, with their brokers or a log directory: first elect leaders, then shrink the ISRs."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.broker.controller.context import Replica
from harness.broker.controller.environment import Environment
from harness.broker.controller.partition_machine import PartitionMachine
from harness.broker.controller.replica_machine import ReplicaMachine
from harness.broker.controller.topic_deletion import TopicDeletion
from harness.broker.controller.transitions import PartitionStatus, ReplicaStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineReplicas:
    """Kafka's `onReplicasBecomeOffline`."""

    environment: Environment
    partitions: PartitionMachine
    replicas: ReplicaMachine
    deletion: TopicDeletion

    async def handle(self, offline: Sequence[Replica], *, trigger: str) -> None:
        """Handle all consequences; the context has these replicas as offline already."""
        context = self.environment.context
        lost = context.partitions_with_offline_leader()
        await self.partitions.change(lost, PartitionStatus.OFFLINE)
        await self.partitions.elect_missing(trigger=trigger)
        staying = [replica for replica in offline if replica[0] not in context.deleting]
        await self.replicas.change(staying, ReplicaStatus.OFFLINE)
        await self.deletion.failed([replica for replica in offline if replica[0] in context.deleting])
        if not lost:
            self.environment.tell_metadata(context.live_or_shutting_down)

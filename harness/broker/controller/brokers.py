"""The active controller's reaction when brokers come, go, change, or ask to leave."""

import logging
from collections.abc import Sequence

from harness.broker.controller.broker_diff import diff_brokers
from harness.broker.controller.channels import ControllerChannels
from harness.broker.controller.environment import Environment
from harness.broker.controller.errors import BrokerNotAvailableError, StaleBrokerEpochError
from harness.broker.controller.offline_replicas import OfflineReplicas
from harness.broker.controller.partition_machine import PartitionMachine
from harness.broker.controller.reassignment import Reassignments
from harness.broker.controller.replica_machine import ReplicaMachine
from harness.broker.controller.selectors import Strategy
from harness.broker.controller.topic_deletion import TopicDeletion
from harness.broker.controller.transitions import PartitionStatus, ReplicaStatus
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import UNKNOWN_BROKER_EPOCH
from harness.broker.zookeeper.client import Watch, WatchType
from harness.broker.zookeeper.pipeline import all_of
from harness.broker.zookeeper.registration import LiveBroker, read_live_broker, read_live_brokers
from harness.broker.zookeeper.znodes import BROKER_IDS, broker_path
from harness.events import Fenced, RegistrationsRead
from harness.values import TopicPartition

log = logging.getLogger(__name__)


class BrokerEvents:
    """Keeps the context's live brokers, and handles every change of them."""

    def __init__(
        self,
        environment: Environment,
        channels: ControllerChannels,
        partitions: PartitionMachine,
        replicas: ReplicaMachine,
        deletion: TopicDeletion,
        offline: OfflineReplicas,
        reassignments: Reassignments,
    ) -> None:
        self._env = environment
        self._context = environment.context
        self._channels = channels
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion
        self._offline = offline
        self._reassignments = reassignments

    def watch(self) -> None:
        """Register for the list of brokers."""
        self._env.session.current.watch_children(BROKER_IDS, self._env.on_watch("BrokerChange", self.changed))

    async def load(self) -> None:
        """Read the live brokers."""
        self._context.live = await self._read()

    async def watch_registrations(self, broker_ids: Sequence[int]) -> None:
        """Register for changes of these brokers' registrations."""
        zk = self._env.session.current
        for broker_id in broker_ids:
            zk.watch_node(broker_path(broker_id), self._on_registration(broker_id))
        await all_of(zk.exists(broker_path(broker_id)) for broker_id in broker_ids)

    def unwatch_registrations(self, broker_ids: Sequence[int]) -> None:
        """Remove the handlers of these brokers' registrations."""
        for broker_id in broker_ids:
            self._env.session.current.unwatch_node(broker_path(broker_id))

    async def changed(self) -> None:
        """Event BrokerChange: handle new, bounced and dead brokers, in this order."""
        now = await self._read()
        epochs = {broker_id: live.epoch for broker_id, live in now.items()}
        if not self._env.rules.bounced_brokers_are_noticed:
            epochs |= {known: epoch for known, epoch in self._context.broker_epochs.items() if known in now}
        diff = diff_brokers(self._context.broker_epochs, epochs)
        log.info("brokers.changed new=%s dead=%s bounced=%s all=%s", diff.new, diff.dead, diff.bounced, sorted(now))
        for broker_id in (*diff.bounced, *diff.dead):
            await self._channels.remove_broker(broker_id)
        for broker_id in (*diff.new, *diff.bounced):
            self._channels.add_broker(now[broker_id].registration)
        if diff.new:
            self._add(diff.new, now)
            await self._started(diff.new)
        if diff.bounced:
            await self._failed(diff.bounced)
            self._add(diff.bounced, now)
            await self._started(diff.bounced)
        if diff.dead:
            await self._failed(diff.dead)

    async def modified(self, broker_id: int) -> None:
        """Event BrokerModifications: notify all brokers when a broker's endpoints have changed."""
        known = self._context.live.get(broker_id)
        now = await read_live_broker(self._env.session.current, broker_id)
        if known is None or now is None or now.registration.endpoints == known.registration.endpoints:
            return
        self._context.live[broker_id] = LiveBroker(registration=now.registration, epoch=known.epoch)
        self._env.tell_metadata(self._context.live_or_shutting_down)

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Move leaders away from a broker and take it out of ISRs; return the partitions it still leads.

        Partitions with a single replica are left alone: no other broker could lead them.

        Raises:
            StaleBrokerEpochError: an earlier incarnation of the broker asks.
            BrokerNotAvailableError: the broker is not registered.
        """
        self._check_may_shut_down(broker_id, broker_epoch)
        log.info("broker.shutting_down broker=%d", broker_id)
        self._context.shutting_down.add(broker_id)
        held = [(topic, number) for topic, number, _ in self._context.replicas_on([broker_id])]
        movable = [
            p
            for p in held
            if len(self._context.replicas(p)) > 1
            and p in self._context.leadership
            and p[0] not in self._context.deleting
        ]
        led = [partition for partition in movable if self._context.leader(partition) == broker_id]
        followed = [partition for partition in movable if self._context.leader(partition) != broker_id]
        await self._partitions.change(
            led, PartitionStatus.ONLINE, Strategy.CONTROLLED_SHUTDOWN, trigger="controlled_shutdown"
        )
        self._env.batch.begin()
        for partition in followed:
            self._env.batch.add_stop_replica([broker_id], partition, delete=False)
        self._env.send_batch()
        await self._replicas.change([(*partition, broker_id) for partition in followed], ReplicaStatus.OFFLINE)
        return [p for p in self._context.partitions() if p in movable and self._context.leader(p) == broker_id]

    def _check_may_shut_down(self, broker_id: int, broker_epoch: int) -> None:
        known = self._context.live.get(broker_id)
        if known is None:
            raise BrokerNotAvailableError(f"broker {broker_id} is not registered")
        if UNKNOWN_BROKER_EPOCH < broker_epoch < known.epoch:
            self._env.state_log.emit(
                Fenced(
                    what="broker_epoch",
                    api="ControlledShutdown",
                    topic="",
                    partition=-1,
                    got=broker_epoch,
                    have=known.epoch,
                    sender=broker_id,
                    error=ErrorCode.STALE_BROKER_EPOCH,
                )
            )
            raise StaleBrokerEpochError(f"broker {broker_id} has epoch {known.epoch}, not {broker_epoch}")

    async def _read(self) -> dict[int, LiveBroker]:
        """Return the registered brokers, and log them: what the controller acts on is compared with that."""
        live = await read_live_brokers(self._env.session.current)
        self._env.state_log.emit(
            RegistrationsRead(
                controller_epoch=self._context.epoch.value,
                registrations=[(broker_id, live[broker_id].epoch) for broker_id in sorted(live)],
            )
        )
        return live

    def _add(self, broker_ids: Sequence[int], now: dict[int, LiveBroker]) -> None:
        for broker_id in broker_ids:
            self._context.live[broker_id] = now[broker_id]

    async def _started(self, broker_ids: Sequence[int]) -> None:
        """Brokers have started: send them everything, and try leaderless partitions again."""
        others = [broker_id for broker_id in self._context.live_or_shutting_down if broker_id not in broker_ids]
        if self._env.rules.caches_hear_of_started_brokers:
            self._env.tell_metadata(others)
        whole = self._env.rules.started_brokers_get_all_partitions
        self._env.tell_metadata(broker_ids, sorted(self._context.leadership) if whole else ())
        returned = self._context.replicas_on(broker_ids)
        await self._replicas.change(returned, ReplicaStatus.ONLINE)
        await self._partitions.elect_missing(trigger="broker_start")
        await self._reassignments.resume(lambda _, assignment: bool(set(assignment.target) & set(broker_ids)))
        if self._env.rules.deletions_are_resumed:
            await self._deletion.resume({topic for topic, _, _ in returned})
        await self.watch_registrations(broker_ids)

    async def _failed(self, broker_ids: Sequence[int]) -> None:
        """Brokers are gone: elect new leaders first, then take their replicas out of the ISRs."""
        rules = self._env.rules
        for broker_id in broker_ids:
            leaving = broker_id in self._context.shutting_down and not rules.leaving_ends_with_registration
            if rules.gone_brokers_are_forgotten:
                self._context.remove_broker(broker_id)
            if leaving:
                self._context.shutting_down.add(broker_id)
        await self._offline.handle(self._context.replicas_on(broker_ids), trigger="broker_failure")
        self.unwatch_registrations(broker_ids)

    def _on_registration(self, broker_id: int) -> Watch:
        def handler(kind: WatchType, path: str) -> None:
            if kind in (WatchType.DATA, WatchType.MAYBE):  # a removal is handled by BrokerChange
                self._env.enqueue("BrokerModifications", lambda: self.modified(broker_id))

        return handler

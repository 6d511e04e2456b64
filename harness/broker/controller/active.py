"""The active controller: its take-over, and its resignation. One object is one controller epoch.

After Kafka's `KafkaController`. Handlers are registered before anything is read, and every event reads again, which
arms its watch again: so no change is missed.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from harness.broker.controller import selectors, selectors_0_8
from harness.broker.controller.brokers import BrokerEvents
from harness.broker.controller.channels import ChannelSettings, ControllerChannels
from harness.broker.controller.context import ControllerContext
from harness.broker.controller.election import ControllerEpoch
from harness.broker.controller.environment import ControllerSettings, Environment
from harness.broker.controller.fenced_writes import FencedWrites
from harness.broker.controller.notifications import Notifications
from harness.broker.controller.offline_replicas import OfflineReplicas
from harness.broker.controller.partition_machine import PartitionMachine
from harness.broker.controller.reassignment import Reassignments
from harness.broker.controller.replica_elections import ReplicaElections
from harness.broker.controller.replica_machine import ReplicaMachine
from harness.broker.controller.request_batch import ControlRequest, RequestBatch
from harness.broker.controller.selectors import Selector, Strategy
from harness.broker.controller.statistics import ControllerStatistics, statistics_of
from harness.broker.controller.topic_deletion import TopicDeletion
from harness.broker.controller.topics import TopicEvents
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import ApiMessage
from harness.broker.zookeeper.znodes import BROKER_IDS
from harness.events import ControllerReady, ControllerResigned
from harness.values import TopicPartition

log = logging.getLogger(__name__)

Put = Callable[[str, Callable[[], Awaitable[object]]], object]
"""Queues an event by name."""

SELECTOR_PROFILES: dict[str, Mapping[Strategy, Selector]] = {
    "0.8": selectors_0_8.SELECTORS,
    "2.5": selectors.SELECTORS,
}


class ActiveController:
    """One controller epoch; its methods run on the event queue's task, one at a time."""

    def __init__(
        self, settings: ControllerSettings, epoch: ControllerEpoch, put: Put, unclean_default: Callable[[], bool]
    ) -> None:
        """`unclean_default` returns the broker's present `unclean.leader.election.enable`."""
        self.epoch = epoch
        self._settings = settings
        self._put = put
        self._in_office = True
        self._context = ControllerContext(epoch=epoch)
        broker_id, peer_listener = settings.config.broker_id, settings.config.peer_endpoint.name
        self._channels = ControllerChannels(
            ChannelSettings(
                transport=settings.transport,
                state_log=settings.state_log,
                controller_id=broker_id,
                peer_listener=peer_listener,
                timeout_s=settings.config["controller.socket.timeout.ms"] / 1000,
                answered=self._answered,
            )
        )
        profile = settings.config["selector.profile"]
        self._env = Environment(
            context=self._context,
            session=settings.session,
            writes=FencedWrites(settings.session, epoch, settings.state_log, settings.rules),
            counters=settings.counters,
            batch=RequestBatch(broker_id, peer_listener, self._context),
            send=self._channels.send,
            enqueue=self._enqueue,
            unclean_default=unclean_default,
            rules=settings.rules,
            selectors=SELECTOR_PROFILES[profile],
            profile=profile,
        )
        self._partitions = PartitionMachine(self._env)
        self._replicas = ReplicaMachine(self._env)
        self._deletion = TopicDeletion(
            self._env, self._partitions, self._replicas, enabled=settings.config["delete.topic.enable"]
        )
        self._offline = OfflineReplicas(
            environment=self._env, partitions=self._partitions, replicas=self._replicas, deletion=self._deletion
        )
        self.reassignments = Reassignments(self._env, self._partitions, self._replicas, self._deletion)
        self.elections = ReplicaElections(self._env, self._partitions, settings.config)
        self._brokers = BrokerEvents(
            self._env,
            self._channels,
            self._partitions,
            self._replicas,
            self._deletion,
            self._offline,
            self.reassignments,
        )
        self._topics = TopicEvents(self._env, self._partitions, self._replicas)
        self._notifications = Notifications(self._env, self._replicas)

    @property
    def channels(self) -> tuple[list[int], list[int]]:
        """The brokers to which there is a channel, and those that are taken for registered."""
        return self._channels.brokers, self._context.live_or_shutting_down

    @property
    def context(self) -> ControllerContext:
        """Its view of the cluster."""
        return self._context

    @property
    def unanswered(self) -> list[int]:
        """The brokers that have yet to answer a request."""
        return self._channels.unanswered

    async def take_over(self) -> None:
        """Read the state of the cluster and repair it (`onControllerFailover`, in its order).

        Raises:
            ControllerMovedError: another controller has taken over meanwhile.
        """
        self._brokers.watch()
        self._topics.watch()
        self._deletion.watch()
        self._notifications.watch()
        self.elections.watch()
        self.reassignments.watch()
        await self._notifications.drop()
        await self._brokers.load()
        await self._topics.load()
        await self._brokers.watch_registrations(self._context.live_or_shutting_down)
        await self._topics.load_leadership()
        for broker_id in self._context.live_or_shutting_down:
            self._channels.add_broker(self._context.live[broker_id].registration)
        self.reassignments.load()
        await self._deletion.load()
        # Before any LeaderAndIsr: a follower accepts only a leader in its list of live brokers.
        self._env.tell_metadata(self._context.live_or_shutting_down)
        await self._replicas.start()
        await self._partitions.start()
        self._settings.state_log.emit(ControllerReady(controller_epoch=self.epoch.value))
        log.info("controller.ready epoch=%d", self.epoch.value)
        await self.reassignments.take_over()
        await self._deletion.advance()
        await self.elections.znode_changed()
        self.elections.start()

    async def resign(self, reason: str) -> None:
        """Stop acting as controller; queued requests to brokers are lost (`onControllerResignation`).

        All but the last clean-up is done before this gives way to any other task.
        """
        self._in_office = False
        self._notifications.unwatch()
        self.reassignments.unwatch()
        self.elections.unwatch()
        self._brokers.unwatch_registrations(self._context.live_or_shutting_down)
        self._topics.unwatch()
        self._deletion.unwatch()
        self._settings.session.current.unwatch_children(BROKER_IDS)
        self._channels.close()
        self._settings.state_log.emit(ControllerResigned(controller_epoch=self.epoch.value, reason=reason))
        log.info("controller.resigned epoch=%d reason=%s", self.epoch.value, reason)
        await self._channels.closed()

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Move leaders away from a broker; return the partitions it still leads.

        Raises:
            StaleBrokerEpochError, BrokerNotAvailableError: see `BrokerEvents.controlled_shutdown`.
        """
        return await self._brokers.controlled_shutdown(broker_id, broker_epoch)

    def statistics(self, controller_id: int) -> ControllerStatistics:
        """Return the gauges of this term."""
        return statistics_of(self._context, controller_id)

    def is_deleting(self, topic: str) -> bool:
        """Whether a topic is to be deleted."""
        return topic in self._context.deleting

    async def elect_unclean(self, topic: str | None = None) -> None:
        """Events UncleanLeaderElectionEnable and, for one topic, TopicUncleanLeaderElectionEnable: elect again."""
        await self._partitions.elect_missing(trigger="unclean_enabled", topic=topic)

    def _enqueue(self, name: str, process: Callable[[], Awaitable[object]]) -> None:
        async def while_in_office() -> None:
            if self._in_office:
                await process()

        self._put(name, while_in_office)

    def _answered(self, request: ControlRequest, response: ApiMessage) -> None:
        """A broker has answered: the consequence is an event of its own."""
        if response.error_code:
            log.error("answer.refused broker=%d api=%s error=%d", request.broker_id, request.api, response.error_code)
        if request.api == "LeaderAndIsr":
            self._enqueue("LeaderAndIsrResponseReceived", partial(self._leader_and_isr_answered, request, response))
        elif request.api == "UpdateMetadata":
            self._enqueue("UpdateMetadataResponseReceived", _nothing_follows)
        elif request.deletes:
            errors = {(e.topic_name, e.partition_index): e.error_code for e in response.partition_errors}
            deleting = {p: error for p, error in errors.items() if p[0] in self._context.deletion_started}
            if deleting:
                answered = partial(self._deletion.answered, request.broker_id, response.error_code, deleting)
                self._enqueue("TopicDeletionStopReplicaResponseReceived", answered)

    async def _leader_and_isr_answered(self, request: ControlRequest, response: ApiMessage) -> None:
        """Event LeaderAndIsrResponseReceived: update which replicas are on a failed log directory."""
        if response.error_code:
            return
        errors = {(e.topic_name, e.partition_index): ErrorCode(e.error_code) for e in response.partition_errors}
        refused = {f"{topic}-{number}": error.name for (topic, number), error in errors.items() if error}
        if refused:
            log.info("answer.leader_and_isr broker=%d refused=%s", request.broker_id, refused)
        newly = self._context.dirs_answered(request.broker_id, errors)
        if newly:
            await self._offline.handle([(*p, request.broker_id) for p in newly], trigger="log_dir_failure")


async def _nothing_follows() -> None:
    """Event UpdateMetadataResponseReceived: an error was logged on arrival; nothing else to do."""

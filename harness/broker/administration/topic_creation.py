"""Creates topics: for CreateTopics, for a client whose Metadata names an unknown one, and for the coordinators.

Not the controller's work: the broker that serves the request checks it and writes it to ZooKeeper, where the controller
finds it. The topic is usable once this broker's metadata names a leader for every partition.
"""

import logging
import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from harness.broker.configs.config import BrokerConfig
from harness.broker.metadata_cache import MetadataCache
from harness.broker.replicas.purgatory import Purgatory
from harness.broker.topics import NewTopic, TopicPlanner, TopicRefused, TopicRequest
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.zookeeper.client import ZooKeeperError
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.topics import TopicExists, create_topic
from harness.broker.zookeeper.znodes import TOPICS, new_uuid
from harness.events import NO_LEADER
from harness.values import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _AllLed:
    """Waits until every partition of every topic has a leader in the metadata cache."""

    metadata: MetadataCache
    partitions: Mapping[str, int]
    """Number of partitions of each topic."""

    def missing(self) -> list[str]:
        """Return the topics that are not there yet, sorted."""
        return [topic for topic, count in sorted(self.partitions.items()) if self._led(topic) < count]

    def try_complete(self, changed: str | None) -> bool:
        """Whether all exist; every topic is checked at every change."""
        return not self.missing()

    def _led(self, topic: str) -> int:
        return sum(info.leader != NO_LEADER for info in self.metadata.partitions(topic))


@dataclass(slots=True)
class _AllGone:
    """Waits until the metadata cache has none of some topics any more."""

    metadata: MetadataCache
    topics: Collection[str]

    def remaining(self) -> list[str]:
        """Return the topics that are still there, sorted."""
        return [topic for topic in sorted(self.topics) if self.metadata.partitions(topic)]

    def try_complete(self, changed: str | None) -> bool:
        """Whether all are gone; every topic is checked at every change."""
        return not self.remaining()


@dataclass(slots=True)
class TopicCreator:
    """Creates topics and waits until they are usable."""

    config: BrokerConfig
    metadata: MetadataCache
    session: ZooKeeperSession
    rng: random.Random
    _waiting: Purgatory[str] = field(default_factory=Purgatory)

    async def create(self, request: TopicRequest, *, validate_only: bool = False) -> NewTopic:
        """Write a topic to ZooKeeper, or only check the request, and return it as written.

        Raises:
            TopicRefused: a rule is broken, the topic exists, or ZooKeeper did not take it.
        """
        try:
            zk = self.session.current
            planner = TopicPlanner(
                alive_brokers=[broker.broker_id for broker in self.metadata.alive_brokers()],
                racks=self.metadata.racks(),
                default_partitions=self.config["num.partitions"],
                default_replication_factor=self.config["default.replication.factor"],
                topics=frozenset(await zk.children(TOPICS)),
            )
            topic = planner.plan(request, self.rng)
            if not (validate_only and self.metadata.rules.creations_can_be_tried):
                await create_topic(zk, topic.name, topic.assignment, topic.config, new_uuid(self.rng))
                _log.info("topic.created name=%s assignment=%s", topic.name, topic.assignment)
        except TopicExists:
            raise TopicRefused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{request.name}' already exists.") from None
        except ZooKeeperError as error:
            _log.warning("topic.creation failed name=%s error=%r", request.name, error)
            raise TopicRefused(ErrorCode.UNKNOWN_SERVER_ERROR, f"ZooKeeper did not take it: {error!r}") from error
        return topic

    async def create_on_demand(self, name: str) -> ErrorCode:
        """Create a topic that a Metadata request names, and return its error: at best, that it has no leader yet."""
        return await self._create_unless_there(self._internal(name) or TopicRequest(name=name))

    async def create_internal(self, name: str) -> ErrorCode:
        """Create `__consumer_offsets` or `__transaction_state`, and return why it cannot be used yet.

        With fewer live brokers than its replicas it is not created: it would have too few for ever.
        """
        request = self._internal(name)
        assert request is not None, f"{name} is no internal topic"
        return await self._create_unless_there(request)

    def _internal(self, name: str) -> TopicRequest | None:
        """Return an internal topic by its properties; None for any other."""
        if name == OFFSETS_TOPIC:
            prefix, config = "offsets.topic", {"compression.type": "producer"}
        elif name == TRANSACTIONS_TOPIC:
            prefix = "transaction.state.log"
            config = {
                "unclean.leader.election.enable": "false",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(self.config["transaction.state.log.min.isr"]),
            }
        else:
            return None
        return TopicRequest(
            name=name,
            partitions=self.config[f"{prefix}.num.partitions"],
            replication_factor=self.config[f"{prefix}.replication.factor"],
            config={
                "segment.bytes": str(self.config[f"{prefix}.segment.bytes"]),
                **config,
                "cleanup.policy": "compact",
            },
        )

    async def wait_led(self, partitions: Mapping[str, int], timeout_s: float) -> list[str]:
        """Wait until the topics have leaders everywhere, and return those that have not in time."""
        operation = _AllLed(self.metadata, partitions)
        await self._waiting.wait(operation, partitions, timeout_s)
        return operation.missing()

    async def wait_gone(self, topics: Collection[str], timeout_s: float) -> list[str]:
        """Wait until this broker has removed deleted topics; return those it still has when the time is over."""
        operation = _AllGone(self.metadata, topics)
        if operation.remaining():
            await self._waiting.wait(operation, topics, timeout_s)
        return operation.remaining()

    def metadata_changed(self, topics: Iterable[str]) -> None:
        """Look again at requests that wait for these topics."""
        for topic in topics:
            self._waiting.check(topic)

    async def _create_unless_there(self, request: TopicRequest) -> ErrorCode:
        try:
            await self.create(request)
        except TopicRefused as refused:
            if refused.error is not ErrorCode.TOPIC_ALREADY_EXISTS:
                _log.info("topic.refused name=%s reason=%s", request.name, refused)
                return refused.error
        return ErrorCode.LEADER_NOT_AVAILABLE

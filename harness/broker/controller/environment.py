"""Shared parts of one active controller."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from harness.broker.configs.config import BrokerConfig
from harness.broker.configs.config_types import ConfigError
from harness.broker.configs.topic_properties import parse_topic_config
from harness.broker.controller.context import ControllerContext
from harness.broker.controller.fenced_writes import FencedWrites
from harness.broker.controller.request_batch import ControlRequest, RequestBatch
from harness.broker.controller.selectors import Selector, Strategy
from harness.broker.rules import ProtocolRules
from harness.broker.state_log import StateLog
from harness.broker.wire.transport import Transport
from harness.broker.zookeeper.client import Watch, WatchType
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.topics import read_topic_config
from harness.broker.zookeeper.znodes import MalformedZnode
from harness.values import TopicPartition

UNCLEAN = "unclean.leader.election.enable"


@dataclass(slots=True)
class ControllerCounters:
    """A broker's counters over all its terms as controller."""

    unclean_leader_elections: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """Settings that a broker passes to its controller."""

    config: BrokerConfig
    session: ZooKeeperSession
    transport: Transport
    state_log: StateLog
    rules: ProtocolRules = field(default_factory=ProtocolRules)
    counters: ControllerCounters = field(default_factory=ControllerCounters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One controller's view, its writes, its requests to brokers, and its event queue."""

    context: ControllerContext
    session: ZooKeeperSession
    writes: FencedWrites
    batch: RequestBatch
    send: Callable[[ControlRequest], None]
    enqueue: Callable[[str, Callable[[], Awaitable[object]]], None]
    """Queue an event by name; it is carried out only while this controller is active."""
    counters: ControllerCounters
    unclean_default: Callable[[], bool]
    """The broker's own `unclean.leader.election.enable`."""
    rules: ProtocolRules
    selectors: Mapping[Strategy, Selector]
    profile: str = "2.5"
    """Kafka's version of the selectors: 2.5 or 0.8."""

    @property
    def unclean_empties_isr(self) -> bool:
        """Kafka 0.8: if unclean election is allowed, the last member leaves the ISR too."""
        return self.profile == "0.8"

    @property
    def state_log(self) -> StateLog:
        """The controller's state-change log."""
        return self.writes.state_log

    async def unclean_allowed(self, topic: str) -> bool | str:
        """Return whether a replica of this topic outside the ISR may lead; the reason if that cannot be read."""
        try:
            config = await read_topic_config(self.session.current, topic)
            own = parse_topic_config({UNCLEAN: config[UNCLEAN]}) if UNCLEAN in config else {}
        except (MalformedZnode, ConfigError) as error:
            return f"the topic's configuration cannot be read: {error}"
        return bool(own.get(UNCLEAN, self.unclean_default()))

    def on_watch(self, name: str, process: Callable[[], Awaitable[object]]) -> Watch:
        """Return a handler that queues an event, whatever the watch reports."""

        def handler(kind: WatchType, path: str) -> None:
            self.enqueue(name, process)

        return handler

    def send_batch(self) -> None:
        """Pass the whole batch to the channels."""
        for request in self.batch.take():
            self.send(request)

    def tell_metadata(self, brokers: Iterable[int], partitions: Iterable[TopicPartition] = ()) -> None:
        """Send brokers the live brokers, and the leaders of these partitions."""
        self.batch.begin()
        self.batch.add_update_metadata(brokers, partitions)
        self.send_batch()

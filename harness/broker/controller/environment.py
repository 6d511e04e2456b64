"""What the parts of one active controller work with."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from harness.broker.config import BrokerConfig
from harness.broker.controller.context import ControllerContext, TopicPartition
from harness.broker.controller.fenced_writes import FencedWrites
from harness.broker.controller.request_batch import ControlRequest, RequestBatch
from harness.broker.state_log import StateLog
from harness.broker.wire.transport import Transport
from harness.broker.zookeeper.client import Watch, WatchType
from harness.broker.zookeeper.session import ZooKeeperSession


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """What a broker gives its controller."""

    config: BrokerConfig
    session: ZooKeeperSession
    transport: Transport
    state_log: StateLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One controller's view, its way to write, and its ways to tell the brokers and to queue events."""

    context: ControllerContext
    session: ZooKeeperSession
    writes: FencedWrites
    batch: RequestBatch
    send: Callable[[ControlRequest], None]
    enqueue: Callable[[str, Callable[[], Awaitable[None]]], None]
    """Queue an event by name; it is carried out only while this controller is in office."""
    unclean_default: bool
    """The broker's own `unclean.leader.election.enable`."""

    @property
    def state_log(self) -> StateLog:
        """Where the controller says what it does."""
        return self.writes.state_log

    def on_watch(self, name: str, process: Callable[[], Awaitable[None]]) -> Watch:
        """Return a handler that queues an event, whatever the watch reports."""

        def handler(kind: WatchType, path: str) -> None:
            self.enqueue(name, process)

        return handler

    def send_batch(self) -> None:
        """Hand everything that the batch holds to the channels."""
        for request in self.batch.take():
            self.send(request)

    def tell_metadata(self, brokers: Iterable[int], partitions: Iterable[TopicPartition] = ()) -> None:
        """Tell brokers which brokers live, and who leads these partitions."""
        self.batch.begin()
        self.batch.add_update_metadata(brokers, partitions)
        self.send_batch()

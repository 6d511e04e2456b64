"""Every broker's controller: runs for election, acts while elected, and resigns when it is not any more.

After Kafka's `KafkaController`. Every change is an event on one queue; watches, requests and answers only enqueue.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from harness.broker.configs.config import BrokerConfig
from harness.broker.controller.active import ActiveController
from harness.broker.controller.assignment import Assignment
from harness.broker.controller.context import ControllerContext
from harness.broker.controller.election import NO_CONTROLLER, read_controller, register_and_increment
from harness.broker.controller.environment import UNCLEAN, ControllerSettings
from harness.broker.controller.errors import (
    BrokerNotAvailableError,
    ControllerMovedError,
    StaleBrokerEpochError,
)
from harness.broker.controller.event_queue import EventQueue
from harness.broker.controller.fenced_writes import FencedWrites
from harness.broker.controller.reassignment_requests import Reassigned, Wish
from harness.broker.controller.replica_elections import ELECTION_EVENT, ElectionKind, ElectionResult
from harness.broker.controller.statistics import ControllerStatistics, EventTimes
from harness.broker.rules import ProtocolRules
from harness.broker.state_log import StateLog
from harness.broker.unexpected import failed
from harness.broker.wire.transport import Transport
from harness.broker.zookeeper.client import Delete, SessionExpired, WatchType
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.znodes import CONTROLLER, ControllerZnode
from harness.events import ControllerMoved
from harness.values import TopicPartition

log = logging.getLogger(__name__)

T = TypeVar("T")

GIVE_UP_PAUSE_S = 1.0
"""After a failed take-over: other brokers go first, and a lasting cause is met once a second."""


EXPIRED, MOVED = "session expired", "moved"
REPLACED = (EXPIRED, MOVED)
"""Reasons to resign that another controller causes."""


class Controller:
    """One broker's controller, active or not."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        session: ZooKeeperSession,
        transport: Transport,
        state_log: StateLog,
        wall_ms: Callable[[], int],
        rules: ProtocolRules | None = None,
    ) -> None:
        """`wall_ms` gives milliseconds since 1970, for the timestamp in `/controller`."""
        self._settings = ControllerSettings(
            config=config,
            session=session,
            transport=transport,
            state_log=state_log,
            rules=rules or ProtocolRules(),
        )
        self._unclean_default: bool = config[UNCLEAN]
        self._wall_ms = wall_ms
        self._broker_id = config.broker_id
        self._controller_id = NO_CONTROLLER
        self._active: ActiveController | None = None
        self._answers: dict[asyncio.Future[Any], str] = {}
        """What clients wait for, with the names of the events."""
        self._queue = EventQueue(
            state_log,
            moved=self._maybe_resign,
            stuck=self._trigger_move,
            controller_epoch=lambda: self.controller_epoch,
        )

    @property
    def controller_id(self) -> int:
        """The controller that this broker knows; -1 for none."""
        return self._controller_id

    @property
    def is_active(self) -> bool:
        """Whether this broker believes to be controller."""
        return self._active is not None and self._controller_id == self._broker_id

    @property
    def controller_epoch(self) -> int:
        """The epoch of this broker's term; 0 while it is not controller."""
        return 0 if self._active is None else self._active.epoch.value

    @property
    def statistics(self) -> ControllerStatistics:
        """The nine gauges of Kafka's controller, at present."""
        if self._active is None or not self.is_active:
            return ControllerStatistics(active_controller_id=self._controller_id)
        return self._active.statistics(self._controller_id)

    @property
    def event_times(self) -> EventTimes:
        """The controller's current event, and the durations of events so far."""
        return self._queue.times

    @property
    def event_queue_size(self) -> int:
        """How many events wait for the controller."""
        return len(self._queue)

    @property
    def unclean_leader_elections(self) -> int:
        """How many leaders this broker has elected uncleanly since it started."""
        return self._settings.counters.unclean_leader_elections

    @property
    def channels(self) -> tuple[list[int], list[int]]:
        """The brokers to which there is a channel, and those that are taken for registered; none without an office."""
        return ([], []) if self._active is None else self._active.channels

    @property
    def unanswered(self) -> list[int]:
        """The brokers that have yet to answer a request of this controller."""
        return [] if self._active is None else self._active.unanswered

    @property
    def forgotten(self) -> list[str]:
        """Requests of clients that wait although every event has been handled."""
        left = self._answers.items() if self._queue.is_idle else ()
        return [event for answer, event in left if not answer.done()]

    @property
    def settled_context(self) -> ControllerContext | None:
        """The view of a controller that has handled every event."""
        return self._active.context if self._active is not None and self.is_idle else None

    @property
    def is_idle(self) -> bool:
        """Whether this broker is controller and has handled every event."""
        return self._active is not None and self._queue.is_idle

    def is_deleting(self, topic: str) -> bool:
        """Whether a topic is to be deleted, if this broker is controller and knows."""
        return self._active is not None and self._active.is_deleting(topic)

    async def start(self) -> None:
        """Begin to process events, the first of which runs for election; returns at once."""
        self._queue.start()
        self._queue.put("Startup", self._startup)

    async def stop(self) -> None:
        """Stop processing events and resign; `/controller` goes with the session. Idempotent."""
        await self._queue.stop()
        self._controller_id = NO_CONTROLLER
        await self._resign("stopped")

    async def before_new_session(self) -> None:
        """The session has expired: resign, and return once no event of the old session runs."""
        if self._queue.running:
            await self._queue.clear_and_put("Expire", self._expire).started.wait()

    async def after_new_session(self, broker_epoch: int) -> None:
        """The broker has registered in a new session: run for election again; returns at once."""
        log.info("controller.new_session broker_epoch=%d", broker_epoch)
        if self._queue.running:
            self._queue.put("RegisterBrokerAndReelect", self._reelect)

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Move leaders away from a broker that wants to stop; return the partitions it still leads.

        Raises:
            ControllerMovedError: this broker is not controller, or could not finish; ask again.
            StaleBrokerEpochError: an earlier incarnation of the broker asks.
            BrokerNotAvailableError: the broker is not registered.
        """
        return await self._ask(
            "ControlledShutdown",
            lambda active: active.controlled_shutdown(broker_id, broker_epoch),
            refusals=(StaleBrokerEpochError, BrokerNotAvailableError),
        )

    async def elect_leaders(
        self, partitions: Sequence[TopicPartition], kind: ElectionKind
    ) -> dict[TopicPartition, ElectionResult]:
        """Hold the elections that an administrator requests, and return the result of each partition.

        Raises:
            ControllerMovedError: this broker is not controller, or could not finish.
        """
        return await self._ask(ELECTION_EVENT, lambda active: active.elections.elect(partitions, kind, trigger="admin"))

    async def reassign(self, wishes: Mapping[TopicPartition, Wish]) -> dict[TopicPartition, Reassigned]:
        """Begin or cancel reassignments, and return the result of each request.

        Raises:
            ControllerMovedError: this broker is not controller, or could not finish.
        """
        return await self._ask("ApiPartitionReassignment", lambda active: active.reassignments.requested(wishes))

    async def reassignments(self, partitions: Sequence[TopicPartition] | None) -> dict[TopicPartition, Assignment]:
        """Return the running reassignments, of some partitions or with None of all.

        Raises:
            ControllerMovedError: this broker is not controller.
        """

        async def running(active: ActiveController) -> dict[TopicPartition, Assignment]:
            return active.reassignments.running(partitions)

        return await self._ask("ListPartitionReassignments", running)

    async def _ask(
        self,
        event: str,
        work: Callable[[ActiveController], Awaitable[T]],
        *,
        refusals: tuple[type[Exception], ...] = (),
    ) -> T:
        """Handle a client's request as an event, and return its result or raise its error, if one of `refusals`.

        Raises:
            ControllerMovedError: this broker is not controller, or could not finish.
        """
        if not self._queue.running:
            raise ControllerMovedError(f"broker {self._broker_id} does not act as controller any more")
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._answers[answer] = event
        answer.add_done_callback(self._answers.pop)

        def refuse(error: Exception) -> None:
            if not answer.done():
                answer.set_exception(error)

        async def process() -> None:
            if self._active is None:
                refuse(ControllerMovedError(f"broker {self._broker_id} is not the controller"))
                return
            try:
                result = await work(self._active)
            except refusals as error:
                refuse(error)
            except Exception as error:
                refuse(ControllerMovedError(str(error)))
                raise
            else:
                if not answer.done():
                    answer.set_result(result)

        preempted = ControllerMovedError("the controller's session has ended")
        self._queue.put(event, process, lambda: refuse(preempted))
        return await answer

    def topic_configured(self, topic: str, config: Mapping[str, Any]) -> None:
        """A topic's configuration was read: if it allows unclean election, leaderless partitions are tried again."""

        async def process() -> None:
            if self._active is not None:
                await self._active.elect_unclean(topic)

        if self.is_active and config[UNCLEAN]:
            self._queue.put("TopicUncleanLeaderElectionEnable", process)

    def broker_configured(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """This broker's own configuration has changed, and with it perhaps the default of unclean election."""
        self._unclean_default = now[UNCLEAN]

        async def process() -> None:
            if self._active is not None:
                await self._active.elect_unclean()

        if self.is_active and now[UNCLEAN] and not before[UNCLEAN]:
            self._queue.put("UncleanLeaderElectionEnable", process)

    async def _startup(self) -> None:
        await self._arm()
        await self._elect()

    async def _reelect(self) -> None:
        await self._maybe_resign()
        await self._elect()

    async def _expire(self) -> None:
        self._controller_id = NO_CONTROLLER
        await self._resign(EXPIRED)

    async def _elect(self) -> None:
        """Become controller unless there is one."""
        zk, state_log = self._settings.session.current, self._settings.state_log
        self._controller_id = await read_controller(zk)
        if self._controller_id != NO_CONTROLLER:
            return
        try:
            znode = ControllerZnode(broker_id=self._broker_id, timestamp_ms=self._wall_ms())
            epoch = await register_and_increment(zk, znode, state_log=state_log)
            log.info("controller.elected epoch=%d", epoch.value)
            self._controller_id = self._broker_id
            await self._resign("elected anew")
            self._active = ActiveController(self._settings, epoch, self._queue.put, lambda: self._unclean_default)
            await self._active.take_over()
        except ControllerMovedError as error:
            log.info("election.lost reason=%s", error)
            if self._active is not None:
                state_log.emit(ControllerMoved(controller_epoch=self.controller_epoch, event="failover"))
            await self._maybe_resign()
        except SessionExpired:
            raise  # the office is lost with the session, and event Expire says so
        except Exception as error:  # noqa: BLE001  logged; another broker is elected
            failed(log, error, "election.failed")
            await self._trigger_move()
            await asyncio.sleep(GIVE_UP_PAUSE_S)

    async def _maybe_resign(self) -> None:
        """Read the controller, and resign if it is another broker."""
        await self._arm()
        self._controller_id = await read_controller(self._settings.session.current)
        if self._controller_id != self._broker_id:
            await self._resign(MOVED)

    async def _trigger_move(self) -> None:
        """Give up the role, so that another broker, or this one again, is elected."""
        self._controller_id = await read_controller(self._settings.session.current)
        held, epoch = self.is_active, None if self._active is None else self._active.epoch
        await self._resign("gave up")
        if held and epoch is not None:
            self._controller_id = NO_CONTROLLER
            writes = FencedWrites(self._settings.session, epoch, self._settings.state_log, self._settings.rules)
            try:
                await writes.write(Delete(path=CONTROLLER))
            except ControllerMovedError:
                log.info("controller.moved while giving up")

    async def _resign(self, reason: str) -> None:
        if reason in REPLACED and not self._settings.rules.controller_resigns_when_replaced:
            return
        active, self._active = self._active, None
        if active is not None:
            await active.resign(reason)

    async def _arm(self) -> None:
        """Register for changes of `/controller`, whether it exists or not."""
        zk = self._settings.session.current
        zk.watch_node(CONTROLLER, self._controller_changed)
        await zk.exists(CONTROLLER)

    def _controller_changed(self, kind: WatchType, path: str) -> None:
        if kind in (WatchType.CREATED, WatchType.DATA):
            self._queue.put("ControllerChange", self._maybe_resign)
        else:
            self._queue.put("Reelect", self._reelect)

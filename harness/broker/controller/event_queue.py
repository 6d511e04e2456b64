"""The controller's events, one after the other: a single task takes them in order, so no lock is needed.

After Kafka's `ControllerEventManager`. An event that fails in any way is logged and dropped, never retried.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from harness.broker.background import reported
from harness.broker.controller.errors import ControllerMovedError
from harness.broker.controller.request_batch import PendingRequestsError
from harness.broker.controller.statistics import EventTimes
from harness.broker.state_log import StateLog
from harness.broker.unexpected import failed
from harness.broker.zookeeper.client import SessionExpired
from harness.events import ControllerEvent, ControllerMoved

log = logging.getLogger(__name__)


class QueuedEvent:
    """One event: it is processed or pre-empted, never both."""

    def __init__(
        self, name: str, process: Callable[[], Awaitable[object]], preempt: Callable[[], None] | None, queued_at: float
    ) -> None:
        self.name = name
        self.queued_at = queued_at
        self.started = asyncio.Event()
        """Set once processing has begun; every earlier event has ended by then."""
        self._process = process
        self._preempt = preempt
        self._spent = False

    async def process(self) -> None:
        """Carry out the event, unless it is spent."""
        if not self._spent:
            self._spent = True
            self.started.set()
            await self._process()

    def preempt(self) -> None:
        """Notify the waiter of the event that it will not be carried out, unless it is spent."""
        if not self._spent:
            self._spent = True
            if self._preempt is not None:
                self._preempt()


class EventQueue:
    """First in, first out, with one consumer.

    `moved` is awaited when an event finds that another broker is controller, `stuck` when brokers cannot be notified of
    a change any more; `controller_epoch` is for the state-change log.
    """

    def __init__(
        self,
        state_log: StateLog,
        *,
        moved: Callable[[], Awaitable[object]],
        stuck: Callable[[], Awaitable[object]],
        controller_epoch: Callable[[], int],
    ) -> None:
        self.times = EventTimes()
        self._state_log = state_log
        self._moved = moved
        self._stuck = stuck
        self._controller_epoch = controller_epoch
        self._events: deque[QueuedEvent] = deque()
        self._arrived = asyncio.Event()
        self._consumer: asyncio.Task[None] | None = None
        self._handling = False

    def __len__(self) -> int:
        """How many events wait."""
        return len(self._events)

    @property
    def is_idle(self) -> bool:
        """Whether every event has been handled."""
        return not self._events and not self._handling

    @property
    def running(self) -> bool:
        """Whether events are being processed."""
        return self._consumer is not None and not self._consumer.done()

    def start(self) -> None:
        """Begin to process events."""
        self._consumer = asyncio.create_task(self._consume(), name="controller-events")
        self._consumer.add_done_callback(reported)

    async def stop(self) -> None:
        """Stop processing, in the middle of an event if need be; pre-empt what is queued. Idempotent."""
        self._preempt_all()
        if self._consumer is not None:
            self._consumer.cancel()
            await asyncio.gather(self._consumer, return_exceptions=True)
            self._consumer = None

    def put(
        self, name: str, process: Callable[[], Awaitable[object]], preempt: Callable[[], None] | None = None
    ) -> QueuedEvent:
        """Append an event and return it."""
        event = QueuedEvent(name, process, preempt, asyncio.get_running_loop().time())
        self._events.append(event)
        self._arrived.set()
        return event

    def clear_and_put(self, name: str, process: Callable[[], Awaitable[object]]) -> QueuedEvent:
        """Pre-empt all queued events, append this one and return it."""
        self._preempt_all()
        return self.put(name, process)

    def _preempt_all(self) -> None:
        queued, self._events = self._events, deque()
        for event in queued:
            event.preempt()

    async def _consume(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._events:
                self._handling = True
                try:
                    await self._handle(self._events.popleft())
                finally:
                    self._handling = False

    async def _handle(self, event: QueuedEvent) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        epoch = self._controller_epoch()
        outcome = "ok"
        self.times.begin(event.name, began - event.queued_at)
        try:
            try:
                await event.process()
            except ControllerMovedError as error:
                outcome = "moved"
                log.info("event.moved name=%s reason=%s", event.name, error)
                self._state_log.emit(ControllerMoved(controller_epoch=epoch, event=event.name))
                await self._moved()
            except PendingRequestsError:
                outcome = PendingRequestsError.__name__
                log.exception("event.stuck name=%s", event.name)
                await self._stuck()
        except SessionExpired as error:
            outcome = SessionExpired.__name__
            log.warning("event.interrupted name=%s reason=%s", event.name, error)
        except Exception as error:  # noqa: BLE001  logged; the events behind it are still processed
            outcome = type(error).__name__
            failed(log, error, "event.failed name=%s", event.name)
        self.times.end(clock() - began)
        self._state_log.emit(
            ControllerEvent(
                name=event.name,
                queued_ms=(began - event.queued_at) * 1000,
                duration_ms=(clock() - began) * 1000,
                outcome=outcome,
            )
        )

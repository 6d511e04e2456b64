import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from harness.broker.controller.errors import ControllerMovedError
from harness.broker.controller.event_queue import EventQueue
from harness.broker.controller.request_batch import PendingRequestsError
from harness.broker.zookeeper.client import SessionExpired
from harness.events import ControllerEvent, ControllerMoved
from tests.broker.controller.world import settle
from tests.broker.recording_state_log import RecordingStateLog


@dataclass
class Bench:
    log: RecordingStateLog = field(default_factory=lambda: RecordingStateLog(events=[]))
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = EventQueue(
            self.log, moved=self.does("moved"), stuck=self.does("stuck"), controller_epoch=lambda: 4
        )

    def does(self, name: str, error: Exception | None = None) -> Callable[[], Awaitable[None]]:
        async def process() -> None:
            await asyncio.sleep(0)
            self.done.append(name)
            if error is not None:
                raise error

        return process

    def outcomes(self) -> list[tuple[str, str]]:
        return [(e.name, e.outcome) for e in self.log.events if isinstance(e, ControllerEvent)]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    made.queue.start()
    yield made
    await made.queue.stop()


async def test_events_are_processed_one_after_the_other_in_order(bench: Bench) -> None:
    for name in "abc":
        bench.queue.put(name, bench.does(name))
    await settle()
    assert bench.done == ["a", "b", "c"]
    assert bench.outcomes() == [("a", "ok"), ("b", "ok"), ("c", "ok")]


@pytest.mark.parametrize(
    ("error", "outcome", "then"),
    [
        pytest.param(ControllerMovedError("x"), "moved", ["moved"], id="moved: look whether to resign"),
        pytest.param(PendingRequestsError("x"), "PendingRequestsError", ["stuck"], id="stuck: give the office up"),
        pytest.param(SessionExpired("x"), "SessionExpired", [], id="the session's end costs only its event"),
        pytest.param(TypeError("bug"), "TypeError", [], id="so does an unexpected error"),
    ],
)
async def test_an_event_that_fails_is_lost_and_the_next_one_runs(
    bench: Bench, error: Exception, outcome: str, then: list[str]
) -> None:
    bench.queue.put("bad", bench.does("bad", error))
    bench.queue.put("good", bench.does("good"))
    await settle()
    assert bench.done == ["bad", *then, "good"]
    assert bench.outcomes() == [("bad", outcome), ("good", "ok")]
    moved = [event for event in bench.log.events if isinstance(event, ControllerMoved)]
    assert moved == ([ControllerMoved(controller_epoch=4, event="bad")] if outcome == "moved" else [])


async def test_clear_and_put_preempts_what_waits_but_not_what_runs(bench: Bench) -> None:
    gate = asyncio.Event()

    async def running() -> None:
        await gate.wait()
        bench.done.append("running")

    bench.queue.put("running", running, lambda: bench.done.append("running preempted"))
    await settle()
    bench.queue.put("waiting", bench.does("waiting"), lambda: bench.done.append("waiting preempted"))
    bench.queue.put("indifferent", bench.does("indifferent"))
    last = bench.queue.clear_and_put("last", bench.does("last"))
    await settle()
    assert not last.started.is_set()
    gate.set()
    await last.started.wait()
    assert bench.done == ["waiting preempted", "running"]
    await settle()
    assert bench.done == ["waiting preempted", "running", "last"]


async def test_stop_preempts_what_waits_and_breaks_off_what_runs(bench: Bench) -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    bench.queue.put("running", forever)
    await settle()
    bench.queue.put("waiting", bench.does("waiting"), lambda: bench.done.append("waiting preempted"))
    assert bench.queue.running
    await bench.queue.stop()
    await bench.queue.stop()
    assert (bench.done, bench.queue.running) == (["waiting preempted"], False)

"""Errors that a broker does not foresee are lines of its state-change log."""

import asyncio
from dataclasses import dataclass, field

import pytest

from harness.broker.background import begin
from harness.broker.log.batch import CorruptBatch
from harness.broker.metadata_cache import MetadataCache
from harness.broker.transactions.transaction import ImpossibleTransition
from harness.broker.unexpected import report, report_to
from harness.broker.zookeeper.client import SessionExpired
from harness.events import Event, UnexpectedError


@dataclass
class Log:
    """Keeps what is emitted."""

    events: list[Event] = field(default_factory=list)
    next_seq: int = 0

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def session_changed(self, session_id: int) -> None:
        """Not of interest."""

    def registered(self, broker_epoch: int) -> None:
        """Not of interest."""


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(KeyError("orders"), "KeyError: 'orders'", id="a mistake"),
        pytest.param(ImpossibleTransition("t-1"), "ImpossibleTransition: t-1", id="a state that cannot be"),
        pytest.param(ValueError("<a.B object at 0x7f01>"), "ValueError: <a.B object>", id="no addresses in memory"),
        pytest.param(OSError(28, "no space"), None, id="a disk that is full"),
        pytest.param(TimeoutError(), None, id="a peer that does not answer"),
        pytest.param(SessionExpired(), None, id="a session that is over"),
        pytest.param(CorruptBatch("torn"), None, id="damaged records"),
        pytest.param(asyncio.CancelledError(), None, id="a task that is ended"),
    ],
)
async def test_what_is_not_foreseen(error: BaseException, text: str | None) -> None:
    log = Log()
    report_to(log)
    report(error, "work")
    expected = [] if text is None else [UnexpectedError(operation="work", error=text, at="")]
    assert log.events == expected


async def test_a_task_that_ends_with_an_error_says_where(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        MetadataCache().partition(*())  # type: ignore[call-arg]

    log, tasks = Log(), set[asyncio.Task[None]]()
    report_to(log)
    await asyncio.wait([begin(tasks, work(), "work")])
    await asyncio.sleep(0)
    (event,) = log.events
    assert isinstance(event, UnexpectedError)
    assert (event.operation, event.error.partition(":")[0], tasks) == ("task.failed name=work", "TypeError", set())
    assert "task.failed name=work" in caplog.text

"""Which errors does the broker's code not foresee? Each one is logged and becomes a line of the state-change log.

Foreseen are errors of disks, networks and peers, and those that the broker itself declares, which name what happened.
All others are mistakes in the broker. Kafka logs them too: "Error when handling request", "Uncaught exception in
scheduled task", "Unexpected error".
"""

import asyncio
import logging
import re
from contextvars import ContextVar
from pathlib import Path
from traceback import walk_tb

from harness.broker.state_log import StateLog
from harness.events import UnexpectedError

_BROKER = Path(__file__).parent
_PACKAGE = __name__.rpartition(".")[0]
_FORESEEN = (OSError, EOFError, asyncio.CancelledError)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Of an object in memory, other each time."""
_NUMBERED = re.compile(r"Task-\d+")
"""Name of a task that has none of its own; the number counts all tasks of the process."""
_MESSAGE_CHARACTERS = 300

_state_log: ContextVar[StateLog | None] = ContextVar("state_log", default=None)


def report_to(state_log: StateLog) -> None:
    """Let everything that is started from this context report to a broker's log."""
    _state_log.set(state_log)


def is_unexpected(error: BaseException) -> bool:
    """Return whether an error is a mistake in the broker; its own errors may say so by `is_mistake`."""
    if isinstance(error, _FORESEEN):
        return False
    return not type(error).__module__.startswith(_PACKAGE) or getattr(error, "is_mistake", False)


def report(error: BaseException, operation: str) -> None:
    """Write an error that is not foreseen to the state-change log."""
    state_log = _state_log.get()
    if state_log is not None and is_unexpected(error):
        text = _ADDRESS.sub("", f"{type(error).__name__}: {error}")[:_MESSAGE_CHARACTERS]
        state_log.emit(UnexpectedError(operation=operation, error=text, at=_raised_at(error)))


def failed(log: logging.Logger, error: BaseException, message: str, *args: object) -> None:
    """Log an error with its stack trace, and report it."""
    log.error(message, *args, exc_info=error)
    report(error, message % args)


def task_ended(log: logging.Logger, task: "asyncio.Task[object]") -> None:
    """Log and report what ended a task that is not awaited."""
    if not task.cancelled() and (error := task.exception()) is not None:
        name = task.get_name()
        if _NUMBERED.fullmatch(name):
            name = getattr(task.get_coro(), "__qualname__", "")
        failed(log, error, "task.failed name=%s", name)


def _raised_at(error: BaseException) -> str:
    """Return the innermost place within the broker; reads no source files, which a simulation has not."""
    places = [
        (Path(frame.f_code.co_filename), line, frame.f_code.co_name) for frame, line in walk_tb(error.__traceback__)
    ]
    within = [place for place in places if place[0].is_relative_to(_BROKER)]
    if not within:
        return ""
    path, line, name = within[-1]
    return f"{path.relative_to(_BROKER)}:{line} {name}"

"""Receivers of a run's progress, and their wording: the terminal's live display, a task's log, or none."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

log = logging.getLogger(__name__)

SILENCE_S = 20.0
"""After this long without output, users assume that a program hangs."""


class Listener(Protocol):
    """Receives a line for each event, as it happens."""

    def message(self, text: str) -> None:
        """Something worth a line happened, e.g. kill broker 2 (leader of orders-0): confirmed."""
        ...

    def doing(self, what: str) -> bool:
        """Something that takes a while begins, or has ended where `what` is empty; return whether that can be seen."""
        ...


class Progress(Listener, Protocol):
    """Receives phases too."""

    def phase_started(self, phase: str) -> None:
        """A phase begins."""
        ...

    def phase_finished(self, phase: str, duration_s: float, error: str) -> None:
        """A phase is over; `error` is empty when it did what it should."""
        ...


class Silent:
    """Receives progress and drops it."""

    def doing(self, what: str) -> bool:
        """Drop it."""
        return False

    def phase_started(self, phase: str) -> None:
        """Drop it."""

    def phase_finished(self, phase: str, duration_s: float, error: str) -> None:
        """Drop it."""

    def message(self, text: str) -> None:
        """Drop it."""


class Logged:
    """Writes to the log, for a scheduler's task."""

    def doing(self, what: str) -> bool:
        """Do nothing: a log shows nothing live."""
        return False

    def phase_started(self, phase: str) -> None:
        """Log it."""
        log.info("%s.started", phase)

    def phase_finished(self, phase: str, duration_s: float, error: str) -> None:
        """Log it."""
        if error:
            log.error("%s.failed duration_s=%.1f error=%s", phase, duration_s, error)
        else:
            log.info("%s.complete duration_s=%.1f", phase, duration_s)

    def message(self, text: str) -> None:
        """Log it."""
        log.info("%s", text)


def number_of(count: int, what: str) -> str:
    """Return a count with its noun, as text: 1 run, 2 runs."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


@contextmanager
def step(progress: Listener, what: str) -> Iterator[None]:
    """Report a step and its duration; only its start if it fails."""
    done = threading.Event()
    began_s = monotonic()

    def still_at_it() -> None:
        while not done.wait(SILENCE_S):
            progress.message(f"{what}: {monotonic() - began_s:.0f} s so far")

    if not progress.doing(what):
        threading.Thread(target=still_at_it, name="still-at-it", daemon=True).start()
    try:
        yield
    finally:
        done.set()
        progress.doing("")
    progress.message(f"{what}: done in {monotonic() - began_s:.1f} s")

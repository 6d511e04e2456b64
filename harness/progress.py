"""Who is told how a run goes on: the terminal's live display, a task's log, or nobody."""

import logging
from typing import Protocol

log = logging.getLogger(__name__)


class Progress(Protocol):
    """Told what happens, as it happens."""

    def phase_started(self, phase: str) -> None:
        """A phase begins."""
        ...

    def phase_finished(self, phase: str, duration_s: float, error: str) -> None:
        """A phase is over; `error` is empty when it did what it should."""
        ...

    def message(self, text: str) -> None:
        """Something worth a line happened, e.g. kill broker 2 (leader of orders-0): confirmed."""
        ...


class Silent:
    """Tells nobody."""

    def phase_started(self, phase: str) -> None:
        """Tell nobody."""

    def phase_finished(self, phase: str, duration_s: float, error: str) -> None:
        """Tell nobody."""

    def message(self, text: str) -> None:
        """Tell nobody."""


class Logged:
    """Tells the log, as a task of a scheduler wants it."""

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

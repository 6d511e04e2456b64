"""Is a run still carried out, by which process, and how far is it? From its folder alone."""

import socket
from dataclasses import dataclass
from enum import StrEnum

from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, PhaseEntry, entries


class State(StrEnum):
    """Whether a run is over."""

    RUNNING = "running"
    OVER = "over"
    ABANDONED = "abandoned"
    """Its process is gone, and it has no result of all phases."""
    ELSEWHERE = "elsewhere"
    """Another machine carries it out, or did."""
    NOT_STARTED = "not started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progressed:
    """How far a run is."""

    state: State
    entry: PhaseEntry | None
    """The last phase; None before the first."""

    @property
    def text(self) -> str:
        """Both in a few words."""
        if self.entry is None:
            return self.state
        phase = f"after {self.entry.phase}" if self.entry.over else f"in {self.entry.phase}"
        where = f" on {self.entry.host}" if self.state is State.ELSEWHERE else ""
        return f"{self.state}{where}" if self.state is State.OVER else f"{self.state}{where}, {phase}"


def progressed(folder: RunFolder) -> Progressed:
    """Return how far a run is.

    Raises:
        EvidenceError: its record of phases holds something else.
    """
    known = entries(folder) if folder.phases.exists() else []
    if not known:
        return Progressed(state=State.NOT_STARTED, entry=None)
    last = known[-1]
    return Progressed(state=_state(folder, known, last), entry=last)


def _state(folder: RunFolder, known: list[PhaseEntry], last: PhaseEntry) -> State:
    if last.phase is Phase.REPORT and last.over:
        return State.OVER
    if last.host != socket.gethostname():
        return State.ELSEWHERE
    if last.process is not None and last.process.alive():
        return State.RUNNING
    stopped = any(entry.phase is Phase.STOP and entry.over for entry in known)
    return State.OVER if stopped and folder.verdict.exists() and last.over else State.ABANDONED

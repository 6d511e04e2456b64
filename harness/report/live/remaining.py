"""How long will a run still take? As long as the last one of the same scenario, system and driver did from there on."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from harness.errors import EvidenceError, ScenarioError
from harness.scenario.file import scenario_of
from harness.scenario.model import Scenario
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, PhaseEntry, entries
from harness.store.result import RunResult

LOOKED_AT = 20
"""Earlier runs that are looked at for one that is alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Earlier:
    """A run that is alike and over."""

    name: str
    duration_s: float
    """Time under load that its scenario states."""
    log: list[PhaseEntry]

    def left(self, phase: Phase) -> timedelta | None:
        """Return the time from the begin of a phase to the end of the run; None if it has no such phase."""
        began = next((entry.began for entry in self.log if entry.phase is phase), None)
        ended = self.log[-1].ended
        return ended - began if began and ended else None


class Remaining:
    """Estimates of one run; earlier runs are looked for once."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def text(self, phase: Phase, began: datetime, load_left_s: float | None) -> str:
        """Return how long the run will still take, as text; empty if that is unknown.

        Args:
            phase: The phase that it is in, or that ended last.
            began: When that phase began.
            load_left_s: Time under load that is left by the schedule; None if that is unknown.
        """
        earlier = self._earlier
        if earlier is None or self._scenario is None or (left := earlier.left(phase)) is None:
            if load_left_s is None:
                return ""
            return f"at least {_duration_text(load_left_s)} of load, then collecting and judging"
        if phase in (Phase.START, Phase.DRIVE):
            left += timedelta(seconds=self._scenario.duration_s - earlier.duration_s)
        left_s = (began + left - datetime.now(UTC)).total_seconds()
        if left_s < 0:
            return f"{_duration_text(-left_s)} longer so far than {earlier.name} took"
        return f"about {_duration_text(left_s)}, as {earlier.name} took"

    @property
    def load_s(self) -> float | None:
        """Time under load that the scenario states; None if it cannot be read."""
        return self._scenario.duration_s if self._scenario else None

    @cached_property
    def _scenario(self) -> Scenario | None:
        with suppress(EvidenceError, ScenarioError):
            return scenario_of(self._folder)
        return None

    @cached_property
    def _earlier(self) -> _Earlier | None:
        return next(self._alike(), None)

    def _alike(self) -> Iterator[_Earlier]:
        if self._scenario is None:
            return
        wanted = (self._scenario.name, self._scenario.system, self._scenario.driver)
        root = self._folder.root
        others = (path for path in root.parent.glob(f"{self._scenario.name}-*") if path.name != root.name)
        newest = sorted(others, key=lambda path: path.name.split("-")[-2:], reverse=True)[:LOOKED_AT]
        for folder in map(RunFolder, newest):
            with suppress(EvidenceError, ScenarioError, OSError):
                result = RunResult.load(folder.verdict)
                log = entries(folder)
                whole = log and log[-1].phase is Phase.REPORT and not any(entry.error != "" for entry in log)
                if whole and (result.scenario, result.system, result.driver) == wanted:
                    duration_s = scenario_of(folder).duration_s
                    yield _Earlier(name=folder.run_id, duration_s=duration_s, log=log)


def _duration_text(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"

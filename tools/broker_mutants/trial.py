"""What became of one mutant: which schedules it changed, and what the checks made of these."""

from dataclasses import dataclass, field
from enum import StrEnum
from types import CodeType, FunctionType

from harness.sweep.summary import UNKNOWN
from harness.verdict import ExitCode
from tools.broker_mutants.mutants import Mutant

NO_HISTORY = "no history"


class Outcome(StrEnum):
    """What the battery makes of a mutant."""

    UNREACHED = "unreached"
    """No schedule's history differs from that of the intact broker."""
    UNSEEN = "unseen"
    """Histories differ, and all of them held."""
    IN_DOUBT = "in doubt"
    """Histories differ, and of some the checks cannot tell: UNKNOWN or INCONCLUSIVE where the intact broker held. So
    does a schedule without a history, which the broker, or the whole simulation, did not survive."""
    FOUND = "found"
    """A check says FAIL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """One schedule under a mutant."""

    differs: bool
    cpu_s: float
    error: str = ""
    """Why there is no history, in a sentence; else empty."""


@dataclass(slots=True, kw_only=True)
class Trial:
    """One mutant, as far as it was put to the battery."""

    mutant: Mutant
    changed: list[tuple[FunctionType, CodeType]]
    executed: list[int]
    """The schedules that execute what it changes, by their places in the battery."""
    simulated: dict[int, Simulated] = field(default_factory=dict)
    verdicts: dict[int, tuple[ExitCode, dict[str, str]]] = field(default_factory=dict)
    """Of the histories that differ, by place: what the run comes to, and what was found."""

    @property
    def differing(self) -> list[int]:
        """Places of the schedules whose history differs, or that have none."""
        return [place for place, each in sorted(self.simulated.items()) if each.differs]

    @property
    def errors(self) -> int:
        """How many schedules left no history."""
        return sum(bool(each.error) for each in self.simulated.values())

    @property
    def violated(self) -> int | None:
        """The place of the first schedule in which a check says FAIL."""
        places = (place for place, (code, _) in sorted(self.verdicts.items()) if code is ExitCode.VIOLATED)
        return next(places, None)

    def outcome(self) -> Outcome:
        """Return what the battery makes of it."""
        if not self.differing:
            return Outcome.UNREACHED
        if self.violated is not None:
            return Outcome.FOUND
        has_doubts = self.errors > 0 or any(code is not ExitCode.HELD for code, _ in self.verdicts.values())
        return Outcome.IN_DOUBT if has_doubts else Outcome.UNSEEN

    def by(self) -> list[str]:
        """Return what says so: the checks that fail in the first violated schedule, or those that cannot tell."""
        if self.violated is not None:
            return [name for name in self.verdicts[self.violated][1] if not name.endswith(UNKNOWN)]
        names = [NO_HISTORY] if self.errors else []
        return list(dict.fromkeys([*names, *(name for _, findings in self.verdicts.values() for name in findings)]))

    def says(self) -> str:
        """Return the first finding, or the first error, in a sentence."""
        if self.violated is not None:
            return next(iter(self.verdicts[self.violated][1].values()), "")
        errors = (each.error for _, each in sorted(self.simulated.items()) if each.error)
        return next(errors, next((text for _, findings in self.verdicts.values() for text in findings.values()), ""))

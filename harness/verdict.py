"""The three verdicts of a run and how single answers combine into one.

Values are ordered by what wins when several are combined: combining is `max`, and nothing judged is not a pass.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum


class FaultVerdict(IntEnum):
    """Did each fault really happen?"""

    CONFIRMED = 0
    MISMATCH = 1
    """The observed effect is not the requested one."""
    INCONCLUSIVE = 2
    """No target matched, or the effect could not be observed."""


class SystemVerdict(IntEnum):
    """Did the cluster keep its promises?"""

    NOT_JUDGED = -1
    """The system under test leaves no evidence for it."""
    PASS = 0
    UNKNOWN = 1
    """There was no evidence, or the evidence was too damaged to judge."""
    FAIL = 2


class EnvironmentVerdict(IntEnum):
    """Is everything that the run created gone?"""

    CLEAN = 0
    RESIDUE = 1


Verdict = FaultVerdict | SystemVerdict | EnvironmentVerdict
"""An answer to one of the three questions; the names of all are different, and their numbers are not."""


class Mood(StrEnum):
    """How a reader should take a verdict; the class of its colour on pages."""

    GOOD = "good"
    OPEN = "open"
    """Nothing was broken, and nothing proven."""
    BAD = "bad"


def mood_of(verdict: Verdict) -> Mood:
    """Return how to take a verdict."""
    match verdict:
        case FaultVerdict():
            return Mood.GOOD if verdict is FaultVerdict.CONFIRMED else Mood.OPEN
        case SystemVerdict():
            return {SystemVerdict.PASS: Mood.GOOD, SystemVerdict.FAIL: Mood.BAD}.get(verdict, Mood.OPEN)
        case EnvironmentVerdict():
            return Mood.GOOD if verdict is EnvironmentVerdict.CLEAN else Mood.BAD


def worst_fault(verdicts: Iterable[FaultVerdict]) -> FaultVerdict:
    """Return the verdict on all faults of a run; no faults at all is INCONCLUSIVE, never CONFIRMED."""
    return max(verdicts, default=FaultVerdict.INCONCLUSIVE)


def worst_system(verdicts: Iterable[SystemVerdict]) -> SystemVerdict:
    """Return the verdict of all checks of a run; none that was judged means UNKNOWN, never PASS."""
    worst = max(verdicts, default=SystemVerdict.UNKNOWN)
    return SystemVerdict.UNKNOWN if worst is SystemVerdict.NOT_JUDGED else worst


class ExitCode(IntEnum):
    """What `chaos` returns to its caller."""

    HELD = 0
    VIOLATED = 1
    USAGE = 2
    INCONCLUSIVE = 3
    ENVIRONMENT = 4

    @property
    def outcome(self) -> str:
        """Name of a run's outcome with this code."""
        return OUTCOMES[self]


HELD, VIOLATED, WRONG, INCONCLUSIVE, BROKEN = "held", "violated", "wrong", "inconclusive", "broken"
OUTCOMES = {
    ExitCode.HELD: HELD,
    ExitCode.VIOLATED: VIOLATED,
    ExitCode.USAGE: WRONG,
    ExitCode.INCONCLUSIVE: INCONCLUSIVE,
    ExitCode.ENVIRONMENT: BROKEN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """The three answers of one run, side by side and never merged into one."""

    fault: FaultVerdict
    system: SystemVerdict
    environment: EnvironmentVerdict

    @property
    def names(self) -> dict[str, str]:
        """The three as `verdict.json` has them: fault, system, environment."""
        return {"fault": self.fault.name, "system": self.system.name, "environment": self.environment.name}

    @property
    def exit_code(self) -> ExitCode:
        """A violation outranks a broken environment, which outranks a run that proved nothing."""
        if self.system is SystemVerdict.FAIL:
            return ExitCode.VIOLATED
        if self.environment is EnvironmentVerdict.RESIDUE:
            return ExitCode.ENVIRONMENT
        if self.system is SystemVerdict.UNKNOWN or self.fault is not FaultVerdict.CONFIRMED:
            return ExitCode.INCONCLUSIVE
        return ExitCode.HELD

"""The verdicts of a run, three and one on its objectives, and how single answers combine into one.

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


class ObjectiveVerdict(IntEnum):
    """Did the run keep the limits that its scenario states? No promise of Kafka's is among them."""

    MET = 0
    UNKNOWN = 1
    """There was no evidence, or it was too damaged to measure."""
    MISSED = 2


Verdict = ObjectiveVerdict | FaultVerdict | SystemVerdict | EnvironmentVerdict
"""An answer to one of the questions; their numbers overlap, and of two with one name the later question's is read."""


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
        case ObjectiveVerdict():
            return {ObjectiveVerdict.MET: Mood.GOOD, ObjectiveVerdict.MISSED: Mood.BAD}.get(verdict, Mood.OPEN)
        case EnvironmentVerdict():
            return Mood.GOOD if verdict is EnvironmentVerdict.CLEAN else Mood.BAD


def worst_fault(verdicts: Iterable[FaultVerdict]) -> FaultVerdict:
    """Return the verdict on all faults of a run; no faults at all is INCONCLUSIVE, never CONFIRMED."""
    return max(verdicts, default=FaultVerdict.INCONCLUSIVE)


def worst_system(verdicts: Iterable[SystemVerdict]) -> SystemVerdict:
    """Return the verdict of all checks of a run; none that was judged means UNKNOWN, never PASS."""
    worst = max(verdicts, default=SystemVerdict.UNKNOWN)
    return SystemVerdict.UNKNOWN if worst is SystemVerdict.NOT_JUDGED else worst


def worst_objective(verdicts: Iterable[ObjectiveVerdict]) -> ObjectiveVerdict | None:
    """Return the verdict on all objectives of a run; None if it has none."""
    return max(verdicts, default=None)


class ExitCode(IntEnum):
    """What `chaos` returns to its caller."""

    HELD = 0
    VIOLATED = 1
    """A promise is broken, or an objective is missed."""
    USAGE = 2
    INCONCLUSIVE = 3
    ENVIRONMENT = 4

    @property
    def outcome(self) -> str:
        """The outcome with this code where no objectives are judged."""
        return next(outcome for outcome, code in EXIT_CODES.items() if code is self)


HELD, VIOLATED, MISSED, WRONG, INCONCLUSIVE, BROKEN = "held", "violated", "missed", "wrong", "inconclusive", "broken"
EXIT_CODES = {
    HELD: ExitCode.HELD,
    VIOLATED: ExitCode.VIOLATED,
    MISSED: ExitCode.VIOLATED,
    WRONG: ExitCode.USAGE,
    INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    BROKEN: ExitCode.ENVIRONMENT,
}
"""By outcome, the word for what a run came to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """The answers of one run, side by side and never merged into one."""

    fault: FaultVerdict
    system: SystemVerdict
    environment: EnvironmentVerdict
    objectives: ObjectiveVerdict | None = None
    """None where the scenario states no objective."""

    @property
    def names(self) -> dict[str, str]:
        """All as `verdict.json` has them: fault, system, environment, and objectives if there are some."""
        three = {"fault": self.fault.name, "system": self.system.name, "environment": self.environment.name}
        return three if self.objectives is None else three | {"objectives": self.objectives.name}

    def outcome(self, *, broken: bool = False) -> str:
        """Return the outcome: violated, broken, missed, inconclusive, held; the first that applies.

        A broken environment may be why an objective is missed, but not why a promise is broken.

        Args:
            broken: Whether the environment broke in a way other than what it left behind.
        """
        if self.system is SystemVerdict.FAIL:
            return VIOLATED
        if broken or self.environment is EnvironmentVerdict.RESIDUE:
            return BROKEN
        if self.objectives is ObjectiveVerdict.MISSED:
            return MISSED
        unknown = self.system is SystemVerdict.UNKNOWN or self.objectives is ObjectiveVerdict.UNKNOWN
        return INCONCLUSIVE if unknown or self.fault is not FaultVerdict.CONFIRMED else HELD

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the outcome."""
        return EXIT_CODES[self.outcome()]

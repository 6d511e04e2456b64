"""Orders the answers by importance: broken, unknown, excused; all that held is one line."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from harness.progress import number_of
from harness.store.result import CheckResult, RunResult, SuiteResult
from harness.verdict import EnvironmentVerdict, FaultVerdict, Mood, ObjectiveVerdict, SystemVerdict, mood_of

Result = TypeVar("Result", bound=CheckResult | SuiteResult)

MOODS = {
    verdict.name: mood_of(verdict)
    for question in (FaultVerdict, SystemVerdict, EnvironmentVerdict, ObjectiveVerdict)
    for verdict in question
}


def mood(word: str) -> str:
    """Return the class of a verdict on a page, by its name; anything else counts as open."""
    return MOODS.get(word, Mood.OPEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers(Generic[Result]):
    """The answers of all checks, or of all suites, by how much they matter."""

    failed: list[Result]
    unknown: list[Result]
    excused: list[Result]
    """Held, with anomalies that the settings allow."""
    held: list[Result]
    """Without any anomaly."""
    not_judged: list[Result]

    @property
    def shown(self) -> list[Result]:
        """What failed, what has no answer, what is excused; in this order."""
        return [*self.failed, *self.unknown, *self.excused]

    @property
    def all(self) -> list[Result]:
        """Each of them, those that matter most first."""
        return [*self.shown, *self.held, *self.not_judged]

    def folded(self, what: str) -> list[tuple[str, list[Result]]]:
        """Return the other answers, grouped by outcome as text; `what` names one of them."""
        parts = ((self.held, "held"), (self.not_judged, "not judged"))
        return [(f"{number_of(len(answers), what)} {became}", answers) for answers, became in parts if answers]


def left_out(result: RunResult) -> str:
    """Return which faults of its scenario a run did not have, as a sentence; empty if it had all."""
    if not result.left_out:
        return ""
    return f"{', '.join(result.left_out)}, which take ZooKeeper; {result.system} has none"


def answers(results: Sequence[Result]) -> Answers[Result]:
    """Return them in order, those of one kind as they were given."""
    by_verdict = {verdict: [each for each in results if each.verdict is verdict] for verdict in SystemVerdict}
    return Answers(
        failed=by_verdict[SystemVerdict.FAIL],
        unknown=by_verdict[SystemVerdict.UNKNOWN],
        excused=[each for each in by_verdict[SystemVerdict.PASS] if each.expected],
        held=[each for each in by_verdict[SystemVerdict.PASS] if not each.expected],
        not_judged=by_verdict[SystemVerdict.NOT_JUDGED],
    )

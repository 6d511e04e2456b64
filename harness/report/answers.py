"""Which answers does a reader need first? What is broken, unknown or excused; all that held is one line."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from harness.progress import number_of
from harness.store.result import CheckResult, SuiteResult
from harness.verdict import SystemVerdict

Result = TypeVar("Result", bound=CheckResult | SuiteResult)

MOODS = {
    "CONFIRMED": "good",
    "PASS": "good",
    "CLEAN": "good",
    "FAIL": "bad",
    "RESIDUE": "bad",
}
"""The colour of a verdict; what is not named is open."""


def mood(word: str) -> str:
    """Return the class of a verdict on a page."""
    return MOODS.get(word, "open")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers(Generic[Result]):
    """The answers of all checks, or of all suites, by how much they matter."""

    shown: list[Result]
    """What failed, what has no answer, what held with anomalies that the settings allow; in this order."""
    held: list[Result]
    """Without any anomaly."""
    not_judged: list[Result]

    @property
    def all(self) -> list[Result]:
        """Each of them, those that matter most first."""
        return [*self.shown, *self.held, *self.not_judged]

    def folded(self, what: str) -> list[tuple[str, list[Result]]]:
        """Return the others, each kind with what became of it in words, where one of them is called `what`."""
        parts = ((self.held, "held"), (self.not_judged, "not judged"))
        return [(f"{number_of(len(answers), what)} {became}", answers) for answers, became in parts if answers]


def answers(results: Sequence[Result]) -> Answers[Result]:
    """Return them in order, those of one kind as they were given."""
    by_verdict = {verdict: [each for each in results if each.verdict is verdict] for verdict in SystemVerdict}
    excused = [each for each in by_verdict[SystemVerdict.PASS] if each.expected]
    return Answers(
        shown=[*by_verdict[SystemVerdict.FAIL], *by_verdict[SystemVerdict.UNKNOWN], *excused],
        held=[each for each in by_verdict[SystemVerdict.PASS] if not each.expected],
        not_judged=by_verdict[SystemVerdict.NOT_JUDGED],
    )

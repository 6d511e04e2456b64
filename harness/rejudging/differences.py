"""Changes by a new judgement: the answers on one run, before and after."""

from collections.abc import Mapping, Sequence

from harness.contracts.registry import check_title
from harness.store.result import CheckResult, ObjectiveResult, RunResult, StoredModel, SuiteResult
from harness.verdict import SystemVerdict

ABSENT = "no answer"


class Difference(StoredModel):
    """One changed answer."""

    kind: str
    """verdict, check, suite or objective."""
    name: str
    """Key of the check, name of the suite, name of the objective, or which verdict: fault, system, environment or
    objectives."""
    before: str
    """Its verdict and counts, as text; `no answer` if it gave none."""
    after: str

    @property
    def title(self) -> str:
        """The name as text."""
        return check_title(self.name) if self.kind == "check" else self.name

    def __str__(self) -> str:
        return f"{self.kind} {self.title}: {self.before} → {self.after}"


def differences(before: RunResult | None, after: RunResult) -> list[Difference]:
    """Return each changed verdict, then each changed check and suite in the new order; empty the first time."""
    if before is None:
        return []
    return [
        *_between("verdict", before.verdicts.names, after.verdicts.names),
        *_between("check", _checks(before.checks), _checks(after.checks)),
        *_between("suite", _suites(before.suites), _suites(after.suites)),
        *_between("objective", _objectives(before.objectives), _objectives(after.objectives)),
    ]


def _between(kind: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[Difference]:
    return [
        Difference(kind=kind, name=name, before=before.get(name, ABSENT), after=after.get(name, ABSENT))
        for name in dict.fromkeys([*after, *before])
        if before.get(name) != after.get(name)
    ]


def _checks(results: Sequence[CheckResult]) -> dict[str, str]:
    return {
        result.check: _describe(
            result.verdict, violations=result.violations, expected=result.expected, notes=result.notes
        )
        for result in results
    }


def _suites(results: Sequence[SuiteResult]) -> dict[str, str]:
    return {result.suite: _describe(result.verdict, unmet=result.unsuccessful) for result in results}


def _objectives(results: Sequence[ObjectiveResult]) -> dict[str, str]:
    return {result.objective: f"{result.verdict.name} ({result.measured})" for result in results}


def _describe(verdict: SystemVerdict, **numbers: int) -> str:
    counted = ", ".join(f"{number} {what}" for what, number in numbers.items() if number)
    return f"{verdict.name} ({counted})" if counted else verdict.name

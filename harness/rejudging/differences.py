"""What judging again has changed: the answers on one run, before and after."""

from collections.abc import Mapping, Sequence

from harness.store.result import CheckResult, Part, RunResult, SuiteResult

ABSENT = "no answer"


class Difference(Part):
    """One answer that is another one now."""

    kind: str
    """verdict, check or suite."""
    name: str
    """Of the verdict: fault, system or environment."""
    before: str
    """Its verdict and what it counted, in words; `no answer` when it gave none."""
    after: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.before} → {self.after}"


def differences(before: RunResult | None, after: RunResult) -> list[Difference]:
    """Return each verdict that is another one, then each check and suite in the order of now; none the first time."""
    if before is None:
        return []
    return [
        *_between("verdict", _verdicts(before), _verdicts(after)),
        *_between("check", _checks(before.checks), _checks(after.checks)),
        *_between("suite", _suites(before.suites), _suites(after.suites)),
    ]


def _between(kind: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[Difference]:
    return [
        Difference(kind=kind, name=name, before=before.get(name, ABSENT), after=after.get(name, ABSENT))
        for name in dict.fromkeys([*after, *before])
        if before.get(name) != after.get(name)
    ]


def _verdicts(result: RunResult) -> dict[str, str]:
    said = result.verdicts
    return {"fault": said.fault.name, "system": said.system.name, "environment": said.environment.name}


def _checks(results: Sequence[CheckResult]) -> dict[str, str]:
    return {
        result.check: _said(result.verdict, violations=result.violations, expected=result.expected, notes=result.notes)
        for result in results
    }


def _suites(results: Sequence[SuiteResult]) -> dict[str, str]:
    return {result.suite: _said(result.verdict, unmet=result.unsuccessful) for result in results}


def _said(verdict: str, **numbers: int) -> str:
    counted = ", ".join(f"{number} {what}" for what, number in numbers.items() if number)
    return f"{verdict} ({counted})" if counted else verdict

"""Why a run did not hold: what is broken, unknown, doubtful or left behind, one reason each."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated

from harness.contracts import registry
from harness.store.result import ByName, CheckResult, Remark, RunResult, StoredModel, SuiteResult, forbidding
from harness.verdict import EnvironmentVerdict, FaultVerdict, ObjectiveVerdict, SystemVerdict, Verdict


class Kind(StrEnum):
    """The subject of a reason."""

    CHECK = "check"
    SUITE = "suite"
    OBJECTIVE = "objective"
    EVIDENCE = "evidence"
    FAULT = "fault"
    RESIDUE = "residue"


NAMED = (Kind.SUITE, Kind.OBJECTIVE)
"""Kinds whose name precedes that of a subject."""
PHASES = {
    Kind.CHECK: "judge",
    Kind.SUITE: "expectations",
    Kind.OBJECTIVE: "judge",
    Kind.FAULT: "drive",
    Kind.RESIDUE: "stop",
}
"""Phase of each kind, unless a remark names its own."""


class Reason(StoredModel):
    """One reason why a run cannot be said to hold."""

    kind: Kind
    verdict: Annotated[Verdict, ByName]
    """The verdict that it implies."""
    phase: str
    subject: str
    """Key of a check, name of a suite, an objective or a fault, or subject of a remark; may be empty."""
    text: str
    targets: list[str] = []
    """Targets of a fault, whether hit or not."""

    @property
    def title(self) -> str:
        """Its subject as text; empty if there is none."""
        if self.kind is Kind.CHECK:
            return registry.check_title(self.subject)
        hit = ", ".join(self.targets)
        return f"{self.kind} {self.subject}" if self.kind in NAMED else f"{self.subject} {hit}".strip()

    def __str__(self) -> str:
        return f"{self.title}: {self.text}" if self.title else self.text


def why(result: RunResult) -> list[Reason]:
    """Return every reason why a run did not hold, in the order in which they matter; none if it did."""
    faults = [
        _reason(Kind.FAULT, part.verdict, part.fault, part.detail, targets=part.targets)
        for part in result.faults
        if not part.compensated
    ]
    if not faults:
        faults = [_reason(Kind.FAULT, FaultVerdict.INCONCLUSIVE, "", "no fault was injected")]
    objectives = [
        _reason(Kind.OBJECTIVE, part.verdict, part.objective, part.seen)
        for part in result.objectives
        if part.verdict is not ObjectiveVerdict.MET
    ]
    return [
        *why_of(result.checks, result.suites, result.remarks),
        *of(ObjectiveVerdict.MISSED, objectives),
        *of(ObjectiveVerdict.UNKNOWN, objectives),
        *(reason for reason in faults if reason.verdict is not FaultVerdict.CONFIRMED),
        *(_reason(Kind.RESIDUE, EnvironmentVerdict.RESIDUE, "", text) for text in result.residue),
    ]


def why_of(checks: Iterable[CheckResult], suites: Iterable[SuiteResult], remarks: Sequence[Remark]) -> list[Reason]:
    """Return every reason why what was judged did not hold."""
    answers = [_reason(Kind.CHECK, part.verdict, part.check, part.reason) for part in checks]
    answers += [
        _reason(Kind.SUITE, part.verdict, part.suite, "; ".join(part.failures) or part.reason) for part in suites
    ]
    doubts = [
        _reason(Kind.EVIDENCE, SystemVerdict.UNKNOWN, each.subject, each.text, each.phase)
        for each in forbidding(remarks)
    ]
    if not doubts and all(answer.verdict is SystemVerdict.NOT_JUDGED for answer in answers):
        doubts = [_reason(Kind.EVIDENCE, SystemVerdict.UNKNOWN, "", "nothing was judged", "judge")]
    return [*of(SystemVerdict.FAIL, answers), *doubts, *of(SystemVerdict.UNKNOWN, answers)]


def of(verdict: Verdict, reasons: Iterable[Reason]) -> list[Reason]:
    """Return the reasons with this verdict."""
    return [reason for reason in reasons if reason.verdict is verdict]


def _reason(
    kind: Kind, verdict: Verdict, subject: str, text: str, phase: str = "", targets: Sequence[str] = ()
) -> Reason:
    return Reason(
        kind=kind,
        verdict=verdict,
        phase=phase or PHASES.get(kind, ""),
        subject=subject,
        text=text,
        targets=list(targets),
    )

"""The assessment of a run: the answers of checks and suites, and what all phases add, up to three verdicts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.run.journal import fault_results, readable_journal
from harness.run.run import Run
from harness.scenario.model import Scenario
from harness.store.phase_log import Phase, ends, started_at
from harness.store.result import CheckResult, ObjectiveResult, Remark, RunResult, SuiteResult
from harness.store.seal import Hole, of_kind
from harness.verdict import SystemVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The checks' answers about a run."""

    checks: list[CheckResult] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Rows a fact."""
    objectives: list[ObjectiveResult] = field(default_factory=list)


def assemble(run: Run, checked: Checked | None = None, suites: list[SuiteResult] | None = None) -> RunResult:
    """Return the result from what is in the run's folder.

    Earlier answers of checks and suites stay unless there are new ones; new answers of the checks remove those of
    the suites, which were about other facts.
    """
    folder, scenario, plan = run.folder, run.scenario, run.plan
    before = RunResult.load(folder.verdict) if checked is None and folder.verdict.exists() else None
    if suites is None:
        suites = before.suites if before else []
    if checked is None:
        checked = Checked()
        if before:
            checked = Checked(checks=before.checks, counts=before.counts, objectives=before.objectives)
    entries, unreadable = readable_journal(folder.journal)
    faults = fault_results(plan, entries, unreadable)
    phases, started = ends(folder), started_at(folder)
    return RunResult(
        run_id=folder.run_id,
        scenario=scenario.name,
        driver=scenario.driver,
        system=scenario.system,
        seed=plan.seed,
        planted_bugs=scenario.planted_bugs,
        started_at=started,
        duration_s=round(sum(end.duration_s for end in phases.values()), 3),
        phase_durations_s={phase.value: end.duration_s for phase, end in phases.items()},
        faults=faults,
        left_out=scenario.left_out,
        checks=checked.checks,
        suites=suites,
        objectives=checked.objectives or not_measured(scenario),
        residue=[what for end in phases.values() for what in end.residue],
        remarks=[
            *([_doubt(f"the record of the faults is incomplete: {unreadable}", Phase.DRIVE)] if unreadable else []),
            *_silent(checked.checks, suites),
            *remarks_without_plugins(checked.checks),
            *(remark for phase, end in phases.items() if phase is not Phase.REPORT for remark in end.remarks),
        ],
        counts=checked.counts,
    )


def not_measured(scenario: Scenario) -> list[ObjectiveResult]:
    """Return the results of a run's objectives before they are judged."""
    if scenario.objectives is None:
        return []
    from harness.analysis.objectives.judge import not_judged as unknown

    return unknown(scenario.objectives)


def _doubt(text: str, phase: Phase) -> Remark:
    return Remark(text=text, phase=phase, forbids_pass=True)


def _silent(checks: list[CheckResult], suites: list[SuiteResult]) -> list[Remark]:
    """Return the judge that has not answered while the other has: one alone does not make a PASS."""
    if bool(checks) == bool(suites):
        return []
    if suites:
        return [_doubt("no check has answered", Phase.JUDGE)]
    return [_doubt("no suite of expectations has answered", Phase.EXPECTATIONS)]


def remark_on(hole: Hole) -> Remark:
    """Return the remark about a hole."""
    return Remark(
        text=hole.text,
        phase=Phase.COLLECT,
        subject=hole.place,
        evidence=None if hole.is_open_end else hole.kind,
        forbids_pass=True,
    )


def within_holes(
    checks: Sequence[CheckResult], holes: Sequence[Hole], evidence: Mapping[str, Sequence[str]]
) -> list[CheckResult]:
    """Return the answers; a check that rests on a kind of evidence with a hole becomes UNKNOWN, whatever it found.

    Lost evidence looks like an idle broker or client, and changed evidence like a faulty one. `evidence` has the kinds
    that each check rests on, by its name.
    """

    def as_far_as_known(result: CheckResult) -> CheckResult:
        reason = why_unreliable(evidence[result.check], holes)
        if not reason or result.verdict is SystemVerdict.UNKNOWN:
            return result
        counted = f"{result.counted} found in evidence that cannot be relied on: " if result.counted else ""
        return CheckResult(
            check=result.check, promise=result.promise, verdict=SystemVerdict.UNKNOWN, reason=f"{counted}{reason}"
        )

    return [as_far_as_known(result) for result in checks] if holes else list(checks)


def why_unreliable(kinds: Sequence[str], holes: Sequence[Hole]) -> str:
    """Return why evidence of some of these kinds is unreliable; empty if it is not."""
    return next((f"{hole.place}: {hole.text}" for kind in kinds if (hole := of_kind(holes, kind))), "")


def remarks_without_plugins(checks: Iterable[CheckResult]) -> list[Remark]:
    """Return why a run cannot pass some of whose checks could not be asked, each reason once."""
    reasons = dict.fromkeys(each.reason for each in checks if each.lacks_plugin)
    return [
        Remark(text=f"not everything was judged {reason}", phase=Phase.JUDGE, forbids_pass=True) for reason in reasons
    ]

"""The report: one HTML page that opens offline, made from the run folder alone.

Only the chart library is a file beside it, once for all runs of a folder, unless the page is to stand alone.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from harness.analysis.tables.schemas import TABLES
from harness.contracts.registry import check_title
from harness.judging.why import Kind, of, why
from harness.progress import number_of
from harness.report.answers import answers, left_out, mood
from harness.report.evidence import Evidence, RunEvidence
from harness.report.junit import write_junit
from harness.report.step_story import message_of
from harness.report.story import Story, stories_of
from harness.report.template import part, template
from harness.report.timeline import library
from harness.report.timeline.figure import figure
from harness.report.timeline.marks import marks_of
from harness.run.run import Run
from harness.scenario.external import without_commands
from harness.scenario.file import scenario_yaml
from harness.store.result import CheckResult, RunResult, SuiteResult
from harness.system.plugins import OWN
from harness.system.whole_file import replace_text
from harness.verdict import EnvironmentVerdict, FaultVerdict, ObjectiveVerdict, SystemVerdict

SHOWN_GAPS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The head and foot of a report."""

    about: str
    """One line below the title."""
    answer: str
    """Name of a `SystemVerdict`, for the title."""
    cards: list[tuple[str, str, str, str]]
    """As (question, answer, good / bad / open, reason)."""
    commands: dict[str, str]
    """Commands that repeat the run."""
    alone: str = ""
    """The command that makes the page self-contained; empty if it is."""


def write(run: Run, *, alone: bool = False) -> Path:
    """Write `report.html` and `junit.xml` of a judged run and return the page's path.

    Args:
        run: The run.
        alone: Whether the page must need no other file.

    Raises:
        EvidenceError: the run has no result yet.
    """
    folder = run.folder
    result = RunResult.load(folder.verdict)
    evidence = RunEvidence(folder)
    write_junit(folder, result)
    planted = f" · planted: {', '.join(result.planted_bugs)}" if result.planted_bugs else ""
    where = f"system {result.system} · driver {result.driver}"
    others = [str(each) for each in run.plugins if each.distribution != OWN]
    where += f" · plugins of {', '.join(others)}" if others else ""
    heading = Heading(
        about=f"{result.started_at} · {result.duration_s:.0f} s · {where} · seed {result.seed}{planted}",
        answer=result.verdicts.system.name,
        cards=cards(result),
        commands={
            "Judge again": f"chaos rejudge {shlex.quote(str(folder.root))}",
            "Run again, same plan": f"chaos replay {shlex.quote(str(folder.root))}",
            "Run again, same seed": f"chaos run {shlex.quote(str(folder.scenario))} --seed {result.seed}",
        },
        alone=f"chaos report --single-file {shlex.quote(str(folder.root))}",
    )
    page = render(
        evidence,
        result,
        heading,
        library_address="" if alone else library.put_beside(folder.root),
        stories=stories_of(evidence),
        scenario=scenario_yaml(without_commands(run.scenario)),
        has_data_docs=(folder.data_docs / "index.html").exists(),
    )
    replace_text(folder.report, page)
    return folder.report


def render(
    evidence: Evidence,
    result: RunResult,
    heading: Heading,
    *,
    library_address: str = "",
    stories: Sequence[Story] = (),
    scenario: str = "",
    has_data_docs: bool = False,
) -> str:
    """Return the page.

    Args:
        evidence: Facts and findings.
        result: The verdicts.
        heading: Head and foot of the page.
        library_address: Address of the chart library; empty to include it.
        stories: One for each cause.
        scenario: As YAML, if there is one.
        has_data_docs: Whether Data Docs lie beside the page.
    """
    groups = evidence.groups()
    violations = [group for group in groups if group.severity == "violation"]
    marks = marks_of(evidence, violations)
    gaps = evidence.rows("availability", "gap_ms", descending=True)
    windows = evidence.rows("fault_windows", "intended_ns")
    return template(
        "report.html.j2", check_title=check_title, mood=mood, number_of=number_of, meaning=_meaning, message=message_of
    ).render(
        left_out=left_out,
        result=result,
        checks=answers(result.checks),
        suites=answers(result.suites),
        heading=heading,
        stories=stories,
        css=part("page.css"),
        script=part("timeline.js"),
        chart=figure(evidence, list(marks.values())),
        marks=marks,
        library=library_address,
        library_text="" if library_address else Markup(library.text()),  # noqa: S704 - the library's own script
        faults=[
            (fault, next((w for w in windows if w["injection"] == fault.injection), None)) for fault in result.faults
        ],
        since=evidence.seconds_since_start,
        gaps=gaps[:SHOWN_GAPS],
        more_gaps=max(len(gaps) - SHOWN_GAPS, 0),
        violations=violations,
        expected=[group for group in groups if group.severity == "expected"],
        notes=[group for group in groups if group.severity == "note"],
        scenario=scenario,
        has_data_docs=has_data_docs,
    )


def _meaning(count: str) -> str:
    """Return what one row of a table of facts is; empty for other counts."""
    return TABLES[count].row if count in TABLES else ""


def _held(answers: Sequence[CheckResult] | Sequence[SuiteResult], what: str) -> str:
    """Return the number of judged checks that held, as text."""
    held = sum(answer.verdict is SystemVerdict.PASS for answer in answers)
    return number_of(held, what) if held == len(answers) else f"{held} of {number_of(len(answers), what)}"


def cards(result: RunResult) -> list[tuple[str, str, str, str]]:
    """Return the verdicts as (question, answer, good / bad / open, reason)."""
    verdicts = result.verdicts
    reasons = why(result)
    broken, unknown = (
        ", ".join(dict.fromkeys(each.title or "the evidence" for each in of(verdict, reasons)))
        for verdict in (SystemVerdict.FAIL, SystemVerdict.UNKNOWN)
    )
    system_reason = {
        SystemVerdict.PASS: f"{_held(result.checks, 'check')} and {_held(result.suites, 'suite')} held",
        SystemVerdict.FAIL: f"broken: {broken}",
        SystemVerdict.UNKNOWN: f"no answer: {unknown}",
    }[verdicts.system]
    seen, carried_out = sum(each.verdict is FaultVerdict.CONFIRMED for each in result.faults), len(result.faults)
    confirmed = {1: "seen from outside"}.get(carried_out, f"all {carried_out} seen from outside")
    if seen < carried_out:
        confirmed = f"{seen} of {carried_out} seen from outside, as many as the scenario states"
    fault_reason = "; ".join(str(each) for each in reasons if each.kind is Kind.FAULT) or confirmed
    return [
        (
            "Did each fault take effect?",
            verdicts.fault.name,
            "good" if verdicts.fault is FaultVerdict.CONFIRMED else "open",
            fault_reason,
        ),
        (
            "Did the cluster keep its promises?",
            verdicts.system.name,
            {SystemVerdict.PASS: "good", SystemVerdict.FAIL: "bad", SystemVerdict.UNKNOWN: "open"}[verdicts.system],
            system_reason,
        ),
        (
            "Is the environment clean?",
            verdicts.environment.name,
            "good" if verdicts.environment is EnvironmentVerdict.CLEAN else "bad",
            "; ".join(result.residue) or "nothing of this run is left",
        ),
        *_objectives_card(result),
    ]


def _objectives_card(result: RunResult) -> list[tuple[str, str, str, str]]:
    """Return the verdict on the objectives in the same form; none if there are none."""
    verdict = result.verdicts.objectives
    if verdict is None:
        return []
    named = {each: [part.objective for part in result.objectives if part.verdict is each] for each in ObjectiveVerdict}
    reason = {
        ObjectiveVerdict.MET: f"{number_of(len(result.objectives), 'objective')} met",
        ObjectiveVerdict.MISSED: f"missed: {', '.join(named[ObjectiveVerdict.MISSED])}",
        ObjectiveVerdict.UNKNOWN: f"not measured: {', '.join(named[ObjectiveVerdict.UNKNOWN])}",
    }[verdict]
    return [("Did the run meet its objectives?", verdict.name, mood(verdict.name), reason)]

"""The result as JUnit XML: a violation is a failure, no answer is an error, a refused run is skipped.

A missed objective is a failure of its own kind. A fault that was not seen is skipped too, if a confirmed spare
replaces it.
"""

from collections.abc import Sequence
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from harness.contracts.registry import check_title
from harness.judging.why import Kind, why
from harness.report.conclusion import SuiteEntry
from harness.store.folder import RunFolder
from harness.store.result import ObjectiveResult, RunResult
from harness.verdict import HELD, MISSED, VIOLATED, FaultVerdict, ObjectiveVerdict, SystemVerdict


def write_junit(folder: RunFolder, result: RunResult) -> None:
    """Write `junit.xml`: one suite each for faults, checks, expectations, evidence and environment."""
    doubts = [reason for reason in why(result) if reason.kind is Kind.EVIDENCE]
    suites = [
        _suite(
            f"{result.scenario}.faults",
            [
                _case(
                    f"{fault.injection} {fault.fault}",
                    fault.verdict is FaultVerdict.CONFIRMED,
                    fault.detail,
                    needed=not fault.compensated,
                )
                for fault in result.faults
            ]
            or [_case("any", False, "no fault was injected")],
        ),
        _suite(
            f"{result.scenario}.checks",
            [_judged(check_title(c.check), c.verdict, c.reason or c.promise) for c in result.checks],
        ),
        _suite(
            f"{result.scenario}.expectations",
            [_judged(s.suite, s.verdict, "; ".join(s.failures) or s.reason or "no evidence") for s in result.suites],
        ),
        *_objectives(result),
        _suite(
            f"{result.scenario}.evidence",
            [_case("whole", not doubts, "; ".join(map(str, doubts)))],
        ),
        _suite(
            f"{result.scenario}.environment",
            [_case("clean", not result.residue, "; ".join(result.residue))],
        ),
    ]
    xml = JUnitXml(name=result.run_id)
    for suite in suites:
        xml.add_testsuite(suite)
    xml.write(str(folder.junit), pretty=True)


def write_not_started(path: Path, scenario: str, reason: str, *, refused: bool) -> None:
    """Write the result of a run that never started: skipped when it was refused, an error otherwise."""
    case = TestCase("started")
    case.result = [Skipped(reason)] if refused else [Error(reason, "not started")]
    xml = JUnitXml(name=scenario)
    xml.add_testsuite(_suite(f"{scenario}.start", [case]))
    xml.write(str(path), pretty=True)


def write_suite(path: Path, name: str, entries: Sequence[SuiteEntry]) -> None:
    """Write the result of a suite: one case a run, which fails unless the run ended as expected."""
    cases = [_of_run(number, entry) for number, entry in enumerate(entries, start=1)]
    xml = JUnitXml(name=name)
    xml.add_testsuite(_suite(name, cases))
    xml.write(str(path), pretty=True)


def _of_run(number: int, entry: SuiteEntry) -> TestCase:
    case, outcome = TestCase(f"{number} {entry['scenario']} {entry['driver']}".rstrip()), entry["outcome"]
    reason = f"{outcome}, expected {entry['expect']}: {entry['reason'] or 'every promise was kept'}; {entry['run']}"
    if outcome == entry["expect"]:
        return case
    case.result = [Failure(reason, outcome) if outcome in (HELD, MISSED, VIOLATED) else Error(reason, outcome)]
    return case


def _suite(name: str, cases: list[TestCase]) -> TestSuite:
    suite = TestSuite(name)
    for case in cases:
        case.classname = name
        suite.add_testcase(case)
    return suite


def _judged(name: str, verdict: SystemVerdict, reason: str) -> TestCase:
    case = TestCase(name)
    if verdict is SystemVerdict.FAIL:
        case.result = [Failure(reason, "violation")]
    elif verdict is SystemVerdict.UNKNOWN:
        case.result = [Error(reason, "inconclusive")]
    elif verdict is SystemVerdict.NOT_JUDGED:
        case.result = [Skipped(reason)]
    return case


def _objectives(result: RunResult) -> list[TestSuite]:
    cases = [_objective(each) for each in result.objectives]
    return [_suite(f"{result.scenario}.objectives", cases)] if cases else []


def _objective(result: ObjectiveResult) -> TestCase:
    case = TestCase(result.objective)
    if result.verdict is ObjectiveVerdict.MISSED:
        case.result = [Failure(result.seen, "objective missed")]
    elif result.verdict is ObjectiveVerdict.UNKNOWN:
        case.result = [Error(result.seen, "inconclusive")]
    return case


def _case(name: str, held: bool, reason: str, *, needed: bool = True) -> TestCase:
    case = TestCase(name)
    if not held:
        case.result = [Error(reason, "inconclusive") if needed else Skipped(reason)]
    return case

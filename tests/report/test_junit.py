"""JUnit XML is green exactly where nothing forbids that the run held."""

from pathlib import Path

import pytest
from junitparser import Error, JUnitXml, Skipped

from harness.judging.why import why
from harness.report.junit import write_junit
from harness.store.folder import RunFolder
from harness.store.result import CheckResult, FaultResult, Remark, RunResult, SuiteResult
from tests.verdicts import CONFIRMED, INCONCLUSIVE, NOT_JUDGED, PASS, UNKNOWN

CHECK = CheckResult(check="I10", promise="p", verdict=PASS)
SUITE = SuiteResult(suite="records", verdict=PASS, evaluated=1, unsuccessful=0)


@pytest.mark.parametrize(
    ("checks", "suites", "remarks", "texts"),
    [
        pytest.param([CHECK], [SUITE], [], [], id="a run that held"),
        pytest.param([], [], [], ["nothing was judged"], id="it was not judged"),
        pytest.param(
            [CHECK], [SUITE], [Remark(text="2 torn lines", subject="a.jsonl", forbids_pass=True)],
            ["a.jsonl: 2 torn lines"], id="a hole in the evidence",
        ),
        pytest.param(
            [CHECK], [SUITE.model_copy(update={"verdict": UNKNOWN, "reason": "its table was empty"})], [],
            ["its table was empty"], id="a suite that judged nothing says why",
        ),
        pytest.param(
            [CHECK.model_copy(update={"verdict": NOT_JUDGED})], [SUITE.model_copy(update={"verdict": NOT_JUDGED})], [],
            ["nothing was judged"], id="nothing of it could be judged",
        ),
    ],
)  # fmt: skip
def test_what_forbids_pass_is_no_green_case(
    tmp_path: Path, checks: list[CheckResult], suites: list[SuiteResult], remarks: list[Remark], texts: list[str]
) -> None:
    fault = FaultResult(injection=0, fault="kill", targets=["1"], verdict=CONFIRMED, detail="gone")
    result = RunResult(run_id="r", scenario="s", driver="process", seed=1, started_at="", duration_s=1.0,
                       faults=[fault], checks=checks, suites=suites, remarks=remarks)  # fmt: skip
    folder = RunFolder(tmp_path)
    write_junit(folder, result)
    answers = [each.message for suite in JUnitXml.fromfile(str(folder.junit)) for case in suite for each in case.result
               if not isinstance(each, Skipped)]  # fmt: skip
    assert answers == texts
    assert bool(answers) == bool(why(result))


@pytest.mark.parametrize(
    ("compensated", "answer"),
    [
        pytest.param(True, Skipped, id="one that a spare replaces is skipped"),
        pytest.param(False, Error, id="one that was not seen is an error"),
    ],
)
def test_a_fault_that_was_not_seen_is_no_green_case(
    tmp_path: Path, compensated: bool, answer: type[Skipped | Error]
) -> None:
    fault = FaultResult(
        injection=0, fault="kill", targets=[], verdict=INCONCLUSIVE, detail="refused", compensated=compensated
    )
    result = RunResult(run_id="r", scenario="s", driver="process", seed=1, started_at="", duration_s=1.0,
                       faults=[fault], checks=[CHECK], suites=[SUITE])  # fmt: skip
    folder = RunFolder(tmp_path)
    write_junit(folder, result)
    (case,) = next(iter(JUnitXml.fromfile(str(folder.junit))))
    assert [(type(each), each.message) for each in case.result] == [(answer, "refused")]


def test_what_could_not_be_judged_is_skipped_and_holds_nobody_up(tmp_path: Path) -> None:
    missing_events = CheckResult(check="I11", promise="p", verdict=NOT_JUDGED, reason="kafka:3.9.1 does not log hw")
    fault = FaultResult(injection=0, fault="kill", targets=["1"], verdict=CONFIRMED, detail="gone")
    result = RunResult(run_id="r", scenario="s", driver="process", seed=1, started_at="", duration_s=1.0,
                       faults=[fault], checks=[CHECK, missing_events], suites=[SUITE])  # fmt: skip
    folder = RunFolder(tmp_path)
    write_junit(folder, result)
    cases = [case for suite in JUnitXml.fromfile(str(folder.junit)) for case in suite]
    assert [each.message for case in cases for each in case.result] == [missing_events.reason]
    assert (result.verdicts.system, why(result)) == (PASS, [])

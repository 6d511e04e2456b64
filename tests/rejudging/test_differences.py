from typing import Any

import pytest

from harness.rejudging.differences import differences
from harness.store.result import CheckResult, Remark, RunResult, SuiteResult
from harness.verdict import SystemVerdict
from tests.verdicts import FAIL, PASS, UNKNOWN


def result(*checks: CheckResult, suites: tuple[SuiteResult, ...] = ()) -> RunResult:
    return RunResult(
        run_id="r", scenario="s", driver="d", seed=1, started_at="", duration_s=0.0, checks=[*checks], suites=[*suites]
    )


def check(name: str, verdict: SystemVerdict, **numbers: Any) -> CheckResult:
    return CheckResult(check=name, promise="p", verdict=verdict, **numbers)


def suite(verdict: SystemVerdict, unsuccessful: int) -> SuiteResult:
    return SuiteResult(suite="records", verdict=verdict, evaluated=4, unsuccessful=unsuccessful)


HELD = result(check("I1", PASS), check("I9", PASS, notes=1), suites=(suite(PASS, 0),))


@pytest.mark.parametrize(
    ("before", "after", "sentences"),
    [
        pytest.param(HELD, HELD, [], id="the same answers"),
        pytest.param(None, HELD, [], id="the first answers"),
        pytest.param(
            HELD,
            result(check("I1", FAIL, violations=2), check("I9", PASS, notes=1), suites=(suite(PASS, 0),)),
            ["verdict system: PASS → FAIL", "check I1 one-leader-per-epoch: PASS → FAIL (2 violations)"],
            id="a verdict is another one",
        ),
        pytest.param(
            HELD,
            result(check("I1", PASS), check("I9", PASS), suites=(suite(FAIL, 3),)),
            [
                "verdict system: PASS → FAIL",
                "check I9 log-matching: PASS (1 notes) → PASS",
                "suite records: PASS → FAIL (3 unmet)",
            ],
            id="numbers and suites",
        ),
        pytest.param(
            HELD,
            result(check("I2", UNKNOWN), check("I9", PASS, notes=1), suites=(suite(PASS, 0),)),
            [
                "verdict system: PASS → UNKNOWN",
                "check I2 one-controller-per-epoch: no answer → UNKNOWN",
                "check I1 one-leader-per-epoch: PASS → no answer",
            ],
            id="a new check and one that is gone",
        ),
        pytest.param(
            HELD,
            HELD.model_copy(update={"remarks": [Remark(text="a hole", forbids_pass=True)], "residue": ["a process"]}),
            ["verdict system: PASS → UNKNOWN", "verdict environment: CLEAN → RESIDUE"],
            id="the evidence has holes now, and something was left",
        ),
    ],
)  # fmt: skip
def test_every_answer_that_is_another_one_is_told(
    before: RunResult | None, after: RunResult, sentences: list[str]
) -> None:
    assert [str(difference) for difference in differences(before, after)] == sentences

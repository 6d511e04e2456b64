import pytest

from tests.analysis.fact_rows import claimed, remark, truncated
from tests.analysis.protocol_rows import appended, waited_for
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm, without_each

pytestmark = pytest.mark.spark

CASES = {
    "every member had it": Case(rows=[waited_for([1, 2], 5), appended(1, 0, 4), appended(2, 0, 4)], verdict=PASS),
    "a member had less": Case(
        rows=[waited_for([1, 2], 5), appended(1, 0, 4), appended(2, 0, 3)],
        verdict=FAIL,
        offsets=[4],
        text="the log of broker 2 had come to 4",
    ),
    "a member had nothing": Case(rows=[waited_for([1, 2], 5), appended(1, 0, 4)], verdict=FAIL, offsets=[0]),
    "a member had it from an earlier epoch": Case(
        rows=[waited_for([1, 2], 5, leader_epoch=1), appended(1, 0, 4), appended(2, 0, 4)], verdict=PASS
    ),
    "a member got it in a later epoch only": Case(
        rows=[waited_for([1, 2], 5), appended(1, 0, 4), appended(2, 0, 4, epoch=1)], verdict=FAIL
    ),
    "a member had it when the epoch began": Case(
        rows=[waited_for([1, 2], 5), appended(1, 0, 4), claimed(2, 0, high_watermark=0, end=5)], verdict=PASS
    ),
    "a member began anew behind it": Case(
        rows=[waited_for([1, 2], 5), appended(1, 0, 4), truncated(2, 0, 5, high_watermark=0, epoch=0, reason="full")],
        verdict=PASS,
    ),
    "a member had some in an earlier epoch, and came there in several steps": Case(
        rows=[
            waited_for([1, 2], 5, leader_epoch=1),
            appended(1, 0, 4),
            appended(2, 0, 1),
            appended(2, 2, 2, epoch=1),
            appended(2, 3, 4, epoch=1),
        ],
        verdict=PASS,
    ),
    "a member cut its log back to there": Case(
        rows=[waited_for([1, 2], 5), appended(1, 0, 4), truncated(2, 9, 5, high_watermark=0, epoch=0)], verdict=PASS
    ),
    "a broker's log has holes": Case(
        rows=[waited_for([1, 2], 5), appended(1, 0, 4), remark("brokers/2/x", "missing lines, by their numbers", 2)],
        verdict=UNKNOWN,
    ),
    "no high watermark ever rose": Case(rows=[appended(1, 0, 4)], verdict=UNKNOWN, text="leader_isrs"),
}

CASES |= without_each(CASES["every member had it"], "leader_isrs", "appends")

answers = answers_of("I7", CASES)


@pytest.mark.parametrize("case", CASES)
def test_what_the_leaders_own_isr_has(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

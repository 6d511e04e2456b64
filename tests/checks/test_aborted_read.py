import pytest

from tests.analysis.fact_rows import read, remark, sent
from tests.checks.answers import FAIL, NOT_UNIQUE, PASS, UNKNOWN, Answer, Case, answers_of, confirm, without_each

pytestmark = pytest.mark.spark

FAILED = sent("b", outcome="fail", error="MESSAGE_TOO_LARGE")

CASES = {
    "what failed was not read": Case(rows=[sent("a", 0), FAILED, read("a", 0)], verdict=PASS),
    "what failed was read": Case(
        rows=[sent("a", 0), FAILED, read("b", 1)], verdict=FAIL, offsets=[1], text="b was read at orders-0 offset 1"
    ),
    "what nobody knows about was read": Case(rows=[sent("a"), read("a", 0)], verdict=PASS),
    "two readers are one finding": Case(
        rows=[FAILED, read("b", 1), read("b", 1, process="c1")], verdict=FAIL, offsets=[1]
    ),
    "it was read in two epochs, and came up in the first": Case(
        rows=[FAILED, read("b", 1, leader_epoch=4), read("b", 1, process="c1", leader_epoch=3)],
        verdict=FAIL,
        epochs=[3],
    ),
    "more readers than can be shown are one finding": Case(
        rows=[FAILED, *(read("b", 1, process=f"c{number}") for number in range(13))], verdict=FAIL, offsets=[1]
    ),
    "values are not unique": Case(rows=[FAILED, read("b", 1), NOT_UNIQUE], verdict=UNKNOWN),
    "the clients' history has holes": Case(
        rows=[FAILED, read("b", 1), remark("operations/p0.jsonl", "unreadable lines", 1)], verdict=UNKNOWN
    ),
    "nobody read anything": Case(rows=[FAILED], verdict=UNKNOWN, text="polls"),
}

CASES |= without_each(CASES["what failed was not read"], "sends", "polls")

answers = answers_of("aborted-read", CASES)


@pytest.mark.parametrize("case", CASES)
def test_values_of_failed_sends(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

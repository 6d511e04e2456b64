import pytest

from tests.analysis.fact_rows import read, remark, sent
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm, without_each

pytestmark = pytest.mark.spark


CASES = {
    "it was sent": Case(rows=[sent("a", 0), read("a", 0)], verdict=PASS),
    "it was sent, and nobody knows how that ended": Case(rows=[sent("a"), read("a", 0)], verdict=PASS),
    "nobody sent it": Case(rows=[sent("a", 0), read("b", 1)], verdict=FAIL, text="b was read at orders-0 offset 1"),
    "two readers got what nobody sent, the other in a later epoch": Case(
        rows=[sent("a", 0), read("b", 1, leader_epoch=4), read("b", 1, process="c1", leader_epoch=3)],
        verdict=FAIL,
        epochs=[3],
    ),
    "it was sent to another topic": Case(rows=[sent("a", 0), sent("b", 0, topic="other"), read("b", 1)], verdict=FAIL),
    "nobody of ours writes to that topic": Case(rows=[sent("a", 0), read("b", 1, topic="other")], verdict=PASS),
    "nobody read anything": Case(rows=[sent("a", 0)], verdict=UNKNOWN),
    "sends may be missing from the history": Case(
        rows=[sent("a", 0), read("b", 1), remark("operations/p0.jsonl", "unreadable lines", 3)], verdict=UNKNOWN
    ),
}

CASES |= without_each(CASES["it was sent"], "sends", "polls")

answers = answers_of("phantom", CASES)


@pytest.mark.parametrize("case", CASES)
def test_what_was_read_was_sent(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

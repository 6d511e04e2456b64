import pytest

from tests.analysis.fact_rows import read
from tests.analysis.protocol_rows import stepped
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

SEEN = [read("a", 2)]

CASES = {
    "it gives them in order": Case(rows=SEEN, verdict=PASS),
    "it goes back": Case(
        rows=[*SEEN, stepped(5, 2, polls=(1, 1))], verdict=FAIL, offsets=[2], text="offset 2 after offset 5"
    ),
    "so it does where the reader subscribed": Case(
        rows=[*SEEN, stepped(5, 2, polls=(1, 1), mode="subscribe")], verdict=FAIL, severities=["violation"]
    ),
    "the step back lies between two polls": Case(rows=[*SEEN, stepped(5, 2)], verdict=PASS),
    "nobody read anything": Case(rows=[], verdict=UNKNOWN, text="polls"),
}

answers = answers_of("int-nonmonotonic-poll", CASES)


@pytest.mark.parametrize("case", CASES)
def test_order_within_a_poll(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

import pytest

from tests.analysis.fact_rows import read
from tests.analysis.protocol_rows import stepped
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

SEEN = [read("a", 2), read("b", 3, process="c1"), read("c", 5)]

CASES = {
    "it gives everything": Case(rows=SEEN, verdict=PASS),
    "it leaves out what another reader saw": Case(
        rows=[*SEEN, stepped(2, 5, polls=(1, 1))], verdict=FAIL, offsets=[5], text="offset 3 was read by others"
    ),
    "so it does where the reader subscribed": Case(
        rows=[*SEEN, stepped(2, 5, polls=(1, 1), mode="subscribe")], verdict=FAIL, severities=["violation"]
    ),
    "the gap lies between two polls": Case(rows=[*SEEN, stepped(2, 5)], verdict=PASS),
    "nobody read anything": Case(rows=[], verdict=UNKNOWN, text="polls"),
}

answers = answers_of("int-poll-skip", CASES)


@pytest.mark.parametrize("case", CASES)
def test_gaps_within_a_poll(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

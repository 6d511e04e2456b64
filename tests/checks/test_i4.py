import pytest

from tests.analysis.fact_rows import elected_uncleanly, led
from tests.analysis.protocol_rows import elected
from tests.checks.answers import FAIL, PASS, UNCLEAN, UNKNOWN, Case, answers_of, confirm

pytestmark = pytest.mark.spark

OUTSIDE = led(3, 1, unclean=True)

CASES = {
    "the leader comes from the ISR": Case(rows=[led(1, 0), led(2, 1)], verdict=PASS, severities=[]),
    "nobody knows who was in the ISR": Case(rows=[led(3, 1, unclean=None)], verdict=PASS, severities=[]),
    "it comes from outside": Case(rows=[led(1, 0), OUTSIDE], verdict=FAIL, said="broker 3, not in it"),
    "from outside, and the controller says that the configuration allowed it": Case(
        rows=[elected_uncleanly(3, 1)], verdict=PASS, severities=["expected"]
    ),
    "from outside, and the scenario allows it": Case(
        rows=[OUTSIDE], settings=UNCLEAN, verdict=PASS, severities=["expected"]
    ),
    "the scenario allows it, and the configuration did not at that instant": Case(
        rows=[led(3, 1, unclean=True, unclean_allowed=False)], settings=UNCLEAN, verdict=FAIL, severities=["violation"]
    ),
    "the controller calls an unclean election clean": Case(
        rows=[led(1, 0), elected(3, [3], previous_isr=[1, 2])], verdict=FAIL, said="called it clean"
    ),
    "it calls it unclean": Case(rows=[led(1, 0), elected(3, [3], previous_isr=[1, 2], unclean=True)], verdict=PASS),
    "nobody ever led": Case(rows=[], verdict=UNKNOWN, said="leader_epochs"),
}

answers = answers_of("I4", CASES)


@pytest.mark.parametrize("case", CASES)
def test_who_is_elected(case, answers):
    confirm(CASES[case], answers[case])

import pytest

from tests.analysis.fact_rows import elected_uncleanly, led, state
from tests.analysis.protocol_rows import configured, elected
from tests.checks.answers import FAIL, PASS, POWER_LOSS, UNCLEAN, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

OUTSIDE = led(3, 1, unclean=True)
BEFORE = state(0, leader=1, epoch=0, isr=[1, 2])
AFTER = state(1, leader=3, epoch=1, isr=[3], previous=BEFORE)
ELECTED = [BEFORE, AFTER, elected_uncleanly(3, 1)]

CASES = {
    "the leader comes from the ISR": Case(rows=[led(1, 0), led(2, 1)], verdict=PASS, severities=[]),
    "nobody knows who was in the ISR": Case(rows=[led(3, 1, unclean=None)], verdict=PASS, severities=[]),
    "it comes from outside": Case(rows=[led(1, 0), OUTSIDE], verdict=FAIL, text="broker 3, not in it"),
    "from outside, and the power was cut, which explains no election": Case(
        rows=[OUTSIDE], settings=POWER_LOSS, verdict=FAIL, severities=["violation"]
    ),
    "from outside, and the controller says that the configuration allowed it": Case(
        rows=[elected_uncleanly(3, 1)], verdict=PASS, severities=["expected"]
    ),
    "from outside, and the scenario allows it": Case(
        rows=[OUTSIDE], settings=UNCLEAN, verdict=PASS, severities=["expected"]
    ),
    "the scenario allows it, and the configuration did not at that instant": Case(
        rows=[led(3, 1, unclean=True, unclean_allowed=False)], settings=UNCLEAN, verdict=FAIL, severities=["violation"]
    ),
    "the controller says that it was allowed, and the topic's configuration does not": Case(
        rows=[*ELECTED, configured(50, unclean_allowed=False)], verdict=FAIL, text="was not allowed"
    ),
    "the controller says that it was not allowed, and the topic's configuration does": Case(
        rows=[BEFORE, AFTER, led(3, 1, unclean=True, unclean_allowed=False), configured(50, unclean_allowed=True)],
        verdict=PASS,
        severities=["expected"],
    ),
    "the topic's configuration allowed it until the state before was written": Case(
        rows=[*ELECTED, configured(50, until_zxid=100, unclean_allowed=True), configured(100, unclean_allowed=False)],
        verdict=FAIL,
    ),
    "the topic's configuration allowed it when the controller may have read it": Case(
        rows=[
            BEFORE,
            state(9, leader=3, epoch=1, isr=[3], previous=BEFORE),
            elected_uncleanly(3, 1, zxid=109),
            configured(50, until_zxid=105, unclean_allowed=True),
            configured(105, unclean_allowed=False),
        ],
        verdict=PASS,
        severities=["expected"],
    ),
    "the topic's configuration allowed it later": Case(
        rows=[*ELECTED, configured(50, until_zxid=101, unclean_allowed=False), configured(101, unclean_allowed=True)],
        verdict=FAIL,
    ),
    "the topic's configuration says nothing, so the controller's word counts": Case(
        rows=[*ELECTED, configured(50)], verdict=PASS, severities=["expected"]
    ),
    "the topic's configuration does not allow it, and an administrator requested it": Case(
        rows=[
            *ELECTED,
            configured(50, unclean_allowed=False),
            elected(3, [3], previous_isr=[1, 2], unclean=True, trigger="admin"),
        ],
        verdict=PASS,
        severities=["expected"],
    ),
    "the topic's configuration did not allow it, and did when somebody else was elected": Case(
        rows=[
            *ELECTED,
            state(9, leader=1, epoch=2, isr=[1], previous=AFTER),
            configured(50, until_zxid=105, unclean_allowed=False),
            configured(105, unclean_allowed=True),
        ],
        verdict=FAIL,
        severities=["violation"],
    ),
    "the topic's configuration does not allow it, and nobody saw the state before": Case(
        rows=[AFTER, elected_uncleanly(3, 1), configured(50, unclean_allowed=False)], verdict=FAIL
    ),
    "the topic's configuration was taken back when the controller may have read it": Case(
        rows=[
            BEFORE,
            state(9, leader=3, epoch=1, isr=[3], previous=BEFORE),
            elected_uncleanly(3, 1, zxid=109),
            configured(50, until_zxid=105, unclean_allowed=False),
            configured(105),
        ],
        verdict=PASS,
        severities=["expected"],
    ),
    "another topic's configuration does not allow it": Case(
        rows=[*ELECTED, configured(50, unclean_allowed=False, topic="other")], verdict=PASS, severities=["expected"]
    ),
    "the topic's configuration does not allow it, and nobody requested it": Case(
        rows=[*ELECTED, configured(50, unclean_allowed=False), elected(3, [3], previous_isr=[1, 2], unclean=True)],
        verdict=FAIL,
    ),
    "the controller calls a clean election clean": Case(
        rows=[led(1, 0), elected(2, [2, 3], previous_isr=[1, 2, 3])], verdict=PASS, severities=[]
    ),
    "the controller calls an unclean election clean": Case(
        rows=[led(1, 0), elected(3, [3], previous_isr=[1, 2])], verdict=FAIL, text="called it clean"
    ),
    "nobody is elected": Case(rows=[led(1, 0), elected(None, previous_isr=[1, 2])], verdict=PASS, severities=[]),
    "it calls it unclean": Case(rows=[led(1, 0), elected(3, [3], previous_isr=[1, 2], unclean=True)], verdict=PASS),
    "nobody ever led": Case(rows=[], verdict=UNKNOWN, text="leader_epochs"),
}

answers = answers_of("I4", CASES)


@pytest.mark.parametrize("case", CASES)
def test_who_is_elected(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

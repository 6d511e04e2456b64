import pytest

from tests.analysis.fact_rows import state
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark


CASES = {
    "the leader is in the ISR": Case(rows=[state(0, leader=1, epoch=0, isr=[1, 2])], verdict=PASS),
    "no leader, and the last ISR stays": Case(rows=[state(0, leader=-1, epoch=1, isr=[2])], verdict=PASS),
    "the leader is outside": Case(
        rows=[state(0, leader=3, epoch=0, isr=[1, 2])], verdict=FAIL, text="leader 3 is not in"
    ),
    "the ISR is empty": Case(rows=[state(0, leader=-1, epoch=1, isr=[])], verdict=FAIL, text="the ISR is empty"),
    "a stranger is in the ISR": Case(rows=[state(0, leader=1, epoch=0, isr=[1, 9])], verdict=FAIL, text="names 9"),
    "the assignment was not seen": Case(rows=[state(0, leader=1, epoch=0, isr=[1, 9], assignment=None)], verdict=PASS),
    "ZooKeeper's history is empty": Case(rows=[], verdict=UNKNOWN, text="partition_states"),
}

answers = answers_of("I3", CASES)


@pytest.mark.parametrize("case", CASES)
def test_the_leader_the_isr_and_the_assignment(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

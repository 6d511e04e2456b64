import pytest

from tests.analysis.fact_rows import state
from tests.analysis.protocol_rows import waited_for
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm, without_each

pytestmark = pytest.mark.spark

STATE = state(0, leader=1, epoch=0, isr=[2, 1])

CASES = {
    "it waits for the ISR": Case(rows=[STATE, waited_for([1, 2], 5)], verdict=PASS),
    "it waits for more": Case(rows=[STATE, waited_for([1, 2, 3], 5)], verdict=PASS),
    "it leaves a member out": Case(
        rows=[STATE, waited_for([1], 5)],
        verdict=FAIL,
        offsets=[5],
        text="with [1], but version 0 of the state names [2]",
    ),
    "another version had only those": Case(
        rows=[STATE, state(1, leader=1, epoch=0, isr=[1]), waited_for([1], 5, version=1)], verdict=PASS
    ),
    "the version belongs to another epoch": Case(rows=[STATE, waited_for([1], 5, leader_epoch=1)], verdict=PASS),
    "a topic made anew had only those at that version": Case(
        rows=[STATE, state(0, leader=1, epoch=0, isr=[1], life=2, zxid=300), waited_for([1], 5)], verdict=PASS
    ),
    "a topic made anew had others too at that version": Case(
        rows=[STATE, state(0, leader=1, epoch=0, isr=[1, 3], life=2, zxid=300), waited_for([1], 5)],
        verdict=FAIL,
        shown='"zxid":300',
    ),
    "an older broker does not say the version": Case(
        rows=[STATE, waited_for([1], 5, version=None)], verdict=UNKNOWN, text="do not say zk_version"
    ),
    "no high watermark ever rose": Case(rows=[STATE], verdict=UNKNOWN, text="leader_isrs"),
}

CASES |= without_each(CASES["it waits for the ISR"], "leader_isrs", "partition_states")

answers = answers_of("I8", CASES)


@pytest.mark.parametrize("case", CASES)
def test_whom_a_leader_waits_for(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

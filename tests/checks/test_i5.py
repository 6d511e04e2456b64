import pytest

from tests.analysis.fact_rows import state
from tests.analysis.protocol_rows import wrote
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm, without_each

pytestmark = pytest.mark.spark

CREATED = state(0, leader=1, epoch=0, isr=[1, 2])
NEXT = state(1, leader=1, epoch=0, isr=[1], previous=CREATED)

CASES = {
    "each write replaces the version that it knew": Case(rows=[CREATED, NEXT, wrote(0, 1)], verdict=PASS),
    "a creation replaces none": Case(rows=[CREATED, wrote(-1, 0, op="create", writer="controller")], verdict=PASS),
    "a deletion leaves no version": Case(
        rows=[CREATED, NEXT, wrote(1, -1, op="delete", writer="controller")], verdict=PASS
    ),
    "a refused write replaces nothing": Case(
        rows=[CREATED, wrote(-1, -1, result="badversion"), wrote(0, 1)], verdict=PASS
    ),
    "a write replaces another version": Case(
        rows=[CREATED, NEXT, wrote(0, 2)], verdict=FAIL, text="wrote version 2 of the state of orders-0 over version 0"
    ),
    "a write replaces whatever is there": Case(rows=[CREATED, NEXT, wrote(-1, 0)], verdict=FAIL, text="whatever"),
    "versions are missing in the history": Case(
        rows=[CREATED, state(2, leader=1, epoch=0, isr=[1], previous=CREATED), wrote(0, 1)], verdict=UNKNOWN, text="gap"
    ),
    "nobody wrote": Case(rows=[CREATED], verdict=UNKNOWN, text="state_writes"),
}

CASES |= without_each(CASES["each write replaces the version that it knew"], "state_writes", "partition_states")

answers = answers_of("I5", CASES)


@pytest.mark.parametrize("case", CASES)
def test_what_a_write_replaces(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

import pytest

from tests.analysis.fact_rows import Row, controller, state
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

FIRST = controller(3, 1, zxid=100)
SECOND = controller(1, 2, zxid=150)
CREATED = state(0, leader=1, epoch=0, isr=[1, 2], zxid=110, writer="controller")


def written_at(zxid: int, *, epoch: int, controller_epoch: int, writer: str | None) -> Row:
    return state(
        1, leader=1, epoch=epoch, isr=[1], zxid=zxid, controller_epoch=controller_epoch, writer=writer, previous=CREATED
    )


CASES = {
    "epochs grow and words agree": Case(rows=[FIRST, SECOND, controller(1, 2, zxid=None)], verdict=PASS),
    "an epoch is used again": Case(rows=[SECOND, controller(2, 2, zxid=160)], verdict=FAIL, text="strictly increase"),
    "an epoch goes back": Case(rows=[SECOND, controller(3, 1, zxid=160)], verdict=FAIL, text="strictly increase"),
    "another broker says it has the epoch": Case(
        rows=[FIRST, controller(2, 1, zxid=None)], verdict=FAIL, text="brokers 2 and 3"
    ),
    "who won was not seen": Case(rows=[controller(None, 1, zxid=100), controller(2, 1, zxid=None)], verdict=PASS),
    "no election was seen": Case(rows=[], verdict=UNKNOWN, text="controller_epochs"),
}

answers = answers_of("I2", CASES)


@pytest.mark.parametrize("case", CASES)
def test_controller_epochs(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])


DECISIONS = {
    "before the next one": Case(
        rows=[FIRST, SECOND, CREATED, written_at(140, epoch=1, controller_epoch=1, writer="controller")], verdict=PASS
    ),
    "before the next one, which says itself that it won": Case(
        rows=[FIRST, SECOND, controller(1, 2, zxid=None), CREATED], verdict=PASS
    ),
    "of a new partition, after the next one": Case(
        rows=[FIRST, SECOND, state(0, leader=1, epoch=0, isr=[1, 2], zxid=160)], verdict=FAIL
    ),
    "by the next one": Case(
        rows=[FIRST, SECOND, CREATED, written_at(160, epoch=1, controller_epoch=2, writer="controller")], verdict=PASS
    ),
    "after the next one": Case(
        rows=[FIRST, SECOND, CREATED, written_at(160, epoch=1, controller_epoch=1, writer="controller")], verdict=FAIL
    ),
    "by whoever raises the epoch": Case(
        rows=[FIRST, SECOND, CREATED, written_at(160, epoch=1, controller_epoch=1, writer=None)], verdict=FAIL
    ),
    "a leader repeats the old": Case(
        rows=[FIRST, SECOND, CREATED, written_at(160, epoch=0, controller_epoch=1, writer="leader")], verdict=PASS
    ),
    "an ISR change by somebody": Case(
        rows=[FIRST, SECOND, CREATED, written_at(160, epoch=0, controller_epoch=1, writer=None)], verdict=PASS
    ),
}

decisions = answers_of("I2", DECISIONS)


@pytest.mark.parametrize("case", DECISIONS)
def test_decisions_under_an_older_controller_epoch(case: str, decisions: dict[str, Answer]) -> None:
    confirm(DECISIONS[case], decisions[case])

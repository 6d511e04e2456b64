import pytest

from tests.analysis.fact_rows import Row, held, replica, state
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm, without_each

pytestmark = pytest.mark.spark

LOG = [replica(1, 9), state(0, leader=1, epoch=0, isr=[1])]


def numbered(sequence: int, offset: int, *, broker: int = 1, producer: int = 7, epoch: int = 0) -> Row:
    return held(broker, f"v{offset}", offset, producer_id=producer, producer_epoch=epoch, sequence=sequence)


CASES = {
    "numbers follow each other": Case(rows=[*LOG, numbered(4, 0), numbered(5, 1), numbered(6, 5)], verdict=PASS),
    "two producers between each other": Case(
        rows=[*LOG, numbered(0, 0), numbered(0, 1, producer=8), numbered(1, 2), numbered(1, 3, producer=8)],
        verdict=PASS,
    ),
    "a new producer epoch begins again": Case(rows=[*LOG, numbered(4, 0), numbered(0, 1, epoch=1)], verdict=PASS),
    "numbers begin again after the largest": Case(rows=[*LOG, numbered(2**31 - 1, 0), numbered(0, 1)], verdict=PASS),
    "two replicas hold the same": Case(rows=[*LOG, numbered(4, 0), numbered(4, 0, broker=2)], verdict=PASS),
    "a number is missing": Case(
        rows=[*LOG, numbered(4, 0), numbered(6, 1)],
        verdict=FAIL,
        offsets=[1],
        text="number 6 at offset 1 after number 4",
    ),
    "a number comes twice": Case(rows=[*LOG, numbered(0, 0), numbered(0, 1)], verdict=FAIL, offsets=[1]),
    "a marker of a transaction has no number": Case(
        rows=[*LOG, numbered(4, 0), numbered(-1, 1), numbered(5, 2)], verdict=PASS
    ),
    "producers without numbers are not judged": Case(
        rows=[*LOG, numbered(-1, 0, producer=-1), numbered(-1, 1, producer=-1)], verdict=PASS
    ),
    "a dump is damaged": Case(
        rows=[replica(1, 9, damage="torn"), numbered(4, 0), numbered(6, 1)], verdict=UNKNOWN, text="torn"
    ),
    "there is no record": Case(rows=LOG, verdict=UNKNOWN, text="replica_records"),
}

CASES |= without_each(CASES["numbers follow each other"], "replicas", "replica_records")

answers = answers_of("I21", CASES)


@pytest.mark.parametrize("case", CASES)
def test_sequence_numbers_in_a_log(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

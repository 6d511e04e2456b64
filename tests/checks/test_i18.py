import pytest

from tests.analysis.protocol_rows import registered
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

CASES = {
    "owner and broker agree": Case(rows=[registered(1), registered(1, source="broker")], verdict=PASS),
    "each life has its session": Case(
        rows=[
            registered(1, until_zxid=20),
            registered(1, 30, session="0x2"),
            registered(1, 30, session="0x2", source="broker"),
        ],
        verdict=PASS,
    ),
    "only ZooKeeper has it": Case(rows=[registered(1)], verdict=UNKNOWN, text="by ZooKeeper and its broker"),
    "ZooKeeper tells of one broker, another of itself": Case(
        rows=[registered(1), registered(2, source="broker")], verdict=UNKNOWN
    ),
    "ZooKeeper tells of one life, the broker of another": Case(
        rows=[registered(1), registered(1, 30, source="broker")], verdict=UNKNOWN
    ),
    "of one life only ZooKeeper tells": Case(
        rows=[registered(1, until_zxid=20), registered(1, 30, session="0x2"), registered(1, source="broker")],
        verdict=PASS,
    ),
    "the broker lives by another session": Case(
        rows=[registered(1), registered(1, session="0x2", source="broker")],
        verdict=FAIL,
        text="that of broker 1, made at zxid 10, is claimed by sessions 0x1 and 0x2",
    ),
    "nobody registered": Case(rows=[], verdict=UNKNOWN, text="registrations"),
}

answers = answers_of("I18", CASES)


@pytest.mark.parametrize("case", CASES)
def test_whose_registration_it_is(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

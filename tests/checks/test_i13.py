import pytest

from tests.analysis.fact_rows import claimed
from tests.analysis.protocol_rows import joined, proposed, registered
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm, without_each

pytestmark = pytest.mark.spark

LEADS = [claimed(1, 0, high_watermark=0, end=0), registered(1), registered(2, 20, until_zxid=40)]

CASES = {
    "it joins at the high watermark": Case(rows=[*LEADS, proposed([1, 2], [9, 5])], verdict=PASS),
    "it joins below the high watermark": Case(
        rows=[*LEADS, proposed([1, 2], [9, 4])], verdict=FAIL, offsets=[4], text="broker 2 was proposed"
    ),
    "it joins below the epoch's start": Case(
        rows=[*LEADS, proposed([1, 2], [9, 5], epoch_start_offset=6)], verdict=FAIL, text="the epoch's start at 6"
    ),
    "a member that lags was there before": Case(
        rows=[*LEADS, proposed([1, 3, 2], [9, 2, 5], old_isr=[1, 3])], verdict=PASS
    ),
    "a smaller ISR is not judged": Case(rows=[*LEADS, proposed([1], [4], kind="shrink", old_isr=[1, 2])], verdict=PASS),
    "it is registered when it joins": Case(
        rows=[*LEADS, registered(4, 20), joined(2, 30), joined(4, 30)], verdict=PASS, severities=[]
    ),
    "it is not registered, and one of that number is in another run": Case(
        rows=[*LEADS, joined(4, 30)], verdict=PASS, severities=["note"]
    ),
    "it is not registered yet": Case(
        rows=[*LEADS, registered(4, 40), joined(4, 30)], verdict=PASS, severities=["note"]
    ),
    "a new partition begins with it in the ISR": Case(
        rows=[*LEADS, joined(4, 30, old_isr=[])], verdict=PASS, severities=[]
    ),
    "it says that it is registered, and is not any more": Case(
        rows=[*LEADS, registered(2, 20, source="broker"), joined(2, 50)], verdict=PASS, severities=["note"]
    ),
    "it is not registered any more": Case(rows=[*LEADS, joined(2, 50)], verdict=PASS, severities=["note"]),
    "an older broker does not say how far it had come": Case(
        rows=[*LEADS, proposed([1, 2], None)], verdict=UNKNOWN, text="do not say ends"
    ),
    "there was no leader": Case(rows=[registered(1)], verdict=UNKNOWN, text="leadership_claims"),
}

CASES |= without_each(CASES["it joins at the high watermark"], "leadership_claims", "registrations")

answers = answers_of("I13", CASES)


@pytest.mark.parametrize("case", CASES)
def test_who_joins_the_isr(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

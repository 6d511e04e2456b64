import pytest

from tests.analysis.fact_rows import elected_uncleanly, read
from tests.analysis.protocol_rows import stepped
from tests.checks.answers import FAIL, PASS, UNCLEAN, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

SEEN = [read("a", 2)]

CASES = {
    "it goes on": Case(rows=SEEN, verdict=PASS),
    "it goes back": Case(
        rows=[*SEEN, stepped(5, 2)], verdict=FAIL, offsets=[2], text="from orders-0 offset 5 to offset 2"
    ),
    "it gets the same again": Case(rows=[*SEEN, stepped(5, 5)], verdict=FAIL, offsets=[5]),
    "it jumps ahead": Case(rows=[*SEEN, stepped(2, 5)], verdict=PASS, severities=[]),
    "it goes back within a poll": Case(rows=[*SEEN, stepped(5, 2, polls=(1, 1))], verdict=PASS, severities=[]),
    "it subscribed": Case(rows=[*SEEN, stepped(5, 2, mode="subscribe")], verdict=PASS, severities=["note"]),
    "it does not say its mode": Case(rows=[*SEEN, stepped(5, 2, mode="")], verdict=PASS, severities=["note"]),
    "an unclean election between": Case(
        rows=[*SEEN, stepped(5, 2, leader_epoch=2), elected_uncleanly(2, 1)],
        settings=UNCLEAN,
        verdict=PASS,
        severities=["expected"],
    ),
    "nobody read anything": Case(rows=[], verdict=UNKNOWN, text="polls"),
}

answers = answers_of("nonmonotonic-poll", CASES)


@pytest.mark.parametrize("case", CASES)
def test_steps_back_from_poll_to_poll(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

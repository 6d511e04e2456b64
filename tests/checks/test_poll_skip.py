import pytest

from tests.analysis.fact_rows import elected_uncleanly, read, remark, replica
from tests.analysis.protocol_rows import stepped
from tests.checks.answers import FAIL, PASS, POWER_LOSS, UNCLEAN, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

SEEN = [read("a", 2), read("b", 3, process="c1"), read("c", 5)]

CASES = {
    "it goes on where it ended": Case(rows=SEEN, verdict=PASS),
    "it jumps over what another reader saw": Case(
        rows=[*SEEN, stepped(2, 5)],
        verdict=FAIL,
        offsets=[5],
        severities=["violation"],
        text="offset 3 was read by others",
    ),
    "it jumps over a single offset": Case(
        rows=[*SEEN, read("d", 4), stepped(2, 4)], verdict=FAIL, offsets=[4], text="offset 3 was read by others"
    ),
    "it jumps over what nobody saw": Case(rows=[*SEEN, stepped(3, 5)], verdict=PASS, severities=[]),
    "it jumps within a poll": Case(rows=[*SEEN, stepped(2, 5, polls=(1, 1))], verdict=PASS, severities=[]),
    "what it jumps over was deleted": Case(
        rows=[*SEEN, stepped(2, 5), replica(1, 9, log_start_offset=5)], verdict=PASS, severities=[]
    ),
    "one replica has deleted what it jumps over": Case(
        rows=[*SEEN, stepped(2, 5), replica(1, 9, log_start_offset=5), replica(2, 9)], verdict=FAIL, offsets=[5]
    ),
    "what lies before it was deleted": Case(
        rows=[*SEEN, stepped(2, 5), replica(1, 9, log_start_offset=3)], verdict=FAIL, offsets=[5]
    ),
    "it goes back": Case(rows=[*SEEN, stepped(5, 2)], verdict=PASS, severities=[]),
    "it subscribed": Case(rows=[*SEEN, stepped(2, 5, mode="subscribe")], verdict=PASS, severities=["note"]),
    "it does not say its mode": Case(rows=[*SEEN, stepped(2, 5, mode="")], verdict=PASS, severities=["note"]),
    "an unclean election between": Case(
        rows=[*SEEN, stepped(2, 5), elected_uncleanly(2, 1)], settings=UNCLEAN, verdict=PASS, severities=["expected"]
    ),
    "the power was cut": Case(rows=[*SEEN, stepped(2, 5)], settings=POWER_LOSS, verdict=PASS, severities=["expected"]),
    "the clients' history has holes": Case(
        rows=[*SEEN, stepped(2, 5), remark("operations/c0.jsonl", "unreadable lines", 1)], verdict=UNKNOWN
    ),
    "nobody read anything": Case(rows=[], verdict=UNKNOWN, text="polls"),
}

answers = answers_of("poll-skip", CASES)


@pytest.mark.parametrize("case", CASES)
def test_jumps_from_poll_to_poll(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

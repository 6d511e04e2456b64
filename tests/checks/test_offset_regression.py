import pytest

from tests.analysis.fact_rows import committed, elected_uncleanly, fetched, led, remark
from tests.checks.answers import FAIL, PASS, UNCLEAN, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

TEN = committed(10, at=(1, 2))

CASES = {
    "what was committed is read back": Case(rows=[TEN, fetched(10, at=(3, 4))], verdict=PASS),
    "a later commit, answered or not, is read back": Case(rows=[TEN, fetched(12, at=(3, 4))], verdict=PASS),
    "less than an acknowledged commit is read back": Case(
        rows=[TEN, fetched(7, at=(3, 4))], verdict=FAIL, text="of orders-0 after offset 10 had been acknowledged"
    ),
    "the commit has vanished": Case(rows=[TEN, fetched(-1, at=(3, 4))], verdict=FAIL),
    "no read-back was answered": Case(rows=[TEN, fetched(7, at=(3, 4), outcome="info")], verdict=UNKNOWN),
    "it was not acknowledged": Case(
        rows=[committed(10, at=(1, 2), outcome="info"), fetched(7, at=(3, 4))], verdict=PASS
    ),
    "the group went back by itself": Case(rows=[TEN, committed(7, at=(3, 4)), fetched(7, at=(5, 6))], verdict=PASS),
    "the group tried to go back, and nobody knows how that ended": Case(
        rows=[TEN, committed(7, at=(3, None), outcome="info"), fetched(7, at=(5, 6))], verdict=PASS
    ),
    "going back had been refused": Case(
        rows=[TEN, committed(7, at=(3, 4), outcome="fail"), fetched(7, at=(5, 6))], verdict=FAIL
    ),
    "an older commit comes back": Case(rows=[committed(7, at=(0, 0)), TEN, fetched(7, at=(3, 4))], verdict=FAIL),
    "the read-back was invoked before the commit was acknowledged": Case(
        rows=[TEN, fetched(7, at=(1, 2))], verdict=PASS
    ),
    "the read-back was invoked at the instant at which the commit was acknowledged": Case(
        rows=[TEN, fetched(7, at=(2, 4))], verdict=FAIL
    ),
    "another group": Case(rows=[TEN, fetched(7, at=(3, 4), group="g1")], verdict=PASS),
    "another partition": Case(rows=[TEN, fetched(7, at=(3, 4), partition=1)], verdict=PASS),
    "another topic": Case(rows=[TEN, fetched(7, at=(3, 4), topic="other")], verdict=PASS),
    "what only the log tells has no instant": Case(
        rows=[committed(10, at=(0, None), source="log", invoke_ns=None), fetched(-1, at=(0, 1)), TEN], verdict=PASS
    ),
    "the group went back after that": Case(
        rows=[TEN, fetched(7, at=(3, 4)), committed(7, at=(5, 6), process="c1")], verdict=FAIL
    ),
    "the group goes back while that is read": Case(
        rows=[TEN, fetched(7, at=(3, 4)), committed(7, at=(4, 5), process="c1")], verdict=PASS
    ),
    "two commits were under way together": Case(
        rows=[committed(7, at=(0, 1), process="c1"), TEN, fetched(7, at=(3, 4))], verdict=PASS
    ),
    "one read-back is explained, and another of the same process or number is not": Case(
        rows=[
            TEN,
            fetched(7, at=(3, 4)),
            committed(7, at=(5, None), outcome="info", process="c2"),
            fetched(7, at=(7, 8)),
            fetched(7, at=(7, 8), process="c1", index=3),
        ],
        verdict=FAIL,
        severities=["violation"],
    ),
    "the clients' history has holes": Case(
        rows=[TEN, fetched(7, at=(3, 4)), remark("operations/c0.jsonl", "unreadable lines", 1)], verdict=UNKNOWN
    ),
    "nothing was committed": Case(rows=[], verdict=UNKNOWN),
    "an unclean election of the offsets topic, as the scenario allows": Case(
        rows=[TEN, fetched(7, at=(3, 4)), led(2, 1, unclean=True, topic="__consumer_offsets")],
        settings=UNCLEAN,
        verdict=PASS,
        severities=["expected"],
    ),
    "an unclean election of the offsets topic, and a clean one where it was not allowed": Case(
        rows=[
            TEN,
            fetched(7, at=(3, 4)),
            led(2, 1, unclean=True, unclean_allowed=False, topic="__consumer_offsets"),
            led(3, 2, topic="__consumer_offsets"),
        ],
        settings=UNCLEAN,
        verdict=FAIL,
    ),
    "an unclean election of the offsets topic": Case(
        rows=[TEN, fetched(7, at=(3, 4)), elected_uncleanly(2, 1, topic="__consumer_offsets")],
        settings=UNCLEAN,
        verdict=PASS,
        severities=["expected"],
    ),
    "an unclean election of another topic": Case(
        rows=[TEN, fetched(7, at=(3, 4)), elected_uncleanly(2, 1)],
        settings=UNCLEAN,
        verdict=FAIL,
        severities=["violation"],
    ),
}

answers = answers_of("offset-regression", CASES)


@pytest.mark.parametrize("case", CASES)
def test_committed_offsets_read_back(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

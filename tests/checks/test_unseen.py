import pytest

from tests.analysis.fact_rows import elected_uncleanly, held, read, remark, replica, sent, state
from tests.checks.answers import (
    FAIL,
    NOT_UNIQUE,
    PASS,
    UNCLEAN,
    UNKNOWN,
    Answer,
    Case,
    answers_of,
    confirm,
    without_each,
)

pytestmark = pytest.mark.spark

LOGS = [state(0, leader=1, epoch=0, isr=[1]), replica(1, 2), held(1, "a", 0)]

CASES = {
    "it was read": Case(rows=[sent("a", 0), read("a", 0), *LOGS], verdict=PASS, severities=[]),
    "it is in the log, so it is late": Case(
        rows=[sent("a", 0), *LOGS], verdict=PASS, severities=["note"], text="readers came to offset -1"
    ),
    "it is in no log, so it is lost": Case(
        rows=[sent("b", 1), read("a", 0), *LOGS], verdict=FAIL, severities=["violation"]
    ),
    "another record is in its place": Case(rows=[sent("b", 0), *LOGS], verdict=FAIL, severities=["violation"]),
    "another record was read in its place, last of all": Case(
        rows=[sent("b", 0), read("a", 0), *LOGS], verdict=FAIL, severities=["violation"]
    ),
    "value ids are not unique": Case(rows=[sent("b", 1), *LOGS, NOT_UNIQUE], verdict=UNKNOWN),
    "the clients' history has holes": Case(
        rows=[sent("b", 1), *LOGS, remark("operations/c0.jsonl", "unreadable lines", 1)], verdict=UNKNOWN
    ),
    "only a replica outside the ISR has it": Case(
        rows=[sent("b", 1), *LOGS, held(2, "b", 1)], verdict=FAIL, severities=["violation"]
    ),
    "acks=1 promises little": Case(rows=[sent("b", 1, acks=1), *LOGS], verdict=PASS, severities=["expected"]),
    "an unclean election followed": Case(
        rows=[sent("b", 1), *LOGS, elected_uncleanly(2, 1)], settings=UNCLEAN, verdict=PASS, severities=["expected"]
    ),
    "readers passed it: a lost write instead": Case(
        rows=[sent("b", 1), read("c", 2), *LOGS], verdict=PASS, severities=[]
    ),
    "no logs to decide by": Case(rows=[sent("b", 1), LOGS[0]], verdict=UNKNOWN, severities=[]),
    "the dump of an ISR member is missing": Case(rows=[sent("b", 1), LOGS[0], LOGS[2]], verdict=UNKNOWN, severities=[]),
}

CASES |= without_each(CASES["it was read"], "sends", "replica_records", "partition_states")

answers = answers_of("unseen", CASES)


@pytest.mark.parametrize("case", CASES)
def test_acknowledged_records_that_nobody_read(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

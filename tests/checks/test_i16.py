from typing import Any

import pytest

from tests.analysis.fact_rows import Row, committed, elected_uncleanly, fetched, read, remark, state
from tests.analysis.protocol_rows import waited_for
from tests.checks.answers import FAIL, PASS, UNCLEAN, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

READ = [read("a", 4), waited_for([1, 2], 5)]


def logged(offset: int, **other: Any) -> Row:
    of_log: dict[str, Any] = {"source": "log", "process": None, "index": None, "log_partition": 0, "log_offset": 1}
    row = committed(offset, at=(0, None), **of_log | other)
    return row[0], row[1] | {"invoke_ns": None}


CASES = {
    "up to the high watermark": Case(rows=[*READ, committed(5, at=(1, 2))], verdict=PASS),
    "past the high watermark": Case(
        rows=[*READ, committed(6, at=(1, 2))], verdict=FAIL, offsets=[6], text="whose high watermark never passed 5"
    ),
    "past it, by a process that never read": Case(
        rows=[*READ, committed(6, at=(1, 2), process="committer-1")], verdict=PASS
    ),
    "past it, by a commit that was not acknowledged": Case(
        rows=[*READ, committed(6, at=(1, None), outcome="info"), committed(4, at=(0, 1))], verdict=PASS
    ),
    "the last one is in the log": Case(
        rows=[*READ, committed(3, at=(1, 2)), committed(5, at=(3, 4)), logged(5)], verdict=PASS
    ),
    "the last one is not in the log": Case(
        rows=[*READ, committed(3, at=(1, 2)), committed(5, at=(3, 4)), logged(3)],
        verdict=FAIL,
        offsets=[5],
        text="no replica has it",
    ),
    "an unclean election gave it up": Case(
        rows=[*READ, committed(6, at=(1, 2)), elected_uncleanly(2, 1)],
        settings=UNCLEAN,
        verdict=PASS,
        severities=["expected"],
    ),
    "the high watermark went on with another ISR": Case(
        rows=[*READ, waited_for([1], 8), committed(7, at=(1, 2))], verdict=PASS
    ),
    "past it, and only read back": Case(rows=[*READ, committed(5, at=(1, 2)), fetched(6, at=(3, 4))], verdict=PASS),
    "a group of which only the log tells": Case(
        rows=[*READ, committed(5, at=(1, 2)), logged(5), logged(7, group="g1")], verdict=PASS
    ),
    "the dump of an ISR member is missing": Case(
        rows=[*READ, committed(6, at=(1, 2)), state(0, leader=1, epoch=0, isr=[1])],
        verdict=UNKNOWN,
        text="its dump is missing",
    ),
    "the offsets topic was not decoded": Case(rows=[*READ, committed(5, at=(3, 4))], verdict=PASS),
    "the clients' history has holes": Case(
        rows=[*READ, committed(6, at=(1, 2)), remark("operations/c0.jsonl", "unreadable lines", 1)], verdict=UNKNOWN
    ),
    "nobody committed": Case(rows=READ, verdict=UNKNOWN, text="committed_offsets"),
}

answers = answers_of("I16", CASES)


@pytest.mark.parametrize("case", CASES)
def test_how_far_commits_go_and_whether_they_last(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

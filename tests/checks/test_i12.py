import pytest

from tests.analysis.fact_rows import held, remark, replica
from tests.analysis.protocol_rows import appended
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm, without_each

pytestmark = pytest.mark.spark

INTACT = [
    appended(1, 0, 4, epoch=0),
    appended(1, 5, 9, epoch=2),
    replica(1, 7, leader_epochs=[[0, 0], [2, 5]]),
    held(1, "a", 4, 0),
    held(1, "b", 5, 2),
]

CASES = {
    "epochs rise along the log": Case(rows=INTACT, verdict=PASS),
    "a log without epochs": Case(rows=[appended(1, 0, 4), replica(1, 0)], verdict=PASS),
    "the cache goes back in epoch": Case(
        rows=[appended(1, 0, 4), replica(1, 7, leader_epochs=[[2, 0], [1, 5]])], verdict=FAIL, text="[[2,0],[1,5]]"
    ),
    "two epochs of the cache start together": Case(
        rows=[appended(1, 0, 4), replica(1, 7, leader_epochs=[[0, 0], [1, 3], [2, 3]])], verdict=FAIL, text="strictly"
    ),
    "an epoch stands twice in the cache": Case(
        rows=[appended(1, 0, 4), replica(1, 7, leader_epochs=[[0, 0], [0, 3]])], verdict=FAIL, text="strictly"
    ),
    "a record of an older epoch comes later": Case(
        rows=[*INTACT, held(1, "c", 3, 2)], verdict=FAIL, offsets=[3], text="a record of an older epoch at offset 4"
    ),
    "a record of an older epoch stands at the same offset": Case(
        rows=[*INTACT, appended(3, 4, 4, epoch=1, role="leader"), held(1, "c", 4, 1)],
        verdict=FAIL,
        offsets=[4],
        text="a record of an older epoch at offset 4",
    ),
    "on another replica it is another matter": Case(rows=[*INTACT, held(2, "c", 5, 2)], verdict=PASS),
    "a record bears an epoch that its leader did not write there": Case(
        rows=[*INTACT, held(2, "c", 9, 2), held(2, "d", 10, 2)],
        verdict=FAIL,
        offsets=[9],
        text="did not write them there",
    ),
    "a record bears an epoch in which its leader began to write later": Case(
        rows=[*INTACT, held(2, "c", 3, 2)], verdict=FAIL, offsets=[3], text="did not write them there"
    ),
    "two brokers wrote in one epoch, as I1 will say": Case(
        rows=[*INTACT, appended(3, 10, 12, epoch=2, role="leader"), held(2, "c", 5, 2), held(2, "d", 12, 2)],
        verdict=PASS,
    ),
    "a record bears an epoch in which nobody wrote": Case(
        rows=[*INTACT, held(2, "c", 10, 3)], verdict=FAIL, text="did not write them there"
    ),
    "a follower's writes do not count": Case(
        rows=[*INTACT, appended(2, 10, 10, epoch=2), held(2, "c", 10, 2)], verdict=FAIL
    ),
    "a broker's log has holes": Case(
        rows=[*INTACT, remark("brokers/1/state-changes.jsonl", "missing lines, by their numbers", 2)], verdict=UNKNOWN
    ),
    "there is no log": Case(rows=[], verdict=UNKNOWN, text="replicas"),
}

CASES |= without_each(CASES["epochs rise along the log"], "replicas", "appends")

answers = answers_of("I12", CASES)


@pytest.mark.parametrize("case", CASES)
def test_epochs_along_a_log(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

import pytest

from tests.analysis.fact_rows import elected_uncleanly, remark, replica, state
from tests.analysis.protocol_rows import appended, waited_for
from tests.checks.answers import (
    FAIL,
    PASS,
    POWER_LOSS,
    UNCLEAN,
    UNKNOWN,
    Answer,
    Case,
    answers_of,
    confirm,
    without_each,
)

pytestmark = pytest.mark.spark

STATE = state(0, leader=1, epoch=0, isr=[1, 2])
KEPT = [replica(1, 5), replica(2, 5)]
WROTE = [appended(1, 0, 4), appended(2, 0, 4)]
LOST = [STATE, *WROTE, waited_for([1, 2], 5), replica(1, 5), replica(2, 3)]

CASES = {
    "every member of ZooKeeper's ISR had it": Case(rows=[STATE, *KEPT, *WROTE, waited_for([1, 2], 5)], verdict=PASS),
    "one had not, for whom the leader did not wait": Case(
        rows=[STATE, *KEPT, appended(1, 0, 4), appended(2, 0, 2), waited_for([1], 5), waited_for([1, 3], 3)],
        verdict=FAIL,
        offsets=[3],
        text="under version 0 with ISR [1, 2], and the log of broker 2 had come to 3",
    ),
    "one that is not in ZooKeeper's ISR need not": Case(
        rows=[state(0, leader=1, epoch=0, isr=[1]), *KEPT, appended(1, 0, 4), waited_for([1], 5)], verdict=PASS
    ),
    "in the end one has it no more": Case(
        rows=LOST, verdict=FAIL, offsets=[3], severities=["violation"], text="the log of broker 2 ends at 3"
    ),
    "in the end one has what was committed first only": Case(
        rows=[*LOST, waited_for([1], 2)], verdict=FAIL, offsets=[3], severities=["violation"]
    ),
    "in the end one that has left the ISR has it no more": Case(
        rows=[*LOST, state(1, leader=1, epoch=0, isr=[1])], verdict=PASS, severities=[]
    ),
    "a broker's log has holes": Case(
        rows=[*LOST, remark("brokers/2/x", "missing lines, by their numbers", 2)], verdict=UNKNOWN
    ),
    "the dump of an ISR member is missing": Case(rows=LOST[:-1], verdict=UNKNOWN, text="its dump is missing"),
    "an unclean election gave it up": Case(
        rows=[*LOST, elected_uncleanly(2, 1)], settings=UNCLEAN, verdict=PASS, severities=["expected"]
    ),
    "the power was cut": Case(rows=LOST, settings=POWER_LOSS, verdict=PASS, severities=["expected"]),
    "an older broker does not say the version": Case(
        rows=[STATE, *KEPT, *WROTE, waited_for([1, 2], 5, version=None)], verdict=UNKNOWN, text="do not say zk_version"
    ),
    "no high watermark ever rose": Case(rows=[STATE, *KEPT, *WROTE], verdict=UNKNOWN, text="leader_isrs"),
}

CASES |= without_each(
    CASES["every member of ZooKeeper's ISR had it"], "leader_isrs", "appends", "partition_states", "replicas"
)

answers = answers_of("I6", CASES)


@pytest.mark.parametrize("case", CASES)
def test_what_zookeepers_isr_has(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

import pytest

from tests.analysis.fact_rows import elected_uncleanly, held, led, replica, sent, state
from tests.analysis.protocol_rows import topic
from tests.checks.answers import (
    FAIL,
    NOT_UNIQUE,
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

LATER = [sent("a", 0), led(1, 0), led(2, 1), replica(1, 1), replica(2, 1), state(1, leader=2, epoch=1, isr=[2])]

CASES = {
    "the later leader has it": Case(rows=[*LATER, held(2, "a", 0)], verdict=PASS, severities=[]),
    "the later leader does not have it": Case(
        rows=LATER,
        verdict=FAIL,
        severities=["violation"],
        text="a was acknowledged at orders-0 offset 0 in epoch 0, and is not there on broker 2",
    ),
    "another record is in its place": Case(rows=[*LATER, held(2, "b", 0)], verdict=FAIL, severities=["violation"]),
    "it is at another offset": Case(rows=[*LATER, held(2, "a", 1)], verdict=FAIL, severities=["violation"]),
    "the power was cut": Case(rows=LATER, settings=POWER_LOSS, verdict=PASS, severities=["expected"]),
    "the election was unclean": Case(
        rows=[*LATER[:2], elected_uncleanly(2, 1), *LATER[3:]], settings=UNCLEAN, verdict=PASS, severities=["expected"]
    ),
    "the partition was moved away from the later leader": Case(
        rows=[*LATER[:4], topic(present=True, assignment=[{"partition": 0, "replicas": [1]}]), *LATER[4:-1]],
        verdict=PASS,
        severities=[],
    ),
    "another partition was moved away from it": Case(
        rows=[
            *LATER,
            topic(present=True, assignment=[{"partition": 0, "replicas": [1, 2]}, {"partition": 1, "replicas": [1]}]),
        ],
        verdict=FAIL,
        severities=["violation"],
    ),
    "acks=1 makes no such promise": Case(rows=[sent("a", 0, acks=1), *LATER[1:]], verdict=PASS, severities=[]),
    "who led earlier need not have it": Case(
        rows=[sent("a", 0, leader_epoch=1), led(1, 0), led(2, 1), replica(1, 1), replica(2, 1), held(2, "a", 0)],
        verdict=PASS,
        severities=[],
    ),
    "a member of the last ISR does not have it": Case(
        rows=[
            sent("a", 0),
            led(1, 0),
            replica(1, 1),
            held(1, "a", 0),
            replica(2, 0),
            state(1, leader=1, epoch=0, isr=[1, 2]),
        ],
        verdict=FAIL,
        severities=["violation"],
    ),
    "who led before and later does not have it": Case(
        rows=[sent("a", 0, leader_epoch=1), led(2, 0), led(1, 1), led(2, 2), replica(2, 1)],
        verdict=FAIL,
        severities=["violation"],
    ),
    "retention has deleted it": Case(
        rows=[*LATER[:4], replica(2, 1, log_start_offset=1), LATER[-1]], verdict=PASS, severities=[]
    ),
    "the dump of an ISR member is missing": Case(
        rows=[*LATER[:4], LATER[-1]], verdict=UNKNOWN, text="broker 2: its dump is missing"
    ),
    "nothing was sent": Case(rows=[], verdict=UNKNOWN, severities=[]),
    "an unclean election before it excuses nothing": Case(
        rows=[sent("a", 0, leader_epoch=1), elected_uncleanly(1, 1), led(2, 2), replica(2, 1)],
        settings=UNCLEAN,
        verdict=FAIL,
        severities=["violation"],
    ),
    "an unclean election of another partition excuses nothing": Case(
        rows=[*LATER, elected_uncleanly(2, 1, partition=1)], settings=UNCLEAN, verdict=FAIL, severities=["violation"]
    ),
    "a value was sent twice": Case(rows=[*LATER, NOT_UNIQUE], verdict=UNKNOWN, text="value ids: 1 sent more than once"),
}

CASES |= without_each(CASES["the later leader has it"], "sends", "replicas", "leader_epochs")

answers = answers_of("I10", CASES)


@pytest.mark.parametrize("case", CASES)
def test_acknowledged_records_in_the_logs_of_later_leaders(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

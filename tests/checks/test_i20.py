import pytest

from tests.analysis.fact_rows import Row, sent, state
from tests.analysis.protocol_rows import injected, registered, topic
from tests.checks.answers import FAIL, PASS, UNCLEAN, UNKNOWN, Answer, Case, answers_of, confirm, without_each

pytestmark = pytest.mark.spark

THREE = [registered(1), registered(2), registered(3, until_zxid=None)]
BEGUN = state(0, leader=1, epoch=0, isr=[1, 2, 3])
LOST = state(1, leader=1, epoch=0, isr=[1, 2], previous=BEGUN)
UNANSWERED = sent("b", invoke_ns=1_000_000_000, complete_ns=None, index=7)


def ended(at_s: float) -> Row:
    return sent("a", 0, complete_ns=int(at_s * 1e9))


CASES = {
    "all live replicas are in sync": Case(rows=[*THREE, BEGUN, ended(5)], verdict=PASS),
    "a dead broker's replica is not missed": Case(
        rows=[registered(1), registered(2), registered(3, until_zxid=40), BEGUN, LOST, ended(5)], verdict=PASS
    ),
    "a live replica never came back": Case(
        rows=[*THREE, BEGUN, LOST, injected(healed_s=10), ended(80)], verdict=FAIL, text="leader 1 and ISR [1, 2]"
    ),
    "the run ended before the deadline": Case(
        rows=[*THREE, BEGUN, LOST, injected(healed_s=10), ended(20)], verdict=PASS, severities=["note"]
    ),
    "without any fault there is nothing to wait for": Case(rows=[*THREE, BEGUN, LOST, ended(5)], verdict=FAIL),
    "nobody leads": Case(
        rows=[*THREE, state(1, leader=-1, epoch=1, isr=[1, 2, 3]), ended(5)], verdict=FAIL, epochs=[1], text="no leader"
    ),
    "the leader is dead": Case(
        rows=[registered(2), registered(3), state(0, leader=1, epoch=0, isr=[2, 3]), ended(5)], verdict=FAIL
    ),
    "the last of the ISR is down, so nobody may lead": Case(
        rows=[registered(2), registered(3), state(1, leader=-1, epoch=1, isr=[1]), ended(5)],
        verdict=PASS,
        severities=["note"],
    ),
    "the last of the ISR is down, and unclean election is allowed": Case(
        rows=[registered(2), registered(3), state(1, leader=-1, epoch=1, isr=[1]), ended(5)],
        settings=UNCLEAN,
        verdict=FAIL,
    ),
    "nobody is there who could lead": Case(
        rows=[registered(1, until_zxid=30), state(1, leader=-1, epoch=1, isr=[1]), ended(5)],
        verdict=PASS,
        severities=[],
    ),
    "the only replica that there is lives, and does not lead": Case(
        rows=[registered(1), state(1, leader=-1, epoch=1, isr=[1], assignment=[1]), ended(5)], verdict=FAIL
    ),
    "the deadline is over": Case(rows=[*THREE, BEGUN, LOST, injected(healed_s=10), ended(70)], verdict=FAIL),
    "the deadline is not quite over": Case(
        rows=[*THREE, BEGUN, LOST, injected(healed_s=10), ended(69.9)], verdict=PASS, severities=["note"]
    ),
    "the deadline begins with the last of two faults": Case(
        rows=[*THREE, BEGUN, LOST, injected(healed_s=10), injected(healed_s=30), ended(80)],
        verdict=PASS,
        severities=["note"],
    ),
    "a broker that is dead logged its registration": Case(
        rows=[
            registered(1),
            registered(2),
            registered(3, until_zxid=40),
            registered(3, source="broker"),
            BEGUN,
            LOST,
            ended(5),
        ],
        verdict=PASS,
        severities=[],
    ),
    "another topic is gone, and this one is there": Case(
        rows=[*THREE, BEGUN, LOST, topic(present=True), topic("other", present=False), ended(5)], verdict=FAIL
    ),
    "a topic whose deletion waits needs no leader": Case(
        rows=[*THREE, state(1, leader=-1, epoch=1, isr=[1]), topic(present=True, deletion_pending=True), ended(5)],
        verdict=PASS,
        severities=[],
    ),
    "a fault that never was injected needs no healing": Case(
        rows=[*THREE, BEGUN, ("fault_windows", injected(healed_s=None)[1] | {"injected_ns": None}), ended(80)],
        verdict=PASS,
    ),
    "a long run in which every request had its end": Case(rows=[*THREE, BEGUN, sent("a", 0), ended(200)], verdict=PASS),
    "two clients are left without an answer, one of them twice": Case(
        rows=[
            *THREE,
            BEGUN,
            UNANSWERED,
            sent("c", invoke_ns=5_000_000_000, complete_ns=None, index=8),
            sent("d", invoke_ns=5_000_000_000, complete_ns=None, process="p1"),
            ended(70),
        ],
        verdict=FAIL,
        severities=["violation", "violation"],
        text="2 of p0 to orders had none, the longest in 69 s",
        shown='"index":7,"number":2',
    ),
    "a topic that is gone needs no leader": Case(
        rows=[*THREE, state(1, leader=-1, epoch=1, isr=[1]), topic(present=False), ended(5)], verdict=PASS
    ),
    "a request never got an end": Case(
        rows=[*THREE, BEGUN, UNANSWERED, ended(61)], verdict=FAIL, text="1 of p0 to orders had none"
    ),
    "the run ended before its deadline": Case(rows=[*THREE, BEGUN, UNANSWERED, ended(60)], verdict=PASS),
    "its deadline begins when all is healed": Case(
        rows=[*THREE, BEGUN, UNANSWERED, injected(healed_s=10), ended(69)], verdict=PASS
    ),
    "it never got an end after all was healed": Case(
        rows=[*THREE, BEGUN, UNANSWERED, injected(healed_s=10), ended(70)], verdict=FAIL
    ),
    "a fault was never healed": Case(
        rows=[*THREE, BEGUN, injected(healed_s=None), ended(80)], verdict=UNKNOWN, text="never healed"
    ),
    "ZooKeeper's history is empty": Case(rows=[ended(5)], verdict=UNKNOWN, text="partition_states"),
}

CASES |= without_each(CASES["all live replicas are in sync"], "partition_states", "registrations", "sends")

answers = answers_of("I20", CASES)


@pytest.mark.parametrize("case", CASES)
def test_what_is_whole_again_in_the_end(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

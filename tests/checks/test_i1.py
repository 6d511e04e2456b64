import pytest

from tests.analysis.fact_rows import Row, led, state
from tests.analysis.protocol_rows import appended
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm, without_each

pytestmark = pytest.mark.spark

CREATED = state(0, leader=1, epoch=0, isr=[1, 2, 3], writer="controller")


def then(version: int, *, epoch: int, leader: int = 2, writer: str | None = "controller", before: Row = CREATED) -> Row:
    return state(version, leader=leader, epoch=epoch, isr=[2, 3], writer=writer, previous=before)


CASES = {
    "an election raises the epoch by one": Case(rows=[led(1, 0), CREATED, then(1, epoch=1)], verdict=PASS),
    "a leader keeps its epoch": Case(
        rows=[led(1, 0), CREATED, then(1, epoch=0, leader=1, writer="leader")], verdict=PASS
    ),
    "versions that nobody saw lie between": Case(rows=[led(1, 0), CREATED, then(3, epoch=2)], verdict=PASS),
    "versions that nobody saw lie between, and a leader wrote the last": Case(
        rows=[led(1, 0), CREATED, then(3, epoch=2, writer="leader")], verdict=PASS
    ),
    "it goes back": Case(
        rows=[led(1, 0), then(1, epoch=0, before=state(0, leader=1, epoch=5, isr=[1]))],
        verdict=FAIL,
        text="never goes back",
    ),
    "two leaders follow in one epoch": Case(
        rows=[led(1, 0), CREATED, then(1, epoch=0, writer=None)], verdict=FAIL, text="needs another epoch"
    ),
    "a controller skips an epoch": Case(
        rows=[led(1, 0), CREATED, then(1, epoch=2)], verdict=FAIL, text="each decision"
    ),
    "a controller decides and keeps the epoch": Case(
        rows=[led(1, 0), CREATED, then(1, epoch=0, leader=1)], verdict=FAIL, text="each decision"
    ),
    "a leader raises its own epoch": Case(
        rows=[led(1, 0), CREATED, then(1, epoch=1, leader=1, writer="leader")], verdict=FAIL, text="keeps it"
    ),
    "epochs outrun versions": Case(
        rows=[led(1, 0), then(3, epoch=3, before=state(1, leader=1, epoch=0, isr=[1]))],
        verdict=FAIL,
        text="by one at most",
    ),
    "ZooKeeper's history is empty": Case(rows=[], verdict=UNKNOWN, text="partition_states"),
}

CASES |= without_each(CASES["an election raises the epoch by one"], "partition_states", "leader_epochs")

answers = answers_of("I1", CASES)


@pytest.mark.parametrize("case", CASES)
def test_leader_epochs_along_the_versions_of_the_state(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])


LEADERS = {
    "each epoch has its leader": Case(rows=[CREATED, led(1, 0), led(2, 1)], verdict=PASS),
    "no leader is nobody's rival": Case(rows=[CREATED, led(-1, 1), led(2, 1, zxid=None)], verdict=PASS),
    "a broker claims another's epoch": Case(
        rows=[CREATED, led(1, 0), led(2, 0, zxid=None, life=None)],
        verdict=FAIL,
        text="in epoch 0 of orders-0 brokers 1, 2",
    ),
    "a broker that followed in an epoch writes as its leader": Case(
        rows=[
            CREATED,
            led(1, 0),
            led(2, 0, zxid=None, life=None),
            appended(2, 3, 4, role="follower"),
            appended(1, 5, 6),
            appended(2, 7, 8, role="leader"),
        ],
        verdict=FAIL,
        offsets=[5],
    ),
    "two brokers claim an epoch that ZooKeeper's history does not have": Case(
        rows=[CREATED, led(1, 5, zxid=None, life=None), led(2, 5, zxid=None, life=None)], verdict=FAIL
    ),
    "a broker claims another's epoch of a topic made anew": Case(
        rows=[CREATED, led(1, 5, life=2), led(2, 5, zxid=None, life=None)], verdict=FAIL
    ),
    "a topic made anew begins again at epoch 0": Case(rows=[CREATED, led(1, 0), led(2, 0, life=2)], verdict=PASS),
}

leaders = answers_of("I1", LEADERS)


@pytest.mark.parametrize("case", LEADERS)
def test_one_leader_in_each_epoch(case: str, leaders: dict[str, Answer]) -> None:
    confirm(LEADERS[case], leaders[case])

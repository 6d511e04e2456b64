from tests.analysis.fact_rows import Row, controller, state
from tests.checks.answers import fails, passes, table_of, unknown

FIRST = controller(3, 1, zxid=100)
SECOND = controller(1, 2, zxid=150)
CREATED = state(0, leader=1, epoch=0, isr=[1, 2], zxid=110, writer="controller")
BEFORE = [FIRST, SECOND, CREATED]


def written_at(zxid: int, *, epoch: int, controller_epoch: int, writer: str | None) -> Row:
    return state(
        1, leader=1, epoch=epoch, isr=[1], zxid=zxid, controller_epoch=controller_epoch, writer=writer, previous=CREATED
    )


CASES = {
    "epochs grow and words agree": passes(FIRST, SECOND, controller(1, 2, zxid=None)),
    "an epoch is used again": fails(
        SECOND, controller(2, 2, zxid=160), text="strictly increase", severities=["violation", "violation"]
    ),
    "an epoch goes back": fails(SECOND, controller(3, 1, zxid=160), text="strictly increase"),
    "another broker says it has the epoch": fails(FIRST, controller(2, 1, zxid=None), text="brokers 2 and 3"),
    "the winner was not seen": passes(controller(None, 1, zxid=100), controller(2, 1, zxid=None)),
    "no election was seen": unknown(text="controller_epochs"),
}

test_controller_epochs = table_of("I2", CASES)

DECISIONS = {
    "before the next one": passes(*BEFORE, written_at(140, epoch=1, controller_epoch=1, writer="controller")),
    "before the next one, which says itself that it won": passes(FIRST, SECOND, controller(1, 2, zxid=None), CREATED),
    "of a new partition, after the next one": fails(FIRST, SECOND, state(0, leader=1, epoch=0, isr=[1, 2], zxid=160)),
    "by the next one": passes(*BEFORE, written_at(160, epoch=1, controller_epoch=2, writer="controller")),
    "after the next one": fails(*BEFORE, written_at(160, epoch=1, controller_epoch=1, writer="controller")),
    "by the broker that raises the epoch": fails(*BEFORE, written_at(160, epoch=1, controller_epoch=1, writer=None)),
    "a leader repeats the old": passes(*BEFORE, written_at(160, epoch=0, controller_epoch=1, writer="leader")),
    "an ISR change by an unknown broker": passes(*BEFORE, written_at(160, epoch=0, controller_epoch=1, writer=None)),
}

test_decisions_under_an_older_controller_epoch = table_of("I2", DECISIONS)

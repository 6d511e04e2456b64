from tests.analysis.fact_rows import Row, led, state
from tests.analysis.protocol_rows import appended
from tests.checks.answers import fails, passes, table_of, unknown

CREATED = state(0, leader=1, epoch=0, isr=[1, 2, 3], writer="controller")


def then(version: int, *, epoch: int, leader: int = 2, writer: str | None = "controller", before: Row = CREATED) -> Row:
    return state(version, leader=leader, epoch=epoch, isr=[2, 3], writer=writer, previous=before)


CASES = {
    "an election raises the epoch by one": passes(led(1, 0), CREATED, then(1, epoch=1)),
    "a leader keeps its epoch": passes(led(1, 0), CREATED, then(1, epoch=0, leader=1, writer="leader")),
    "unseen versions lie between": passes(led(1, 0), CREATED, then(3, epoch=2)),
    "unseen versions lie between, and a leader wrote the last": passes(
        led(1, 0), CREATED, then(3, epoch=2, writer="leader")
    ),
    "it goes back": fails(
        led(1, 0), then(1, epoch=0, before=state(0, leader=1, epoch=5, isr=[1])), text="never goes back"
    ),
    "two leaders follow in one epoch": fails(
        led(1, 0), CREATED, then(1, epoch=0, writer=None), text="needs another epoch"
    ),
    "a controller skips an epoch": fails(led(1, 0), CREATED, then(1, epoch=2), text="each decision"),
    "a controller decides and keeps the epoch": fails(
        led(1, 0), CREATED, then(1, epoch=0, leader=1), text="each decision"
    ),
    "a leader raises its own epoch": fails(
        led(1, 0), CREATED, then(1, epoch=1, leader=1, writer="leader"), text="keeps it"
    ),
    "epochs outrun versions": fails(
        led(1, 0), then(3, epoch=3, before=state(1, leader=1, epoch=0, isr=[1])), text="by one at most"
    ),
    "ZooKeeper's history is empty": unknown(text="partition_states"),
}

CASES |= CASES["an election raises the epoch by one"].without_each("partition_states", "leader_epochs")

test_leader_epochs_along_the_versions_of_the_state = table_of("I1", CASES)

LEADERS = {
    "each epoch has its leader": passes(CREATED, led(1, 0), led(2, 1)),
    "no leader is no second leader": passes(CREATED, led(-1, 1), led(2, 1, zxid=None)),
    "a broker claims another's epoch": fails(
        CREATED, led(1, 0), led(2, 0, zxid=None, life=None), text="in epoch 0 of orders-0 brokers 1, 2"
    ),
    "a broker that followed in an epoch writes as its leader": fails(
        CREATED,
        led(1, 0),
        led(2, 0, zxid=None, life=None),
        appended(2, 3, 4, role="follower"),
        appended(1, 5, 6),
        appended(2, 7, 8, role="leader"),
        offsets=[5],
    ),
    "two brokers claim an epoch that ZooKeeper's history does not have": fails(
        CREATED, led(1, 5, zxid=None, life=None), led(2, 5, zxid=None, life=None)
    ),
    "a broker claims another's epoch of a topic made anew": fails(
        CREATED, led(1, 5, life=2), led(2, 5, zxid=None, life=None)
    ),
    "a topic made anew begins again at epoch 0": passes(CREATED, led(1, 0), led(2, 0, life=2)),
}

test_one_leader_in_each_epoch = table_of("I1", LEADERS)

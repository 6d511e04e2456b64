from tests.analysis.fact_rows import held, replica
from tests.analysis.protocol_rows import appended
from tests.checks.answers import UNHEARD, fails, passes, table_of, unknown

INTACT = [
    appended(1, 0, 4, epoch=0),
    appended(1, 5, 9, epoch=2),
    replica(1, 7, leader_epochs=[[0, 0], [2, 5]]),
    held(1, "a", 4, 0),
    held(1, "b", 5, 2),
]

CASES = {
    "epochs rise along the log": passes(*INTACT),
    "a log without epochs": passes(appended(1, 0, 4), replica(1, 0)),
    "the cache goes back in epoch": fails(
        appended(1, 0, 4), replica(1, 7, leader_epochs=[[2, 0], [1, 5]]), text="[[2,0],[1,5]]"
    ),
    "two epochs of the cache start together": fails(
        appended(1, 0, 4), replica(1, 7, leader_epochs=[[0, 0], [1, 3], [2, 3]]), text="strictly"
    ),
    "an epoch stands twice in the cache": fails(
        appended(1, 0, 4), replica(1, 7, leader_epochs=[[0, 0], [0, 3]]), text="strictly"
    ),
    "a record of an older epoch comes later": fails(
        *INTACT, held(1, "c", 3, 2), offsets=[3], text="a record of an older epoch at offset 4"
    ),
    "a record of an older epoch stands at the same offset": fails(
        *INTACT,
        appended(3, 4, 4, epoch=1, role="leader"),
        held(1, "c", 4, 1),
        offsets=[4],
        text="a record of an older epoch at offset 4",
    ),
    "on another replica it is another matter": passes(*INTACT, held(2, "c", 5, 2)),
    "a record bears an epoch that its leader did not write there": fails(
        *INTACT, held(2, "c", 9, 2), held(2, "d", 10, 2), offsets=[9], text="did not write them there"
    ),
    "a record bears an epoch in which its leader began to write later": fails(
        *INTACT, held(2, "c", 3, 2), offsets=[3], text="did not write them there"
    ),
    "two brokers wrote in one epoch, as I1 will say": passes(
        *INTACT, appended(3, 10, 12, epoch=2, role="leader"), held(2, "c", 5, 2), held(2, "d", 12, 2)
    ),
    "a record has an epoch in which it was not written": fails(
        *INTACT, held(2, "c", 10, 3), text="did not write them there"
    ),
    "a follower's writes do not count": fails(*INTACT, appended(2, 10, 10, epoch=2), held(2, "c", 10, 2)),
    "a broker's log has holes": unknown(*INTACT, UNHEARD),
    "there is no log": unknown(text="replicas"),
}

CASES |= CASES["epochs rise along the log"].without_each("replicas", "appends")

test_epochs_along_a_log = table_of("I12", CASES)

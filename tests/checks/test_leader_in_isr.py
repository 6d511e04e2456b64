from tests.analysis.fact_rows import state
from tests.checks.answers import fails, passes, table_of, unknown

CASES = {
    "the leader is in the ISR": passes(state(0, leader=1, epoch=0, isr=[1, 2])),
    "no leader, and the last ISR stays": passes(state(0, leader=-1, epoch=1, isr=[2])),
    "the leader is outside": fails(state(0, leader=3, epoch=0, isr=[1, 2]), text="leader 3 is not in"),
    "the ISR is empty": fails(state(0, leader=-1, epoch=1, isr=[]), text="the ISR is empty"),
    "the ISR is empty, and who is eligible beside it may lead again": passes(
        state(0, leader=-1, epoch=1, isr=[], eligible=[2])
    ),
    "the ISR is empty, and who led last may lead again": passes(
        state(0, leader=-1, epoch=1, isr=[], eligible=[], last_known=[2])
    ),
    "the ISR is empty, who led last is known, and somebody leads": fails(
        state(0, leader=2, epoch=1, isr=[], eligible=[], last_known=[2]), text="the ISR is empty"
    ),
    "neither the ISR nor who is eligible beside it is anybody": fails(
        state(0, leader=-1, epoch=1, isr=[], eligible=[]), text="the ISR is empty"
    ),
    "a stranger is in the ISR": fails(state(0, leader=1, epoch=0, isr=[1, 9]), text="names 9"),
    "the assignment was not seen": passes(state(0, leader=1, epoch=0, isr=[1, 9], assignment=None)),
    "ZooKeeper's history is empty": unknown(text="partition_states"),
}

test_the_leader_the_isr_and_the_assignment = table_of("I3", CASES)

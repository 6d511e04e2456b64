from tests.analysis.fact_rows import state
from tests.analysis.protocol_rows import topic
from tests.checks.answers import fails, passes, table_of, unknown

GONE = state(0, leader=1, epoch=0, isr=[1, 9], once_assigned=[1, 2, 3, 9])
CASES = {
    "the leader is in the ISR": passes(state(0, leader=1, epoch=0, isr=[1, 2])),
    "no leader, and the last ISR stays": passes(state(0, leader=-1, epoch=1, isr=[2])),
    "the leader is outside": fails(state(0, leader=3, epoch=0, isr=[1, 2]), text="leader 3 is not in"),
    "the ISR is empty": fails(state(0, leader=-1, epoch=1, isr=[]), text="the ISR is empty"),
    "the ISR is empty, and an eligible replica outside it may lead again": passes(
        state(0, leader=-1, epoch=1, isr=[], eligible=[2])
    ),
    "the ISR is empty, and the last leader may lead again": passes(
        state(0, leader=-1, epoch=1, isr=[], eligible=[], last_known=[2])
    ),
    "the ISR is empty, the last leader is known, and there is a leader": fails(
        state(0, leader=2, epoch=1, isr=[], eligible=[], last_known=[2]), text="the ISR is empty"
    ),
    "both the ISR and the eligible replicas are empty": fails(
        state(0, leader=-1, epoch=1, isr=[], eligible=[]), text="the ISR is empty"
    ),
    "a stranger is in the ISR": fails(state(0, leader=1, epoch=0, isr=[1, 9]), text="names 9"),
    "a member is no replica any more": passes(GONE),
    "and still is none, in the end": fails(GONE, topic(present=True, reassigned=[]), text="names 9"),
    "and still is none, in the last version, with the topic in another life": passes(
        GONE, state(1, leader=1, epoch=0, isr=[1], life=2), topic(present=True, reassigned=[])
    ),
    "and its topic is being deleted": passes(GONE, topic(present=True, reassigned=[], deletion_pending=True)),
    "and its topic was deleted": passes(GONE, topic(present=False)),
    "and its partition is moved": passes(GONE, topic(present=True, reassigned=[0])),
    "the assignment was not seen": passes(state(0, leader=1, epoch=0, isr=[1, 9], assignment=None)),
    "ZooKeeper's history is empty": unknown(text="partition_states"),
}

test_the_leader_the_isr_and_the_assignment = table_of("I3", CASES)

from tests.analysis.fact_rows import state
from tests.analysis.protocol_rows import waited_for
from tests.checks.answers import fails, passes, table_of, unknown

STATE = state(0, leader=1, epoch=0, isr=[2, 1])

CASES = {
    "it waits for the ISR": passes(STATE, waited_for([1, 2], 5)),
    "it waits for more": passes(STATE, waited_for([1, 2, 3], 5)),
    "it leaves a member out": fails(
        STATE, waited_for([1], 5), offsets=[5], text="with [1], but version 0 of the state names [2]"
    ),
    "another version had only those": passes(
        STATE, state(1, leader=1, epoch=0, isr=[1]), waited_for([1], 5, version=1)
    ),
    "the version belongs to another epoch": passes(STATE, waited_for([1], 5, leader_epoch=1)),
    "a topic made anew had only those at that version": passes(
        STATE, state(0, leader=1, epoch=0, isr=[1], life=2, zxid=300), waited_for([1], 5)
    ),
    "a topic made anew had others too at that version": fails(
        STATE, state(0, leader=1, epoch=0, isr=[1, 3], life=2, zxid=300), waited_for([1], 5), shown='"zxid":300'
    ),
    "an older broker does not say the version": unknown(
        STATE, waited_for([1], 5, version=None), text="do not say zk_version"
    ),
    "no high watermark ever rose": unknown(STATE, text="leader_isrs"),
}

CASES |= CASES["it waits for the ISR"].without_each("leader_isrs", "partition_states")

test_whom_a_leader_waits_for = table_of("I8", CASES)

from tests.analysis.fact_rows import state
from tests.analysis.protocol_rows import wrote
from tests.checks.answers import fails, passes, table_of, unknown

CREATED = state(0, leader=1, epoch=0, isr=[1, 2])
NEXT = state(1, leader=1, epoch=0, isr=[1], previous=CREATED)

CASES = {
    "each write replaces the version that it knew": passes(CREATED, NEXT, wrote(0, 1)),
    "a creation replaces none": passes(CREATED, wrote(-1, 0, op="create", writer="controller")),
    "a deletion leaves no version": passes(CREATED, NEXT, wrote(1, -1, op="delete", writer="controller")),
    "a refused write replaces nothing": passes(CREATED, wrote(-1, -1, result="badversion"), wrote(0, 1)),
    "a write replaces another version": fails(
        CREATED, NEXT, wrote(0, 2), text="wrote version 2 of the state of orders-0 over version 0"
    ),
    "a write replaces whatever is there": fails(
        CREATED, NEXT, wrote(-1, 0), text="replaces the version that its writer knew"
    ),
    "versions are missing in the history": unknown(
        CREATED, state(2, leader=1, epoch=0, isr=[1], previous=CREATED), wrote(0, 1), text="gap"
    ),
    "nothing was written": unknown(CREATED, text="state_writes"),
}

CASES |= CASES["each write replaces the version that it knew"].without_each("state_writes", "partition_states")

test_what_a_write_replaces = table_of("I5", CASES)

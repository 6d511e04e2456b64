from tests.analysis.fact_rows import claimed
from tests.analysis.group_rows import in_state, owned
from tests.analysis.protocol_rows import S, injected
from tests.checks.answers import UNHEARD, fails, passes, table_of, unknown

LED = claimed(1, 0, high_watermark=0, end=0)
PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"
BOUND_S = 2 * 20 + 5 + 10

CASES = {
    "members join within their time": passes(LED, in_state(PREPARING, 1, until_ns=BOUND_S * S)),
    "they never do": fails(
        LED,
        in_state(PREPARING, 1, until_ns=(BOUND_S + 1) * S, ended=False),
        text=(
            "group g was PreparingRebalance in generation 1 on broker 1 for 56 s and still is, and its members "
            "give it 55 s"
        ),
        shown='"state":"PreparingRebalance","reason":"test"',
    ),
    "the assignment comes too late": fails(
        LED,
        in_state(COMPLETING, 2, until_ns=(BOUND_S + 1) * S),
        text="group g was CompletingRebalance in generation 2 on broker 1 for 56 s, and its",
    ),
    "a group may be stable for long": passes(LED, in_state("Stable", 1, until_ns=9999 * S)),
    "it may be empty for long": passes(LED, in_state("Empty", 1, until_ns=9999 * S)),
    "a member had more patience before": passes(
        LED,
        in_state(PREPARING, 1, until_ns=(BOUND_S + 1) * S),
        in_state("Stable", 1, seq=90, session_timeout_ms=6_000),
    ),
    "a member gave more time before": passes(
        LED,
        in_state(PREPARING, 1, until_ns=(BOUND_S + 1) * S),
        in_state("Stable", 1, seq=90, rebalance_timeout_ms=20_500),
    ),
    "members of another group have more": fails(
        LED,
        in_state(PREPARING, 1, until_ns=(BOUND_S + 1) * S),
        in_state("Stable", 1, group="h", rebalance_timeout_ms=10**6),
    ),
    "a fault was healed in between": passes(
        LED, in_state(PREPARING, 1, until_ns=(BOUND_S + 4) * S), injected(healed_s=4)
    ),
    "two were, and the later one counts": passes(
        LED, in_state(PREPARING, 1, until_ns=(BOUND_S + 4) * S), injected(healed_s=4), injected(healed_s=2)
    ),
    "a fault had been healed before": fails(
        LED, in_state(PREPARING, 1, seq=9, until_ns=(BOUND_S + 10) * S), injected(healed_s=4)
    ),
    "a fault was never healed": unknown(
        LED, in_state(PREPARING, 1, until_ns=9999 * S), injected(healed_s=None), text="never healed"
    ),
    "lines of a broker are missing": unknown(LED, UNHEARD, text="missing lines"),
    "members say what they own, and no coordinator tells": unknown(LED, owned(), text="no coordinator's log"),
    "there are no groups": passes(LED),
    "nothing is there": unknown(in_state(PREPARING, 1, until_ns=9999 * S), text="leadership_claims"),
}

test_rebalances_end = table_of("I37", CASES)

from tests.analysis.fact_rows import elected_uncleanly, led, state
from tests.analysis.protocol_rows import configured, elected
from tests.checks.answers import POWER_LOSS, UNCLEAN, excused, fails, passes, table_of, unknown

OUTSIDE = led(3, 1, unclean=True)
BEFORE = state(0, leader=1, epoch=0, isr=[1, 2])
AFTER = state(1, leader=3, epoch=1, isr=[3], previous=BEFORE)
ELECTED = [BEFORE, AFTER, elected_uncleanly(3, 1)]

CASES = {
    "the leader comes from the ISR": passes(led(1, 0), led(2, 1)),
    "the ISR before is unknown": passes(led(3, 1, unclean=None)),
    "it comes from outside": fails(led(1, 0), OUTSIDE, text="broker 3, not in it"),
    "from outside, and the power was cut, which explains no election": fails(OUTSIDE, settings=POWER_LOSS),
    "from outside, and the controller says that the configuration allowed it": excused(elected_uncleanly(3, 1)),
    "from outside, and the scenario allows it": excused(OUTSIDE, settings=UNCLEAN),
    "the scenario allows it, and the configuration did not at that instant": fails(
        led(3, 1, unclean=True, unclean_allowed=False), settings=UNCLEAN
    ),
    "the controller says that it was allowed, and the topic's configuration does not": fails(
        *ELECTED, configured(50, unclean_allowed=False), text="was not allowed"
    ),
    "the controller says that it was not allowed, and the topic's configuration does": excused(
        BEFORE, AFTER, led(3, 1, unclean=True, unclean_allowed=False), configured(50, unclean_allowed=True)
    ),
    "the topic's configuration allowed it until the state before was written": fails(
        *ELECTED, configured(50, until_zxid=100, unclean_allowed=True), configured(100, unclean_allowed=False)
    ),
    "the topic's configuration allowed it when the controller may have read it": excused(
        BEFORE,
        state(9, leader=3, epoch=1, isr=[3], previous=BEFORE),
        elected_uncleanly(3, 1, zxid=109),
        configured(50, until_zxid=105, unclean_allowed=True),
        configured(105, unclean_allowed=False),
    ),
    "the topic's configuration allowed it later": fails(
        *ELECTED, configured(50, until_zxid=101, unclean_allowed=False), configured(101, unclean_allowed=True)
    ),
    "the topic's configuration says nothing, so the controller's word counts": excused(*ELECTED, configured(50)),
    "the topic's configuration does not allow it, and an administrator requested it": excused(
        *ELECTED,
        configured(50, unclean_allowed=False),
        elected(3, [3], previous_isr=[1, 2], unclean=True, trigger="admin"),
    ),
    "the topic's configuration did not allow it, and did when another broker was elected": fails(
        *ELECTED,
        state(9, leader=1, epoch=2, isr=[1], previous=AFTER),
        configured(50, until_zxid=105, unclean_allowed=False),
        configured(105, unclean_allowed=True),
    ),
    "the topic's configuration does not allow it, and the state before is unknown": fails(
        AFTER, elected_uncleanly(3, 1), configured(50, unclean_allowed=False)
    ),
    "the topic's configuration was taken back when the controller may have read it": excused(
        BEFORE,
        state(9, leader=3, epoch=1, isr=[3], previous=BEFORE),
        elected_uncleanly(3, 1, zxid=109),
        configured(50, until_zxid=105, unclean_allowed=False),
        configured(105),
    ),
    "another topic's configuration does not allow it": excused(
        *ELECTED, configured(50, unclean_allowed=False, topic="other")
    ),
    "the topic's configuration does not allow it, and it was not requested": fails(
        *ELECTED, configured(50, unclean_allowed=False), elected(3, [3], previous_isr=[1, 2], unclean=True)
    ),
    "the controller calls a clean election clean": passes(led(1, 0), elected(2, [2, 3], previous_isr=[1, 2, 3])),
    "the controller calls an unclean election clean": fails(
        led(1, 0), elected(3, [3], previous_isr=[1, 2]), text="marked the election as clean"
    ),
    "no leader is elected": passes(led(1, 0), elected(None, previous_isr=[1, 2])),
    "it calls it unclean": passes(led(1, 0), elected(3, [3], previous_isr=[1, 2], unclean=True)),
    "there was never a leader": unknown(text="leader_epochs"),
}

test_who_is_elected = table_of("I4", CASES)

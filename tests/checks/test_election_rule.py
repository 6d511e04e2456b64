from tests.analysis.protocol_rows import elected
from tests.checks.answers import fails, passes, table_of, unknown

LAST_DOWN = {"previous_isr": [3], "online": [1, 2]}
LEAVING = {"strategy": "controlled_shutdown", "online": [2, 3], "shutting_down": [1]}

CASES = {
    "the first that is online and in sync": passes(elected(2, [2, 3], online=[3, 2])),
    "another one": fails(elected(3, [2, 3], online=[2, 3]), text="chose broker 3 with ISR [2, 3]"),
    "the right one with another ISR": fails(
        elected(2, [1, 2, 3], online=[2, 3]), text="gives broker 2 with ISR [2, 3]"
    ),
    "no replica in sync is online": passes(elected(None, **LAST_DOWN, error="no replica is eligible")),
    "one from outside, as it may be": passes(elected(1, [1], **LAST_DOWN, unclean_allowed=True)),
    "one from outside, as it may not be": fails(elected(1, [1], **LAST_DOWN), text="gives no leader with ISR ?"),
    "one from outside that keeps the old ISR": fails(
        elected(1, [3], **LAST_DOWN, unclean_allowed=True), text="gives broker 1 with ISR [1]"
    ),
    "none, although one is eligible": fails(elected(None, error="no replica is eligible"), text="chose no leader"),
    "none, because the write failed": passes(elected(None, error="NoNode()")),
    "a new partition": passes(elected(2, [2, 3], strategy="initialize", online=[2, 3], previous_isr=None)),
    "a new partition with a replica that is down": fails(
        elected(2, [1, 2, 3], strategy="initialize", online=[2, 3], previous_isr=None)
    ),
    "the preferred one": passes(elected(1, [1, 2, 3], strategy="preferred")),
    "the preferred one, out of sync": fails(
        elected(1, [2, 3], strategy="preferred", previous_isr=[2, 3]), text="gives no leader"
    ),
    "the first target of a reassignment": passes(elected(3, [1, 2, 3], strategy="reassign", assigned=[3, 2])),
    "the first target of a reassignment, as in 0.8 too": passes(
        elected(3, [1, 2, 3], strategy="reassign", assigned=[3, 2], profile="0.8")
    ),
    "the second target of a reassignment": fails(
        elected(2, [1, 2, 3], strategy="reassign", assigned=[3, 2]), text="gives broker 3"
    ),
    "the first target of a reassignment with another ISR": fails(
        elected(3, [3], strategy="reassign", assigned=[3, 2]), text="with ISR [1, 2, 3]"
    ),
    "one by a rule that is not known": passes(elected(3, [2, 3], online=[2, 3], strategy="by lot")),
    "in place of one that leaves": passes(elected(2, [2, 3], **LEAVING)),
    "the one that leaves": fails(elected(1, [1, 2, 3], **LEAVING)),
    "the head of the ISR, as in 0.8": passes(elected(3, [3, 2], **LEAVING, previous_isr=[3, 1, 2], profile="0.8")),
    "the head of the ISR, unlike 2.5": fails(elected(3, [3, 2], **LEAVING, previous_isr=[3, 1, 2])),
    "an older broker does not log which broker leaves": unknown(
        elected(2, [2, 3], shutting_down=None), text="do not say shutting_down"
    ),
    "there was no election": unknown(text="elections"),
}

test_what_the_selectors_rule_gives = table_of("I22", CASES)

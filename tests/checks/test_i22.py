import pytest

from tests.analysis.protocol_rows import elected
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

LAST_DOWN = {"previous_isr": [3], "online": [1, 2]}
LEAVING = {"strategy": "controlled_shutdown", "online": [2, 3], "shutting_down": [1]}

CASES = {
    "the first that is online and in sync": Case(rows=[elected(2, [2, 3], online=[3, 2])], verdict=PASS),
    "another one": Case(rows=[elected(3, [2, 3], online=[2, 3])], verdict=FAIL, text="chose broker 3 with ISR [2, 3]"),
    "the right one with another ISR": Case(
        rows=[elected(2, [1, 2, 3], online=[2, 3])], verdict=FAIL, text="gives broker 2 with ISR [2, 3]"
    ),
    "nobody in sync is online": Case(rows=[elected(None, **LAST_DOWN, error="no replica is eligible")], verdict=PASS),
    "one from outside, as it may be": Case(rows=[elected(1, [1], **LAST_DOWN, unclean_allowed=True)], verdict=PASS),
    "one from outside, as it may not be": Case(
        rows=[elected(1, [1], **LAST_DOWN)], verdict=FAIL, text="gives nobody with ISR ?"
    ),
    "one from outside that keeps the old ISR": Case(
        rows=[elected(1, [3], **LAST_DOWN, unclean_allowed=True)], verdict=FAIL, text="gives broker 1 with ISR [1]"
    ),
    "nobody, although one is eligible": Case(
        rows=[elected(None, error="no replica is eligible")], verdict=FAIL, text="chose nobody"
    ),
    "nobody, because the write failed": Case(rows=[elected(None, error="NoNode()")], verdict=PASS),
    "a new partition": Case(
        rows=[elected(2, [2, 3], strategy="initialize", online=[2, 3], previous_isr=None)], verdict=PASS
    ),
    "a new partition with a replica that is down": Case(
        rows=[elected(2, [1, 2, 3], strategy="initialize", online=[2, 3], previous_isr=None)], verdict=FAIL
    ),
    "the preferred one": Case(rows=[elected(1, [1, 2, 3], strategy="preferred")], verdict=PASS),
    "the preferred one, out of sync": Case(
        rows=[elected(1, [2, 3], strategy="preferred", previous_isr=[2, 3])], verdict=FAIL, text="gives nobody"
    ),
    "the first target of a reassignment": Case(
        rows=[elected(3, [1, 2, 3], strategy="reassign", assigned=[3, 2])], verdict=PASS
    ),
    "the first target of a reassignment, as in 0.8 too": Case(
        rows=[elected(3, [1, 2, 3], strategy="reassign", assigned=[3, 2], profile="0.8")], verdict=PASS
    ),
    "the second target of a reassignment": Case(
        rows=[elected(2, [1, 2, 3], strategy="reassign", assigned=[3, 2])], verdict=FAIL, text="gives broker 3"
    ),
    "the first target of a reassignment with another ISR": Case(
        rows=[elected(3, [3], strategy="reassign", assigned=[3, 2])], verdict=FAIL, text="with ISR [1, 2, 3]"
    ),
    "one by a rule that is not known": Case(rows=[elected(3, [2, 3], online=[2, 3], strategy="by lot")], verdict=PASS),
    "in place of one that leaves": Case(rows=[elected(2, [2, 3], **LEAVING)], verdict=PASS),
    "the one that leaves": Case(rows=[elected(1, [1, 2, 3], **LEAVING)], verdict=FAIL),
    "the head of the ISR, as in 0.8": Case(
        rows=[elected(3, [3, 2], **LEAVING, previous_isr=[3, 1, 2], profile="0.8")], verdict=PASS
    ),
    "the head of the ISR, as in 2.5 nobody does": Case(
        rows=[elected(3, [3, 2], **LEAVING, previous_isr=[3, 1, 2])], verdict=FAIL
    ),
    "an older broker does not say who leaves": Case(
        rows=[elected(2, [2, 3], shutting_down=None)], verdict=UNKNOWN, text="do not say shutting_down"
    ),
    "there was no election": Case(rows=[], verdict=UNKNOWN, text="elections"),
}

answers = answers_of("I22", CASES)


@pytest.mark.parametrize("case", CASES)
def test_what_the_selectors_rule_gives(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])

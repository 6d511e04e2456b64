from tests.analysis.fact_rows import elected_uncleanly, led
from tests.analysis.group_rows import reported, stored
from tests.checks.answers import POWER_LOSS, UNCLEAN, UNREADABLE, excused, fails, passes, table_of, unknown

LED = led(1, 0)
TWICE = (reported("a"), reported("b"))

CASES = {
    "a coordinator stores each partition for one member": passes(
        LED, *stored("a", 0, 1), *stored("b", 2), *stored("c")
    ),
    "it stores one for two": fails(
        LED,
        *stored("a", 0, 1),
        *stored("b", 1, 2),
        text="in generation 1 of group g, orders-1 was assigned to a and b",
        shown='"owners":["a","b"]',
    ),
    "two instances": fails(LED, *stored("a/i", 0), *stored("b/j", 0), text="assigned to i and j"),
    "another member in another generation": passes(LED, *stored("a", 0), *stored("b", 0, generation=2, seq=5)),
    "another one where a generation that was not stored is begun again": passes(
        LED, *stored("a", 0), *stored("b", 0, epoch=4)
    ),
    "an instance that came back": passes(LED, *stored("a/i", 0), *stored("b/i", 0)),
    "members are told one each": passes(LED, reported("a", 0), reported("b", 1)),
    "two members are told the same": fails(LED, *TWICE, text="orders-0 was assigned to a and b"),
    "the group had ended between them": passes(LED, reported("a"), reported("b", life=1)),
    "it had ended before them": fails(LED, reported("a", life=1), reported("b", life=1), text="assigned to a and b"),
    "two lives of an instance are told the same": passes(LED, reported("a/i"), reported("b/i")),
    "members that have no partition": passes(LED, *stored("a"), *stored("b")),
    "in the first generation that there can be": fails(
        LED, *stored("a", 0, generation=0), *stored("b", 0, generation=0), text="in generation 0"
    ),
    "the generation is unknown": passes(LED, reported("a", generation=-1), reported("b", generation=-1)),
    "their ids are unknown": passes(LED, reported("", process="m1"), reported("", process="m2")),
    "one does not know its id": passes(LED, reported("a"), reported("", process="m2")),
    "an unclean election took the first": excused(
        LED, elected_uncleanly(2, 1, topic="__consumer_offsets"), *TWICE, settings=UNCLEAN
    ),
    "an unclean election does not explain what one coordinator stores": fails(
        LED,
        elected_uncleanly(2, 1, topic="__consumer_offsets"),
        *stored("a", 0),
        *stored("b", 0),
        settings=UNCLEAN,
    ),
    "an unclean election of another topic": fails(LED, elected_uncleanly(2, 1), *TWICE, settings=UNCLEAN),
    "a power loss took the first": excused(LED, *TWICE, settings=POWER_LOSS),
    "a line of a client cannot be read": unknown(LED, UNREADABLE, *TWICE, text="unreadable"),
    "there are no groups": passes(LED),
    "nothing is there": unknown(*TWICE, text="leader_epochs"),
}

test_each_partition_has_one_member = table_of("I33", CASES)

from tests.analysis.fact_rows import elected_uncleanly, read, sent
from tests.checks.answers import NOT_UNIQUE, UNCLEAN, excused, fails, passes, table_of, unknown

TWO = [read("a", 0), read("b", 0, process="c1")]

CASES = {
    "all agree": passes(sent("a", 0), read("a", 0), read("b", 1)),
    "two readers read two values": fails(*TWO, offsets=[0], text="orders-0 offset 0 holds a and b"),
    "the finding has the oldest epoch in which it was seen": fails(
        read("a", 0, leader_epoch=3), read("b", 0, process="c1", leader_epoch=2), epochs=[2]
    ),
    "the finding shows both sources": fails(*TWO, facts=["polls", "polls"]),
    "a producer's acknowledgement names another value": fails(sent("a", 0), read("b", 0)),
    "with acks=1 the acknowledged value may change": passes(sent("a", 0, acks=1), read("b", 0)),
    "two partitions": passes(read("a", 0), read("b", 0, partition=1)),
    "an unclean election between": excused(*TWO, elected_uncleanly(2, 1), settings=UNCLEAN),
    "an unclean election, after which the second value was written": excused(
        TWO[0], read("b", 0, process="c1", leader_epoch=1), elected_uncleanly(2, 1), settings=UNCLEAN
    ),
    "an unclean election after an acknowledgement of which no log says the epoch": excused(
        sent("a", 0, leader_epoch=None), read("b", 0, leader_epoch=1), elected_uncleanly(2, 1), settings=UNCLEAN
    ),
    "an unclean election before either was written": fails(
        sent("a", 0, leader_epoch=1), read("b", 0, leader_epoch=2), elected_uncleanly(2, 1), settings=UNCLEAN
    ),
    "a value was sent twice": unknown(*TWO, NOT_UNIQUE),
    "nothing was read": unknown(sent("a", 0)),
}

test_one_offset_and_the_values_seen_there = table_of("inconsistent-offsets", CASES)
